"""Counts the source records that have no copy, or several, because the flow is configured so."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyCounts:
    """
    Source records that transforms or the message handler do not copy once.

    Attributes:
        filtered: Number of records without a copy.
        expanded: Number of records with several copies.
    """

    filtered: int = 0
    expanded: int = 0

    def __add__(self, other: "CopyCounts") -> "CopyCounts":
        """Return the counts of both."""
        return CopyCounts(
            filtered=self.filtered + other.filtered, expanded=self.expanded + other.expanded
        )


@dataclass(slots=True, kw_only=True)
class Tally:
    """
    Counts what is read of one range.

    Attributes:
        end: Records from this offset on are not counted: a compacted log is read beyond its range.
    """

    end: int
    counts: CopyCounts = field(default_factory=CopyCounts)

    def add(self, read: Sequence[int], copied: Sequence[int]) -> None:
        """
        Count adjacent records.

        Args:
            read: Their offsets, each once.
            copied: The offset of each copy: none, one or several for a record.
        """
        copies = Counter(copied)
        self.counts += CopyCounts(
            filtered=sum(offset not in copies for offset in read if offset < self.end),
            expanded=sum(count > 1 for offset, count in copies.items() if offset < self.end),
        )
