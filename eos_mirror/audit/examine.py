"""
The ways to compare a range with its copy.

`match_range` compares fields and only finds out whether both are equal. `examine_range` compares
record by record and finds the differences. `fold_range` computes folds that others can check.
Memory: matching and folding take a few chunks. Examining takes the offsets and digests of the
range, about 150 bytes per record.
"""

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field
from typing import Final, Protocol

from eos_mirror.audit.compacted import Keyed
from eos_mirror.audit.copy_counts import CopyCounts
from eos_mirror.audit.differences import Comparison, Log
from eos_mirror.audit.digest import Fold, Folder, digest_records, encode_records
from eos_mirror.audit.pairing import compare_range
from eos_mirror.audit.ranges import Range
from eos_mirror.core.records import TopicPartition
from eos_mirror.kafka.ranges import Columns

Stamps = Sequence[tuple[int, int]]
Digests = tuple[Sequence[int], Sequence[bytes]]
"""Offsets and digests of neighbouring records."""

CREATE_TIME, LOG_APPEND_TIME = 1, 2
UNSTAMPED: Final = (0, -1)


class Reader(Protocol):
    """Reads ranges of one cluster."""

    def read(self, partition: TopicPartition, start: int, end: int) -> Iterator[Columns]:
        """Yield the records of a range in chunks. See `kafka.ranges.RangeReader`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """
    The result of matching a range with its copy.

    Attributes:
        equal: True if the copy equals the source. False only means that it must be examined.
        count: Number of equal records, from the start on.
        copies: Complete if `equal`.
    """

    equal: bool
    count: int
    copies: CopyCounts = field(default_factory=CopyCounts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """The folds of a range and of its copy."""

    source: Fold
    target: Fold
    copies: CopyCounts = field(default_factory=CopyCounts)

    @property
    def equal(self) -> bool:
        """Return whether the copy equals the source, except for a chance of n / 2^127."""
        return self.source == self.target

    @property
    def count(self) -> int:
        """Return the number of source records."""
        return self.source.count


def match_range(where: Range, source: Reader, target: Reader) -> Matched:
    """
    Compare a range with its copy, up to the first chunk that differs.

    Nothing is hashed, so nothing is left to chance: fields are compared directly.

    Raises:
        RangeUnreadable: The range cannot be read on one side.
    """
    originals = (
        _fields(chunk, as_copied(chunk.timestamps), where)
        for chunk in source.read(where.source, where.start, where.end)
    )
    copies = (
        _fields(chunk, chunk.timestamps, where)
        for chunk in target.read(where.target, where.target_start, where.target_end)
    )
    count = 0
    original, copy = next(originals, None), next(copies, None)
    while original and copy:
        length = min(len(original[0]), len(copy[0]))
        if any(one[:length] != other[:length] for one, other in zip(original, copy, strict=True)):
            return Matched(equal=False, count=count)
        count += length
        original = _behind(original, length) or next(originals, None)
        copy = _behind(copy, length) or next(copies, None)
    return Matched(equal=original is None and copy is None, count=count)


def _fields(chunk: Columns, stamps: Stamps, where: Range) -> list[Sequence[object]]:
    """Return the columns that must be equal."""
    fields: list[Sequence[object]] = [chunk.keys, chunk.values, chunk.headers]
    return [stamps, *fields] if where.timestamps else fields


def _behind(fields: list[Sequence[object]], length: int) -> list[Sequence[object]]:
    """Return the columns after the first `length` records; an empty list if none are left."""
    return [field[length:] for field in fields] if length < len(fields[0]) else []


def fold_range(where: Range, source: Reader, target: Reader, folder: Folder) -> Folded:
    """
    Fold a range and its copy.

    Raises:
        RangeUnreadable: The range cannot be read on one side.
    """
    return Folded(
        source=_fold(_originals(where, source), folder),
        target=_fold(_copies(where, target), folder),
    )


def _fold(chunks: Iterator[Digests], folder: Folder) -> Fold:
    whole = Fold()
    for _, digests in chunks:
        whole = folder.join(whole, folder.fold(digests))
    return whole


def examine_range(where: Range, source: Reader, target: Reader) -> Comparison:
    """
    Compare a range with its copy, record by record.

    Raises:
        RangeUnreadable: The range cannot be read on one side.
    """
    return compare_range(
        _log(where.source, _originals(where, source), where.end),
        _log(where.target, _copies(where, target), where.target_end),
    )


def _log(partition: TopicPartition, chunks: Iterator[Digests], end: int) -> Log:
    offsets: list[int] = []
    digests: list[bytes] = []
    for some_offsets, some_digests in chunks:
        offsets += some_offsets
        digests += some_digests
    return Log(partition, offsets, digests, end)


def _originals(where: Range, reader: Reader) -> Iterator[Digests]:
    for chunk in reader.read(where.source, where.start, where.end):
        yield _digests(chunk, as_copied(chunk.timestamps), where)


def _copies(where: Range, reader: Reader) -> Iterator[Digests]:
    for chunk in reader.read(where.target, where.target_start, where.target_end):
        yield _digests(chunk, chunk.timestamps, where)


def find_originals(where: Range, reader: Reader, wanted: Set[bytes]) -> Iterator[tuple[bytes, int]]:
    """Yield digest and offset of the range's records whose digest is wanted."""
    for offsets, digests in _originals(where, reader):
        yield from (
            (digest, offset)
            for digest, offset in zip(digests, offsets, strict=True)
            if digest in wanted
        )


def keyed_originals(where: Range, reader: Reader, log_end: int) -> Iterator[Keyed]:
    """Yield the records of a compacted log from the start of a range to the end of the log."""
    for chunk in reader.read(where.source, where.start, max(where.end, log_end)):
        yield from _keyed(chunk, as_copied(chunk.timestamps), where)


def keyed_copies(where: Range, reader: Reader, log_end: int) -> Iterator[Keyed]:
    """Yield the records of its copy in the same way."""
    for chunk in reader.read(where.target, where.target_start, max(where.target_end, log_end)):
        yield from _keyed(chunk, chunk.timestamps, where)


def _keyed(chunk: Columns, stamps: Stamps, where: Range) -> Iterator[Keyed]:
    offsets, digests = _digests(chunk, stamps, where)
    keys = digest_records([[key or b"" for key in chunk.keys]])
    tombstones = [value is None for value in chunk.values]
    return map(Keyed, offsets, keys, digests, tombstones)


def as_copied(stamps: Stamps) -> Stamps:
    """Return timestamps as the mirror writes them: log append time becomes create time."""
    if all(kind != LOG_APPEND_TIME for kind, _ in stamps):
        return stamps
    return [(CREATE_TIME if kind == LOG_APPEND_TIME else kind, at) for kind, at in stamps]


def _digests(chunk: Columns, stamps: Stamps, where: Range) -> Digests:
    if not where.timestamps:
        stamps = [UNSTAMPED] * len(stamps)
    encoded = encode_records(stamps, chunk.keys, chunk.values, chunk.headers)
    return chunk.offsets, digest_records(encoded)
