"""Counts things in texts for people."""


def counted(count: int, noun: str) -> str:
    """Return "1 record" or "2 records"; the noun is a singular whose plural has an s."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
