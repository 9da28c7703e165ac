"""
Many regular expressions against many names, each name as a whole.

Most patterns of real lists are plain names. They are looked up, so that thousands of them cost
about as much as one.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

_PLAIN: Final = re.compile(r"(?:[A-Za-z0-9_.-]|\\[._-])*")


class NamePatterns:
    """A list of patterns. A name matches if any of them matches it as a whole."""

    def __init__(self, patterns: Iterable[str]) -> None:
        """
        Args:
            patterns: Expressions that `re` compiles.
        """
        self._names: dict[int, dict[tuple[int, ...], set[str]]] = {}
        self._others: list[re.Pattern[str]] = []
        for pattern in patterns:
            if is_plain(pattern):
                name, wildcards = _parsed(pattern)
                self._names.setdefault(len(name), {}).setdefault(wildcards, set()).add(name)
            else:
                self._others.append(re.compile(pattern))

    def matches(self, name: str) -> bool:
        """Return True if a pattern matches the whole name."""
        for wildcards, names in self._names.get(len(name), {}).items():
            if name in names or (wildcards and _with_dots(name, wildcards) in names):
                return True
        return any(pattern.fullmatch(name) for pattern in self._others)


class Names:
    """A list of names. A pattern is found if it matches any of them as a whole."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(names)
        self._by_length: dict[int, list[str]] = {}
        for name in self._names:
            self._by_length.setdefault(len(name), []).append(name)
        self._dotted: dict[tuple[int, tuple[int, ...]], frozenset[str]] = {}

    def has(self, pattern: str) -> bool:
        """Return True if a pattern matches a name."""
        if not is_plain(pattern):
            return any(map(re.compile(pattern).fullmatch, self._names))
        name, wildcards = _parsed(pattern)
        if name in self._names or not wildcards:
            return name in self._names
        key = len(name), wildcards
        if key not in self._dotted:
            alike = self._by_length.get(len(name), ())
            self._dotted[key] = frozenset(_with_dots(one, wildcards) for one in alike)
        return name in self._dotted[key]


def is_plain(pattern: str) -> bool:
    """Return True for a name, in which a dot may stand for any character."""
    return _PLAIN.fullmatch(pattern) is not None


def _parsed(pattern: str) -> tuple[str, tuple[int, ...]]:
    """Return the name of a plain pattern, and where it has dots that stand for any character."""
    characters: list[str] = []
    wildcards = []
    is_escaped = False
    for character in pattern:
        if character == "\\":
            is_escaped = True
            continue
        if character == "." and not is_escaped:
            wildcards.append(len(characters))
        characters.append(character)
        is_escaped = False
    return "".join(characters), tuple(wildcards)


def _with_dots(name: str, places: Sequence[int]) -> str:
    characters = list(name)
    for place in places:
        characters[place] = "."
    return "".join(characters)
