"""
How a copy differs from its source: what is missing, doubled, moved, altered or foreign.

By digests only. Each range is compared by itself (pairing.py); what ranges could not pair is
settled here, over a whole topic, because a record may have gone from one range to another.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from eos_mirror.core.records import TopicPartition


class Kind(StrEnum):
    """What became of a record."""

    MISSING = "missing"
    """On the source only. Its downstream offset: of the record it should stand before."""

    DUPLICATED = "duplicated"
    """A second copy. Its upstream offset: of the original."""

    REORDERED = "reordered"
    """Elsewhere in its partition."""

    MISPLACED = "wrong partition"
    """In another partition of the remote topic."""

    ALTERED = "altered"
    """In its place with another content."""

    FOREIGN = "foreign"
    """On the target only. Its upstream offset: of the record it stands before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """
    One record that is not as it should be.

    Attributes:
        source: Where the upstream offset is counted.
        target: Where the downstream offset is counted.
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
        end: Where the range ends: behind all of its records.
    """

    partition: TopicPartition
    offsets: Sequence[int]
    digests: Sequence[bytes]
    end: int

    def offset_at(self, index: int) -> int:
        """Of a record, or the end."""
        return self.offsets[index] if index < len(self.offsets) else self.end


class Gap(NamedTuple):
    """Between two records that agree, and named by where the second of them is."""

    source: TopicPartition
    upstream_next: int
    target: TopicPartition
    downstream_next: int


class Odd(NamedTuple):
    """A record without its like in the range."""

    gap: Gap
    offset: int
    digest: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """
    One range.

    Attributes:
        matched: Records that are where they should be.
        differences: Certain already.
        unseen: Records of the source that the range of the target does not have, in order.
        unknown: The other way round.
    """

    matched: int
    differences: Sequence[Difference]
    unseen: Sequence[Odd]
    unknown: Sequence[Odd]


class Settled(NamedTuple):
    """
    Attributes:
        strangers: Records of the target that no range misses: foreign, or copies too many of
            records in other ranges (`name_strangers`).
    """

    differences: list[Difference]
    strangers: list[Odd]


def settle(comparisons: Iterable[Comparison]) -> Settled:
    """
    What became of the odd records of all ranges of one topic.

    A record that one range misses and another one has too many was moved. Of what is left, a
    record of the source and one of the target in the same gap are one that was altered.
    """
    every = list(comparisons)
    found, unseen, unknown = _match_moved(
        [odd for one in every for odd in one.unseen], [odd for one in every for odd in one.unknown]
    )
    strangers: dict[Gap, deque[Odd]] = defaultdict(deque)
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
    strangers: Iterable[Odd], originals: Mapping[bytes, tuple[TopicPartition, int]]
) -> Iterator[Difference]:
    """
    Tell copies too many from foreign records.

    Args:
        originals: By digest, where the source has such a record.
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
    unseen: Sequence[Odd], unknown: Sequence[Odd]
) -> tuple[list[Difference], list[Odd], list[Odd]]:
    """Pairs of the same digest, in the same partition if there is one; and what is left."""
    found: list[Difference] = []
    for kind in (Kind.REORDERED, Kind.MISPLACED):
        by_digest: dict[object, deque[Odd]] = defaultdict(deque)
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


def _address(odd: Odd, kind: Kind) -> object:
    return (odd.digest, odd.gap.target) if kind is Kind.REORDERED else odd.digest


def _settled(kind: Kind, gap: Gap, upstream_offset: int, downstream_offset: int) -> Difference:
    return Difference(
        kind=kind,
        source=gap.source,
        upstream_offset=upstream_offset,
        target=gap.target,
        downstream_offset=downstream_offset,
    )
