"""
The ranges that are already proven, so that they are not compared twice.

An interrupted proof resumes from them, and the next proof compares only what is new.
"""

from bisect import insort
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from eos_mirror.audit.copy_counts import CopyCounts
from eos_mirror.audit.ranges import Range
from eos_mirror.core.records import TopicPartition

MOST_OFFSETS = 1_000_000
"""Maximum of a joined range: when retention reaches it, the whole range is compared again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvenRange:
    """
    A range that was found equal.

    Attributes:
        topics: Ids of both topics: a topic that was created again is another one.
        count: Number of records in it.
        copies: Zero in a document of a version that did not count them.
    """

    where: Range
    topics: str
    count: int
    copies: CopyCounts = field(default_factory=CopyCounts)

    def document(self) -> dict[str, Any]:
        """Return a JSON document for the file."""
        return asdict(self)

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "ProvenRange":
        """
        Read a range from the result of `document`.

        Raises:
            KeyError, TypeError: The document has another form.
        """
        where = dict(document["where"])
        partitions = {side: TopicPartition(*where[side]) for side in ("source", "target")}
        return cls(
            where=Range(**{**where, **partitions}),
            topics=document["topics"],
            count=document["count"],
            copies=CopyCounts(**document.get("copies", {})),
        )


class Proven:
    """Proven ranges of one flow. They do not overlap."""

    def __init__(self, ranges: Iterable[ProvenRange] = ()) -> None:
        self._by_partition: defaultdict[TopicPartition, list[ProvenRange]] = defaultdict(list)
        for one in ranges:
            self.add(one)

    @property
    def ranges(self) -> list[ProvenRange]:
        """Return all ranges."""
        return [one for ranges in self._by_partition.values() for one in ranges]

    def add(self, new: ProvenRange) -> None:
        """Add a range. It replaces ranges that it overlaps, and is joined to its neighbours."""
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
        """Return the ranges that lie completely inside `whole`, by offset."""
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
        """Return the unproven parts of a range: before, between and after the proven ones."""
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
            joined.append(
                replace(
                    last,
                    where=whole,
                    count=last.count + one.count,
                    copies=last.copies + one.copies,
                )
            )
        else:
            joined.append(one)
    return joined


def _follows(first: Range, then: Range) -> bool:
    """Return whether the second range directly continues the first, and both are short."""
    return (
        (first.end, first.target_end) == (then.start, then.target_start)
        and (first.target, first.timestamps) == (then.target, then.timestamps)
        and then.end - first.start <= MOST_OFFSETS
    )
