"""
The offset map: which downstream offset each mirrored record got, as runs.

A partition's map is a chain of segments. All but the last are spilled records of the offset map
topic; the last, the tail, is in the metadata of the shadow offset. Both are written by the
transaction that wrote the data, so a reader finds all three or none of them.
"""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from itertools import starmap
from operator import attrgetter
from typing import Final, Self

from eos_mirror.core.map_segment import (
    FORMAT,
    MAX_VARINT_BYTES,
    Run,
    Segment,
    check_links,
    decode_segment,
    put_varint,
)
from eos_mirror.core.records import Stretch

__all__ = [
    "BEFORE_START",
    "PENDING",
    "MapTail",
    "OffsetMap",
    "Run",
    "Segment",
    "Untranslatable",
    "check_chain",
    "decode_segment",
]

MAX_COMMITS: Final = 64
"""A tail is spilled after this many transactions."""

MAX_PACKED_BYTES: Final = 600
"""A tail is spilled when its closed runs take more. All else in an encoded tail takes 60 bytes at
most, so base64 and the other metadata fields fit into 1 KiB."""


class Untranslatable(Enum):
    """Why an offset has no translation. The map never guesses."""

    PENDING = "not mirrored yet"
    BEFORE_START = "before the first retained segment"


PENDING: Final = Untranslatable.PENDING
BEFORE_START: Final = Untranslatable.BEFORE_START


@dataclass(slots=True, kw_only=True)
class MapTail:
    """
    The newest segment of one partition, growing in the memory of the task that owns it.

    A: runs are ordered and disjoint in both offsets, and no two neighbours can be merged.
    B: every run lies in [upstream_start, upstream_end).
    C: `_packed` holds the encoded runs up to the length of the last one, which may still grow.

    Attributes:
        segment: Number that the next spill gets.
        commits: Transactions with records since the last spill.
        upstream_start: First upstream offset not covered by the segments before.
        upstream_end: next_offset that the map covers.
        downstream_start: Downstream end of the segments before; None if nothing is known.
        runs: Runs since the last spill.
        downstream_gap: Offsets after the last copy that hold replayed records.
        is_wide: Whether its bytes need format 2.
    """

    segment: int
    commits: int
    upstream_start: int
    upstream_end: int
    downstream_start: int | None
    runs: list[Run] = field(default_factory=list)
    downstream_gap: int = 0
    is_wide: bool = False
    _packed: bytearray = field(default_factory=bytearray, repr=False)

    @classmethod
    def empty(cls, next_upstream: int, *, segment: int = 0, downstream: int | None = None) -> Self:
        """
        Return a tail before its first record.

        Args:
            next_upstream: Where mirroring starts.
            segment: Number of the first spill.
            downstream: End of the target partition at that moment, if known. `OffsetMap` returns
                it until a record is mirrored.
        """
        return cls(
            segment=segment,
            commits=0,
            upstream_start=next_upstream,
            upstream_end=next_upstream,
            downstream_start=downstream,
        )

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """
        Decode a tail or segment.

        Raises:
            ValueError: Not the bytes of `encode`.
        """
        segment = decode_segment(data)
        tail = cls.empty(
            segment.upstream_start, segment=segment.number, downstream=segment.downstream_start
        )
        for run in segment.runs:
            tail._append(run)  # noqa: SLF001 (of this class)
        tail.commits = segment.commits
        tail.upstream_end = segment.upstream_end
        tail.downstream_gap = segment.downstream_gap
        return tail

    @property
    def downstream_end(self) -> int | None:
        """Downstream offset after everything that it covers; None if there is nothing."""
        last = self.runs[-1].downstream_end if self.runs else self.downstream_start
        return None if last is None else last + self.downstream_gap

    def add(self, mirrored: Iterable[Stretch | tuple[int, int]], first_downstream: int) -> None:
        """
        Add one transaction.

        Args:
            mirrored: Upstream offsets in order, without those that have no record.
            first_downstream: Where the first record went; the others follow without a gap.

        Raises:
            ValueError: A record was mirrored twice, or the target was written by someone else.
                The tail must not be used any more.
        """
        if first_downstream < (self.downstream_end or 0):
            raise ValueError(
                f"downstream offset {first_downstream} was written before: "
                f"the map ends at {self.downstream_end}"
            )
        upstream_end, downstream = self.upstream_end, first_downstream
        for first, length, copies in starmap(Stretch, mirrored):
            if first < upstream_end or length < 1:
                raise ValueError(
                    f"upstream offset {first} (length {length}) was mirrored before: "
                    f"next_offset={upstream_end}"
                )
            self._append(Run(first, downstream, length, copies))
            upstream_end = first + length
            downstream += length * copies
        self.upstream_end = upstream_end
        self.commits += 1

    def advance(self, next_offset: int) -> None:
        """
        Cover upstream offsets without records: control records, compaction, holes.

        Raises:
            ValueError: That would go back.
        """
        if next_offset < self.upstream_end:
            raise ValueError(f"next_offset={next_offset} is before {self.upstream_end}")
        self.upstream_end = next_offset

    def pass_over(self, downstream_end: int) -> None:
        """
        Cover downstream offsets without copies: records that were replayed from the quarantine.

        Raises:
            ValueError: That would go back, or nothing is known of the target's end.
        """
        if self.downstream_end is None or downstream_end < self.downstream_end:
            raise ValueError(f"{downstream_end} is before the map's end {self.downstream_end}")
        self.downstream_gap += downstream_end - self.downstream_end

    def needs_spill(self) -> bool:
        """True when the tail must be spilled before it is committed again."""
        wide = len(self.runs) if self.downstream_gap else 0  # a byte for each number of copies
        if self.is_wide:
            wide = MAX_VARINT_BYTES * len(self.runs)
        return self.commits >= MAX_COMMITS or len(self._packed) + wide > MAX_PACKED_BYTES

    def spill(self) -> tuple[int, bytes]:
        """
        Close the segment and begin the next one.

        Returns:
            The number of the closed segment and its bytes, to be written by the same
            transaction that commits the tail.
        """
        number, data = self.segment, self.encode()
        self.downstream_start = self.downstream_end
        self.upstream_start = self.upstream_end
        self.segment += 1
        self.commits = 0
        self.runs = []
        self.downstream_gap, self.is_wide = 0, False
        self._packed = bytearray()
        return number, data

    def encode(self) -> bytes:
        """Return the tail as bytes: absolute start, then gaps before and length of each run."""
        if self.is_wide or self.downstream_gap:
            return self.freeze().encode()
        out = bytearray((FORMAT,))
        put_varint(out, self.segment)
        put_varint(out, self.commits)
        put_varint(out, self.upstream_start)
        put_varint(out, 0 if self.downstream_start is None else self.downstream_start + 1)
        put_varint(out, len(self.runs))
        out += self._packed
        covered = self.upstream_start
        if self.runs:
            put_varint(out, self.runs[-1].length)
            covered = self.runs[-1].upstream_end
        put_varint(out, self.upstream_end - covered)
        return bytes(out)

    def freeze(self) -> Segment:
        """Return the tail as it is now."""
        return Segment(
            number=self.segment,
            commits=self.commits,
            upstream_start=self.upstream_start,
            upstream_end=self.upstream_end,
            downstream_start=self.downstream_start,
            runs=tuple(self.runs),
            downstream_gap=self.downstream_gap,
        )

    def _append(self, run: Run) -> None:
        upstream, downstream = self.upstream_start, self.downstream_start or 0
        if self.runs:
            last = self.runs[-1]
            upstream, downstream = last.upstream_end, last.downstream_end
            if (run.upstream, run.downstream, run.copies) == (upstream, downstream, last.copies):
                self.runs[-1] = last._replace(length=last.length + run.length)
                return
            put_varint(self._packed, last.length)
        put_varint(self._packed, run.upstream - upstream)
        put_varint(self._packed, run.downstream - downstream)
        self.runs.append(run)
        self.is_wide = self.is_wide or run.copies != 1
        self.downstream_gap = 0


