"""
Classifies how a copy differs from its source: missing, duplicated, moved, altered, foreign.

It uses digests only. Each range is compared separately (pairing.py). Records that a range could
not pair are settled here over a whole topic, because a record may be in another range.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from eos_mirror.audit.copy_counts import CopyCounts
from eos_mirror.core.records import TopicPartition


class Kind(StrEnum):
    """How a record differs."""

    MISSING = "missing"
    """On the source only. The downstream offset is that of the record it should precede."""

    DUPLICATED = "duplicated"
    """A second copy. The upstream offset is that of the original."""

    REORDERED = "reordered"
    """Elsewhere in its partition."""

    MISPLACED = "wrong partition"
    """In another partition of the remote topic."""

    ALTERED = "altered"
    """In its place, with other contents."""

    FOREIGN = "foreign"
    """On the target only. The upstream offset is that of the record it precedes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """
    One record that differs.

    Attributes:
        source: Partition of the upstream offset.
        target: Partition of the downstream offset.
    """

    kind: Kind
    source: TopicPartition
    upstream_offset: int
    target: TopicPartition
    downstream_offset: int


class Log(NamedTuple):
    """
    The visible records of a range of one partition, as parallel columns in offset order.

    Attributes:
        end: End of the range: after all of its records.
    """

    partition: TopicPartition
    offsets: Sequence[int]
    digests: Sequence[bytes]
    end: int

    def offset_at(self, index: int) -> int:
        """Return the offset of the record at this index, or the end of the range."""
        return self.offsets[index] if index < len(self.offsets) else self.end


class Gap(NamedTuple):
    """The gap between two records that agree, given by the position of the second one."""

    source: TopicPartition
    upstream_next: int
    target: TopicPartition
    downstream_next: int


class UnmatchedRecord(NamedTuple):
    """A record without an equal one in the range."""

    gap: Gap
    offset: int
    digest: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """
    The result for one range.

    Attributes:
        matched: Number of records in their place.
        differences: Differences that are already certain.
        unseen: Source records that the target's range does not have, in order.
        unknown: Target records that the source's range does not have, in order.
    """

    matched: int
    differences: Sequence[Difference]
    unseen: Sequence[UnmatchedRecord]
    unknown: Sequence[UnmatchedRecord]
    copies: CopyCounts = field(default_factory=CopyCounts)


class Settled(NamedTuple):
    """
    The differences of a topic, and the records that are still unexplained.

    Attributes:
        strangers: Target records that are missing in no range: foreign, or surplus copies of
            records in other ranges (`name_strangers`).
    """

    differences: list[Difference]
    strangers: list[UnmatchedRecord]


def settle(comparisons: Iterable[Comparison]) -> Settled:
    """
    Settle the unmatched records of all ranges of one topic.

    A record that one range lacks and another one has in surplus was moved. Of the others, a source
    record and a target record in the same gap are one record that was altered.
    """
    every = list(comparisons)
    found, unseen, unknown = _match_moved(
        [odd for one in every for odd in one.unseen], [odd for one in every for odd in one.unknown]
    )
    strangers: dict[Gap, deque[UnmatchedRecord]] = defaultdict(deque)
    for odd in unknown:
        strangers[odd.gap].append(odd)
    for odd in unseen:
        if in_its_place := strangers[odd.gap]:
            stranger = in_its_place.popleft()
            found.append(_settled(Kind.ALTERED, odd.gap, odd.offset, stranger.offset))
        else:
            found.append(_settled(Kind.MISSING, odd.gap, odd.offset, odd.gap.downstream_next))
    return Settled(found, [odd for left in strangers.values() for odd in left])


def name_strangers(
    strangers: Iterable[UnmatchedRecord], originals: Mapping[bytes, tuple[TopicPartition, int]]
) -> Iterator[Difference]:
    """
    Distinguish surplus copies from foreign records.

    Args:
        originals: Position on the source of a record with this digest.
    """
    for odd in strangers:
        original = originals.get(odd.digest)
        if original is None:
            yield _settled(Kind.FOREIGN, odd.gap, odd.gap.upstream_next, odd.offset)
        else:
            source, upstream = original
            yield Difference(
                kind=Kind.DUPLICATED,
                source=source,
                upstream_offset=upstream,
                target=odd.gap.target,
                downstream_offset=odd.offset,
            )


def _match_moved(
    unseen: Sequence[UnmatchedRecord], unknown: Sequence[UnmatchedRecord]
) -> tuple[list[Difference], list[UnmatchedRecord], list[UnmatchedRecord]]:
    """Pair records of equal digest, first within a partition; also return the unpaired ones."""
    found: list[Difference] = []
    for kind in (Kind.REORDERED, Kind.MISPLACED):
        by_digest: dict[object, deque[UnmatchedRecord]] = defaultdict(deque)
        for odd in unknown:
            by_digest[_address(odd, kind)].append(odd)
        left = []
        for odd in unseen:
            if candidates := by_digest.get(_address(odd, kind)):
                copy = candidates.popleft()
                found.append(
                    Difference(
                        kind=kind,
                        source=odd.gap.source,
                        upstream_offset=odd.offset,
                        target=copy.gap.target,
                        downstream_offset=copy.offset,
                    )
                )
            else:
                left.append(odd)
        unseen = left
        unknown = [odd for candidates in by_digest.values() for odd in candidates]
    return found, list(unseen), sorted(unknown, key=lambda odd: (odd.gap.target, odd.offset))


def _address(odd: UnmatchedRecord, kind: Kind) -> object:
    return (odd.digest, odd.gap.target) if kind is Kind.REORDERED else odd.digest


def _settled(kind: Kind, gap: Gap, upstream_offset: int, downstream_offset: int) -> Difference:
    return Difference(
        kind=kind,
        source=gap.source,
        upstream_offset=upstream_offset,
        target=gap.target,
        downstream_offset=downstream_offset,
    )
