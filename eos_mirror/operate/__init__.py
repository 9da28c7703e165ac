"""The operator's verbs, one file each: status, verify, translate, adopt, bench."""
