"""
What is proven already, so that nobody has to compare it twice: an interrupted proof goes on, and
the next one compares only what is new.
"""

from bisect import insort
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from eos_mirror.audit.ranges import Range
from eos_mirror.core.records import TopicPartition

MOST_OFFSETS = 1_000_000
"""Of a range that was joined: when retention reaches into it, all of it is compared again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvenRange:
    """
    A range that was found equal.

    Attributes:
        topics: Ids of both topics: one that was created again is another.
        count: Records in it.
    """

    where: Range
    topics: str
    count: int

    def document(self) -> dict[str, Any]:
        """For a file."""
        return asdict(self)

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "ProvenRange":
        """
        What `document` gave.

        Raises:
            KeyError, TypeError: It is something else.
        """
        where = dict(document["where"])
        partitions = {side: TopicPartition(*where[side]) for side in ("source", "target")}
        return cls(
            where=Range(**{**where, **partitions}),
            topics=document["topics"],
            count=document["count"],
        )


class Proven:
    """Equal ranges of one flow, none of which overlaps another."""

    def __init__(self, ranges: Iterable[ProvenRange] = ()) -> None:
        self._by_partition: defaultdict[TopicPartition, list[ProvenRange]] = defaultdict(list)
        for one in ranges:
            self.add(one)

    @property
    def ranges(self) -> list[ProvenRange]:
        """All of them."""
        return [one for ranges in self._by_partition.values() for one in ranges]

    def add(self, new: ProvenRange) -> None:
        """Note a range. It replaces what it overlaps, and joins what it continues."""
        where = new.where
        ranges = [
            one
            for one in self._by_partition[where.source]
            if one.topics == new.topics
            and (one.where.end <= where.start or where.end <= one.where.start)
        ]
        insort(ranges, new, key=lambda one: one.where.start)
        self._by_partition[where.source] = _joined(ranges)

    def within(self, whole: Range, topics: str) -> list[ProvenRange]:
        """Those of which all lies inside, by offset."""
        return [
            one
            for one in self._by_partition.get(whole.source, [])
            if one.topics == topics
            and one.where.target == whole.target
            and one.where.timestamps == whole.timestamps
            and whole.start <= one.where.start
            and one.where.end <= whole.end
            and whole.target_start <= one.where.target_start
            and one.where.target_end <= whole.target_end
        ]

    def rest(self, whole: Range, topics: str) -> list[Range]:
        """What is left of a range, by offset: before, between and behind what is proven."""
        done = [one.where for one in self.within(whole, topics)]
        starts = [(whole.start, whole.target_start), *((one.end, one.target_end) for one in done)]
        ends = [*((one.start, one.target_start) for one in done), (whole.end, whole.target_end)]
        pieces = [
            replace(whole, start=start[0], target_start=start[1], end=end[0], target_end=end[1])
            for start, end in zip(starts, ends, strict=True)
        ]
        return [one for one in pieces if not done or _has_something(one)]


def _has_something(one: Range) -> bool:
    return one.start < one.end or one.target_start < one.target_end


def _joined(ranges: Sequence[ProvenRange]) -> list[ProvenRange]:
    joined: list[ProvenRange] = []
    for one in ranges:
        if joined and _follows(joined[-1].where, one.where):
            last = joined.pop()
            whole = replace(last.where, end=one.where.end, target_end=one.where.target_end)
            joined.append(replace(last, where=whole, count=last.count + one.count))
        else:
            joined.append(one)
    return joined


def _follows(first: Range, then: Range) -> bool:
    """Whether nothing lies between them, and both are short."""
    return (
        (first.end, first.target_end) == (then.start, then.target_start)
        and (first.target, first.timestamps) == (then.target, then.timestamps)
        and then.end - first.start <= MOST_OFFSETS
    )
