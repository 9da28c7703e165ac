"""
Segments of an offset map: the links of the chain and their bytes.

Bytes: format, then varints: number, commits, upstream start, downstream start + 1 (0: unknown),
count of runs; for each run the upstream gap and the downstream gap before it and its length;
last, the upstream gap between the last run and the end.

Format 2 has, too, the copies of each record after each length, and a downstream gap at the end.
It is written only where format 1 cannot say the same, so that earlier versions read all else.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

FORMAT: Final = 1
"""First byte of an encoded segment with one copy of each record, and none after the last."""

WIDE_FORMAT: Final = 2
"""First byte of any other segment."""

MAX_OFFSET: Final = 2**63 - 1
MAX_VARINT_BYTES: Final = 9
MIN_RUN_BYTES: Final = 3

_LOW_BITS: Final = 0x7F
_MORE: Final = 0x80


class Run(NamedTuple):
    """
    A stretch of adjacent records of the source, with adjacent copies.

    Attributes:
        upstream, downstream: Offsets of the first record, and of its first copy.
        length: Records of the source.
        copies: Of each of them.
    """

    upstream: int
    downstream: int
    length: int
    copies: int = 1

    @property
    def upstream_end(self) -> int:
        """Upstream offset of the last record + 1."""
        return self.upstream + self.length

    @property
    def downstream_end(self) -> int:
        """Downstream offset of the last copy + 1."""
        return self.downstream + self.length * self.copies

    def copy_of(self, upstream: int) -> int:
        """Return the offset of the first copy of this record, or of the first one in the run."""
        return self.downstream + max(0, upstream - self.upstream) * self.copies

    def original_of(self, downstream: int) -> int:
        """Return the offset of the record with this copy, or of the first one in the run."""
        return self.upstream + max(0, downstream - self.downstream) // self.copies


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """
    One link of a partition's map.

    Attributes:
        number: Place in the chain, from 0.
        commits: Transactions with records that it covers.
        upstream_start: First upstream offset it covers; where its predecessor ended.
        upstream_end: next_offset after its last transaction.
        downstream_start: Where its predecessor ended; None if nothing is known before it.
        runs: In order; upstream offsets between them have no record on the target.
        downstream_gap: Offsets after the last copy that others may have written: records that were
            replayed from the quarantine.
    """

    number: int
    commits: int
    upstream_start: int
    upstream_end: int
    downstream_start: int | None
    runs: Sequence[Run]
    downstream_gap: int = 0

    @property
    def downstream_end(self) -> int | None:
        """Downstream offset after everything that it covers; None if there is nothing."""
        last = self.runs[-1].downstream_end if self.runs else self.downstream_start
        return None if last is None else last + self.downstream_gap

    def encode(self) -> bytes:
        """Return the segment as bytes, in format 1 if that is possible."""
        is_wide = self.downstream_gap > 0 or any(run.copies != 1 for run in self.runs)
        out = bytearray((WIDE_FORMAT if is_wide else FORMAT,))
        start = 0 if self.downstream_start is None else self.downstream_start + 1
        for head in (self.number, self.commits, self.upstream_start, start, len(self.runs)):
            put_varint(out, head)
        upstream, downstream = self.upstream_start, self.downstream_start or 0
        for run in self.runs:
            gaps = (run.upstream - upstream, run.downstream - downstream)
            for part in (*gaps, run.length, *((run.copies,) if is_wide else ())):
                put_varint(out, part)
            upstream, downstream = run.upstream_end, run.downstream_end
        put_varint(out, self.upstream_end - upstream)
        if is_wide:
            put_varint(out, self.downstream_gap)
        return bytes(out)


def decode_segment(data: bytes) -> Segment:
    """
    Decode a spilled segment.

    Raises:
        ValueError: Malformed, or written in a newer format.
    """
    if not data or data[0] not in {FORMAT, WIDE_FORMAT}:
        found = data[0] if data else "missing"
        raise ValueError(f"offset map format {found}, not {FORMAT} or {WIDE_FORMAT}")
    is_wide = data[0] == WIDE_FORMAT
    reader = _Reader(data, 1)
    number, commits, upstream_start = reader.varint(), reader.varint(), reader.varint()
    known, count = reader.varint(), reader.varint()
    if count * MIN_RUN_BYTES > len(data) - reader.at:
        raise ValueError(f"offset map says {count} runs, more than its {len(data)} bytes can hold")
    runs = _runs_of(reader, count, upstream_start, max(0, known - 1), is_wide=is_wide)
    upstream_end = (runs[-1].upstream_end if runs else upstream_start) + reader.varint()
    downstream = runs[-1].downstream_end if runs else max(0, known - 1)
    downstream_gap = reader.varint() if is_wide else 0
    if is_wide and not downstream_gap and all(run.copies == 1 for run in runs):
        raise ValueError("offset map has another format than it needs")
    if reader.at != len(data):
        raise ValueError(f"offset map has {len(data) - reader.at} bytes too many")
    if max(upstream_end, downstream + downstream_gap) > MAX_OFFSET:
        raise ValueError("offset map goes past the largest offset")
    return Segment(
        number=number,
        commits=commits,
        upstream_start=upstream_start,
        upstream_end=upstream_end,
        downstream_start=known - 1 if known else None,
        runs=tuple(runs),
        downstream_gap=downstream_gap,
    )


def _runs_of(
    reader: "_Reader", count: int, upstream: int, downstream: int, *, is_wide: bool
) -> list[Run]:
    runs: list[Run] = []
    for _ in range(count):
        upstream_gap, downstream_gap, length = reader.varint(), reader.varint(), reader.varint()
        copies = reader.varint() if is_wide else 1
        continues = runs and upstream_gap == downstream_gap == 0 and copies == runs[-1].copies
        if length == 0 or copies == 0 or continues:
            raise ValueError("offset map run is empty or continues the one before")
        runs.append(Run(upstream + upstream_gap, downstream + downstream_gap, length, copies))
        upstream, downstream = runs[-1].upstream_end, runs[-1].downstream_end
    return runs


def upstream_start_of(data: bytes) -> int:
    """
    Return the first upstream offset that a spilled segment covers, without reading its runs.

    Raises:
        ValueError: Malformed.
    """
    reader = _Reader(data, 1)
    reader.varint(), reader.varint()
    return reader.varint()


def check_links(chain: Sequence[Segment]) -> None:
    """
    Check that each segment starts where the one before ended.

    Raises:
        ValueError: The first break: a missing or duplicate segment, a gap, an overlap, or an
            offset that was mirrored twice.
    """
    before: Segment | None = None
    for segment in chain:
        if before is not None:
            _check_link(before, segment)
        _check_runs(segment)
        before = segment


def _check_link(before: Segment, after: Segment) -> None:
    if after.number != before.number + 1:
        raise ValueError(f"offset map segment {before.number} is followed by {after.number}")
    if after.upstream_start != before.upstream_end:
        kind = "overlap" if after.upstream_start < before.upstream_end else "gap"
        raise ValueError(
            f"upstream {kind}: offset map segment {before.number} ends at {before.upstream_end}, "
            f"{after.number} starts at {after.upstream_start}"
        )
    if after.downstream_start != before.downstream_end:
        raise ValueError(
            f"downstream break: offset map segment {before.number} ends at "
            f"{before.downstream_end}, {after.number} starts at {after.downstream_start}"
        )


def _check_runs(segment: Segment) -> None:
    upstream, downstream = segment.upstream_start, segment.downstream_start or 0
    for run in segment.runs:
        if run.upstream < upstream:
            raise ValueError(
                f"upstream overlap in offset map segment {segment.number}: "
                f"{run.upstream} was mirrored before, next_offset={upstream}"
            )
        if run.downstream < downstream:
            raise ValueError(
                f"downstream not increasing in offset map segment {segment.number}: "
                f"{run.downstream} comes after {downstream}"
            )
        upstream, downstream = run.upstream_end, run.downstream_end
    if upstream > segment.upstream_end:
        raise ValueError(
            f"offset map segment {segment.number} has records up to {upstream}, "
            f"but ends at {segment.upstream_end}"
        )


def put_varint(out: bytearray, value: int) -> None:
    """Append an unsigned varint, seven bits a byte, lowest first."""
    while value > _LOW_BITS:
        out.append(value & _LOW_BITS | _MORE)
        value >>= 7
    out.append(value)


class _Reader:
    """Reads varints and stops at the end of the bytes."""

    __slots__ = ("_data", "at")

    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        self.at = at

    def varint(self) -> int:
        """Return the next number; accept only the form that `put_varint` writes."""
        value = 0
        for index, byte in enumerate(self._data[self.at : self.at + MAX_VARINT_BYTES]):
            value |= (byte & _LOW_BITS) << 7 * index
            if byte < _MORE:
                if byte == 0 and index > 0:
                    break
                self.at += index + 1
                return value
        raise ValueError(f"offset map is cut off or malformed at byte {self.at}")
