"""
What runs in a task: one range, looked at in one way or another, or some keys of a compacted
partition.

Clients are kept for the next range of the same process, because a new one costs more than a small
range does.
"""

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from typing import TypeVar

from eos_mirror.audit.compacted import CompactedComparison, Compaction, compare_compacted
from eos_mirror.audit.differences import Comparison
from eos_mirror.audit.digest import Folder
from eos_mirror.audit.examine import (
    Folded,
    Matched,
    examine_range,
    find_originals,
    fold_range,
    keyed_copies,
    keyed_originals,
    match_range,
)
from eos_mirror.audit.ranges import Range
from eos_mirror.core.offset_map import OffsetMap
from eos_mirror.errors import RangeUnreadable
from eos_mirror.kafka.ranges import RangeReader

R = TypeVar("R")
Found = Mapping[bytes, int]
"""Offsets by digest."""

_readers: dict[object, RangeReader] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """A range that could not be read, and why."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """
    A part of the keys of a compacted partition: all of it is read, only they are remembered.

    Attributes:
        where: What is compared.
        source_log_end: How far to read on for reasons; `target_log_end` likewise.
        part: Of so many `parts`.
    """

    where: Range
    offsets: OffsetMap
    compaction: Compaction
    source_log_end: int
    target_log_end: int
    part: int
    parts: int

    def __str__(self) -> str:
        return f"{self.where}, keys {self.part + 1} of {self.parts}"

    def has(self, key: bytes) -> bool:
        """By the digest of the key."""
        return key[0] % self.parts == self.part


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """
    Goes to the workers with every task, secrets of the clients included; so it has no repr of them.

    Attributes:
        source: Connection and security; `target` likewise.
        base: Of the fold.
    """

    source: Mapping[str, str] = field(repr=False)
    target: Mapping[str, str] = field(repr=False)
    base: int = field(repr=False)

    def match(self, where: Range) -> Matched | Unreadable:
        """
        See `match_range`.

        Raises:
            RestartTask: A cluster does not answer.
        """
        return _unless_unreadable(lambda: match_range(where, *self._readers()))

    def fold(self, where: Range) -> Folded | Unreadable:
        """
        See `fold_range`.

        Raises:
            RestartTask: A cluster does not answer.
        """
        folder = Folder(self.base)
        return _unless_unreadable(lambda: fold_range(where, *self._readers(), folder))

    def examine(self, where: Range) -> Comparison | Unreadable:
        """
        See `examine_range`.

        Raises:
            RestartTask: A cluster does not answer.
        """
        return _unless_unreadable(lambda: examine_range(where, *self._readers()))

    def find(self, where: Range, wanted: Set[bytes]) -> Found | Unreadable:
        """
        Where the source has records of these digests; the first of each in the range.

        Raises:
            RestartTask: A cluster does not answer.
        """
        source, _ = self._readers()
        found: dict[bytes, int] = {}
        try:
            for digest, offset in find_originals(where, source, wanted):
                found.setdefault(digest, offset)
        except RangeUnreadable as exc:
            return Unreadable(reason=str(exc))
        return found

    def compare_keys(self, keys: Keys) -> CompactedComparison | Unreadable:
        """
        See `compare_compacted`.

        Raises:
            RestartTask: A cluster does not answer.
        """
        source, target = self._readers()
        where, offsets = keys.where, keys.offsets
        try:
            return compare_compacted(
                where,
                filter(
                    lambda one: keys.has(one.key),
                    keyed_originals(where, source, keys.source_log_end),
                ),
                filter(
                    lambda one: keys.has(one.key), keyed_copies(where, target, keys.target_log_end)
                ),
                original_of=offsets.original_of,
                copy_of=offsets.copy_of,
                compaction=keys.compaction,
            )
        except RangeUnreadable as exc:
            return Unreadable(reason=str(exc))

    def _readers(self) -> tuple[RangeReader, RangeReader]:
        return _reader(self.source, source=True), _reader(self.target, source=False)


def _unless_unreadable(look: Callable[[], R]) -> R | Unreadable:
    try:
        return look()
    except RangeUnreadable as exc:
        return Unreadable(reason=str(exc))


def _reader(config: Mapping[str, str], *, source: bool) -> RangeReader:
    key = (source, tuple(sorted(config.items())))
    if key not in _readers:
        _readers[key] = RangeReader(config, source=source)
    return _readers[key]
