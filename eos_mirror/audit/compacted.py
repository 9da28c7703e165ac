"""
Compares a compacted log with its copy key by key, because each side is compacted separately.

A record that only one side has is explained if compaction can cause that. Compaction keeps the
last record of each key, and a tombstone for a while; it never brings back an older record.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from eos_mirror.audit.copy_counts import CopyCounts
from eos_mirror.audit.differences import Difference, Kind
from eos_mirror.audit.ranges import Range


class Why(StrEnum):
    """Why a record may be on one side only."""

    COMPACTED_ON_SOURCE = "compacted on the source"
    COMPACTED_ON_TARGET = "compacted on the target"
    DROPPED = "left out, and in the ledger"
    REPLAYED = "replayed from the quarantine, and in the ledger"


class Keyed(NamedTuple):
    """
    One record, by digests.

    Attributes:
        offset: Offset on its own side.
        key: Digest of the key.
        digest: Digest of the record.
    """

    offset: int
    key: bytes
    digest: bytes
    is_tombstone: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """Which side is compacted."""

    source: bool
    target: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactedComparison:
    """
    The result for one partition, or for some of its keys.

    Attributes:
        explained: Number of records that one side no longer has, by reason.
        copies: Of all keys of the partition.
    """

    matched: int
    differences: Sequence[Difference]
    explained: Mapping[Why, int]
    copies: CopyCounts = field(default_factory=CopyCounts)


class _Traces(NamedTuple):
    """
    The remaining records of one key on both sides, by upstream offset.

    After the end of the range, an offset only means that the record is after it.
    """

    source: dict[int, Keyed]
    target: dict[int, Keyed]


def compare_compacted(
    where: Range,
    source: Iterable[Keyed],
    target: Iterable[Keyed],
    *,
    original_of: Callable[[int], int | None],
    copy_of: Callable[[int], int],
    compaction: Compaction,
) -> CompactedComparison:
    """
    Compare the records in the range; later records only serve as explanations.

    Args:
        source: Records from the start of the range to the current end of the log; `target` too.
        original_of: Translates a downstream offset to its record's upstream offset; None if the
            record is not ours.
        copy_of: Returns the offset of a record's copy, or of the next copy.
    """
    traces: defaultdict[bytes, _Traces] = defaultdict(lambda: _Traces({}, {}))
    differences = []
    for record in source:
        traces[record.key].source[record.offset] = record
    for record in target:
        behind = record.offset - where.target_end
        upstream = original_of(record.offset) if behind < 0 else where.end + behind
        if upstream is None:
            differences.append(_difference(Kind.FOREIGN, where, where.end, record.offset))
        else:
            traces[record.key].target[upstream] = record
    matched = 0
    explained: Counter[Why] = Counter()
    for one in traces.values():
        for verdict in _judge(one, where, compaction, copy_of):
            if isinstance(verdict, Why):
                explained[verdict] += 1
            elif verdict is None:
                matched += 1
            else:
                differences.append(verdict)
    return CompactedComparison(matched=matched, differences=differences, explained=explained)


def _judge(
    one: _Traces, where: Range, compaction: Compaction, copy_of: Callable[[int], int]
) -> Iterator[Why | Difference | None]:
    """Yield a verdict for each record of a key in the range: None if both sides have it."""
    last = max(one.source.keys() | one.target.keys())
    for upstream in sorted(one.source.keys() | one.target.keys()):
        if not where.start <= upstream < where.end:
            continue
        original, copy = one.source.get(upstream), one.target.get(upstream)
        if original is not None and copy is not None:
            is_same = original.digest == copy.digest
            yield None if is_same else _difference(Kind.ALTERED, where, upstream, copy.offset)
        elif original is not None:
            if compaction.target and (upstream < last or _expires(original, one.target)):
                yield Why.COMPACTED_ON_TARGET
            else:
                yield _difference(Kind.MISSING, where, upstream, copy_of(upstream))
        elif copy is not None:
            if compaction.source and (upstream < last or _expires(copy, one.source)):
                yield Why.COMPACTED_ON_SOURCE
            else:
                yield _difference(Kind.FOREIGN, where, upstream, copy.offset)


def _expires(newest: Keyed, there: Mapping[int, Keyed]) -> bool:
    """
    Return whether compaction may have removed a key's newest record.

    A tombstone is removed some time after all earlier records; else a deletion would be undone.
    """
    return newest.is_tombstone and not there


def _difference(kind: Kind, where: Range, upstream: int, downstream: int) -> Difference:
    return Difference(
        kind=kind,
        source=where.source,
        upstream_offset=upstream,
        target=where.target,
        downstream_offset=downstream,
    )