class OffsetMap:
    """
    Translation of one partition's offsets, in both directions.

    It is exact for every upstream offset from the start of the first segment to the end of the
    tail: a read_committed reader of the target that starts at the translated offset sees the
    copies of exactly the records from the given offset on.
    """

    __slots__ = ("_runs", "downstream_end", "downstream_start", "upstream_end", "upstream_start")

    def __init__(self, segments: Iterable[Segment], tail: MapTail) -> None:
        """
        Build the map.

        Args:
            segments: Spilled segments, in any order. Those that the tail does not know yet are
                ignored, so read the tail first, then the segments.
            tail: As committed with the shadow offset.

        Raises:
            ValueError: The chain is broken (see `check_chain`).
        """
        spilled = [segment for segment in segments if segment.number < tail.segment]
        chain = check_chain(spilled, tail)
        self._runs = [run for segment in chain for run in segment.runs]
        self.upstream_start = chain[0].upstream_start
        self.upstream_end = tail.upstream_end
        self.downstream_start = chain[0].downstream_start
        self.downstream_end = tail.downstream_end

    def translate(self, upstream: int) -> int | Untranslatable:
        """
        Return where a target reader resumes that would read `upstream` next on the source.

        Returns:
            The downstream offset; PENDING past the shadow offset, or while nothing at all is
            mirrored; BEFORE_START where no segment is left.
        """
        if upstream < self.upstream_start:
            return BEFORE_START
        if upstream > self.upstream_end or self.downstream_end is None:
            return PENDING
        index = bisect_right(self._runs, upstream, key=attrgetter("upstream_end"))
        if index == len(self._runs):
            return self.downstream_end
        return self._runs[index].copy_of(upstream)

    def reverse(self, downstream: int) -> int | Untranslatable:
        """
        Return where a source reader resumes that would read `downstream` next on the target.

        Pass only offsets that were read before the map was. A later one may belong to a record
        that this map does not know; the answer is then the shadow offset, a lower bound.

        Returns:
            The upstream offset, or BEFORE_START where no segment is left.
        """
        if self.downstream_start is not None and downstream < self.downstream_start:
            return BEFORE_START
        index = bisect_right(self._runs, downstream, key=attrgetter("downstream_end"))
        if index == len(self._runs):
            return self.upstream_end
        return self._runs[index].original_of(downstream)

    def copy_of(self, upstream: int) -> int:
        """Return where the copy of a mirrored record, or of the next, is: `translate`, clamped."""
        answer = self.translate(min(max(upstream, self.upstream_start), self.upstream_end))
        return 0 if isinstance(answer, Untranslatable) else answer

    def original_of(self, downstream: int) -> int | None:
        """Return the upstream offset of the record at `downstream`; None if none was mirrored."""
        index = bisect_right(self._runs, downstream, key=attrgetter("downstream_end"))
        if index == len(self._runs) or downstream < self._runs[index].downstream:
            return None
        return self._runs[index].original_of(downstream)


def check_chain(segments: Iterable[Segment], tail: MapTail) -> list[Segment]:
    """
    Check that segments and tail are one unbroken map.

    Returns:
        The segments in order, the tail last.

    Raises:
        ValueError: The first break: a segment is missing or duplicate, or does not start where
            the one before ended, or an offset was mirrored twice.
    """
    chain = [*sorted(segments, key=attrgetter("number")), tail.freeze()]
    check_links(chain)
    return chain
