"""Counts things in texts for people."""


def counted(count: int, noun: str, *, commas: bool = False) -> str:
    """
    Return "1 record" or "2 records".

    Args:
        noun: Singular; the plural has an s.
        commas: Separate thousands: "2,000 records".
    """
    number = f"{count:,}" if commas else str(count)
    return f"{number} {noun}{'' if count == 1 else 's'}"
