"""
Splits lists of regular expressions and compiles the patterns.

A comma inside braces, brackets or parentheses, or after a backslash, belongs to its pattern.
"""

import re
import warnings
from collections.abc import Iterator
from typing import Final

_OPENED_BY: Final = {"}": "{", "]": "[", ")": "("}
_CLOSED_BY: Final = {opening: closing for closing, opening in _OPENED_BY.items()}
_NAMED: Final = r"\\N\{[^{}]*\}"
_SIGN: Final = re.compile(rf"{_NAMED}|\\.|\[\^?\]?|.", re.DOTALL)
"""Matches one token of a pattern. A `]` right after `[` or `[^` is a character of the class."""

_COUNT: Final = re.compile(r"\{\d+(?:,\d*)?\}")


def split_patterns(text: str) -> tuple[str, ...]:
    """
    Split a list into patterns, trimmed, without empty ones.

    Raises:
        ValueError: A bracket has no counterpart; the text shows the pattern.
    """
    items: list[str] = []
    opened: list[str] = []
    start = 0
    for sign, at in _signs(text):
        in_class = opened[-1:] == ["["]
        if sign in _CLOSED_BY and (sign == "[" or not in_class):
            opened.append(sign)
        elif sign in _OPENED_BY and (sign == "]" or not in_class):
            if not opened or opened.pop() != _OPENED_BY[sign]:
                end = text.find(",", at)
                raise ValueError(_unpaired(text[start : None if end < 0 else end], sign))
        elif sign == "," and not opened:
            items.append(text[start:at])
            start = at + 1
    if opened:
        raise ValueError(_unpaired(text[start:], opened[-1]))
    return tuple(item for one in (*items, text[start:]) if (item := one.strip()))


def as_java_reads(text: str) -> re.Pattern[str]:
    """
    Compile a pattern that Python and Java read alike: ASCII classes, no set operations.

    Raises:
        ValueError: Python does not accept the pattern, or reads it differently from Java.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", FutureWarning)  # 'possible set difference' etc.
            pattern = re.compile(text, re.ASCII)
            why = _read_otherwise(text)
    except (re.error, FutureWarning) as exc:
        raise ValueError(_not_alike(text, str(exc))) from exc
    if why:
        raise ValueError(_not_alike(text, why))
    return pattern


def _signs(text: str) -> Iterator[tuple[str, int]]:
    """Yield tokens with their positions: a class opening as `[`, an escape as a whole."""
    for found in _SIGN.finditer(text):
        yield ("[" if found[0].startswith("[") else found[0]), found.start()


def _read_otherwise(text: str) -> str:
    """Name a part that Python reads as plain characters and Java does not; empty if none."""
    in_class = False
    for sign, at in _signs(text):
        if sign == "[" and in_class:
            return f"there is a '[' inside brackets; {_literal('[')}"
        if sign == "{" and not in_class and not _COUNT.match(text, at):
            braces = "".join(text[at:].partition("}")[:2])
            return f"'{braces}' is not a count, such as {{2,4}}; {_literal(sign)}"
        in_class = sign == "[" or (in_class and sign != "]")
    return ""


def _unpaired(piece: str, sign: str) -> str:
    other = _CLOSED_BY.get(sign) or _OPENED_BY[sign]
    return f"'{piece.strip()}' has a '{sign}' without its '{other}'; {_literal(sign)}"


def _not_alike(text: str, why: str) -> str:
    return f"'{text}' is not a regular expression that Python reads as Java does: {why}"


def _literal(sign: str) -> str:
    """Return the advice for a literal character; the configuration needs two backslashes."""
    return rf"write '\\{sign}' for the character"
