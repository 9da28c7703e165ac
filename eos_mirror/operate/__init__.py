"""One file for each verb of people: status, verify, translate, adopt, bench."""
