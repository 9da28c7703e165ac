"""
The work of one task: compares one range, or some keys of a compacted partition.

Clients are kept for the next range of the same process, because a new client costs more than a
small range.
"""

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import TypeVar

from eos_mirror.audit.compacted import CompactedComparison, Compaction, compare_compacted
from eos_mirror.audit.copy_counts import Tally
from eos_mirror.audit.differences import Comparison
from eos_mirror.audit.digest import Folder
from eos_mirror.audit.examine import (
    Folded,
    Matched,
    Reader,
    examine_range,
    find_originals,
    fold_range,
    keyed_copies,
    keyed_originals,
    match_range,
)
from eos_mirror.audit.ranges import Range
from eos_mirror.audit.transformed import as_mirrored
from eos_mirror.core.handlers import HandlerSpec, MessageHandler
from eos_mirror.core.offset_map import OffsetMap
from eos_mirror.core.side import Side
from eos_mirror.core.transforms import Transform
from eos_mirror.errors import RangeUnreadable
from eos_mirror.kafka.ranges import RangeReader

R = TypeVar("R", Matched, Folded, Comparison, CompactedComparison)
Found = Mapping[bytes, int]
"""Offsets by digest."""

Readers = tuple[Reader, Reader]
"""Of the source, as it is mirrored, and of the target."""

_readers: dict[object, RangeReader] = {}
_handlers: dict[HandlerSpec, MessageHandler] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """A range that could not be read, and why."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """
    A part of the keys of a compacted partition. All records are read, only these keys are kept.

    Attributes:
        where: The range to compare.
        source_log_end: How far to read on for explanations; so does `target_log_end`.
        part: Number of this part, from 0, out of `parts`.
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
        """Return whether the digest of a key belongs to this part."""
        return key[0] % self.parts == self.part


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """
    The functions that tasks call. It is sent to the workers with every task.

    It includes secrets of the clients; its repr does not show them.

    Attributes:
        source: Connection and security of the source; `target` has those of the target.
        transforms, handler: What the flow does to the records of the source.
        base: Base of the folds.
    """

    source: Mapping[str, str] = field(repr=False)
    target: Mapping[str, str] = field(repr=False)
    base: int = field(repr=False)
    transforms: tuple[Transform, ...] = ()
    handler: HandlerSpec | None = None

    def match(self, where: Range) -> Matched | Unreadable:
        """
        Check whether a range equals its copy. See `match_range`.

        Raises:
            RestartTask: A cluster did not answer (SourceUnavailable or TargetUnavailable).
        """
        return self._counted(where, lambda readers: match_range(where, *readers))

    def fold(self, where: Range) -> Folded | Unreadable:
        """
        Fold a range and its copy. See `fold_range`.

        Raises:
            RestartTask: A cluster did not answer (SourceUnavailable or TargetUnavailable).
        """
        folder = Folder(self.base)
        return self._counted(where, lambda readers: fold_range(where, *readers, folder))

    def examine(self, where: Range) -> Comparison | Unreadable:
        """
        Compare a range record by record. See `examine_range`.

        Raises:
            RestartTask: A cluster did not answer (SourceUnavailable or TargetUnavailable).
        """
        return self._counted(where, lambda readers: examine_range(where, *readers))

    def find(self, where: Range, wanted: Set[bytes]) -> Found | Unreadable:
        """
        Find source records by digest; of equal records, the first one in the range.

        Raises:
            RestartTask: The source did not answer (SourceUnavailable).
        """
        source, _ = self._readers(where)
        found: dict[bytes, int] = {}
        try:
            for digest, offset in find_originals(where, source, wanted):
                found.setdefault(digest, offset)
        except RangeUnreadable as exc:
            return Unreadable(reason=str(exc))
        return found

    def compare_keys(self, keys: Keys) -> CompactedComparison | Unreadable:
        """
        Compare some keys with their copies. See `compare_compacted`.

        Raises:
            RestartTask: A cluster did not answer (SourceUnavailable or TargetUnavailable).
        """
        where, offsets = keys.where, keys.offsets

        def compare(readers: Readers) -> CompactedComparison:
            source, target = readers
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

        return self._counted(where, compare)

    def _counted(self, where: Range, look: Callable[[Readers], R]) -> R | Unreadable:
        """Return what a function finds in a range, with the counts of what it has read."""
        tally = Tally(end=where.end)
        try:
            found = look(self._readers(where, tally))
        except RangeUnreadable as exc:
            return Unreadable(reason=str(exc))
        return replace(found, copies=tally.counts)

    def _readers(self, where: Range, tally: Tally | None = None) -> Readers:
        mirrored = as_mirrored(
            _reader(self.source, side=Side.SOURCE),
            self.transforms,
            remote_topic=where.target.topic,
            handler=None if self.handler is None else _handler(self.handler),
            tally=tally,
        )
        return mirrored, _reader(self.target, side=Side.TARGET)


def _handler(spec: HandlerSpec) -> MessageHandler:
    if spec not in _handlers:
        _handlers[spec] = spec.make()
    return _handlers[spec]


def _reader(config: Mapping[str, str], *, side: Side) -> RangeReader:
    key = (side, tuple(sorted(config.items())))
    if key not in _readers:
        _readers[key] = RangeReader(config, side=side)
    return _readers[key]
