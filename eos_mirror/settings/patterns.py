"""
Lists of regular expressions: where one pattern ends and the next begins, and what each means.

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
"""One step through a pattern. A `]` right after `[` or `[^` is a character of the class."""

_COUNT: Final = re.compile(r"\{\d+(?:,\d*)?\}")


def split_patterns(text: str) -> tuple[str, ...]:
    """
    The patterns of a list, trimmed, without empty ones.

    Raises:
        ValueError: A bracket without its counterpart; the text shows the pattern.
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
    A pattern, where both dialects give it one meaning: ASCII classes, no set operations.

    Raises:
        ValueError: Python does not take it, or not as Java does.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", FutureWarning)  # 'possible set difference' and kin
            pattern = re.compile(text, re.ASCII)
            why = _read_otherwise(text)
    except (re.error, FutureWarning) as exc:
        raise ValueError(_not_alike(text, str(exc))) from exc
    if why:
        raise ValueError(_not_alike(text, why))
    return pattern


def _signs(text: str) -> Iterator[tuple[str, int]]:
    """Characters with their places: an opened class without what follows, an escape whole."""
    for found in _SIGN.finditer(text):
        yield ("[" if found[0].startswith("[") else found[0]), found.start()


def _read_otherwise(text: str) -> str:
    """What Python takes for plain characters, and Java does not; empty if there is nothing."""
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
    """A file needs two backslashes for one."""
    return rf"write '\\{sign}' for the character"
