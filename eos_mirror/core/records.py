"""Records, partitions and positions."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from operator import sub
from typing import ClassVar, NamedTuple, Protocol

Headers = list[tuple[str, bytes | None]]


class TopicPartition(NamedTuple):
    """One partition of one topic; the context determines the cluster."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Position(NamedTuple):
    """
    Where reading resumes.

    Attributes:
        next_offset: First record not yet read (last offset + 1).
        leader_epoch: Epoch of the last record read; None if it is unknown, or nothing was read.
    """

    next_offset: int
    leader_epoch: int | None = None


class Stretch(NamedTuple):
    """Adjacent records of the source, and how many copies each of them has."""

    first: int
    length: int
    copies: int = 1


class TopicRecord(NamedTuple):
    """A record for a topic that no partition is copied to; None: the client chooses a partition."""

    key: bytes | None
    value: bytes | None
    headers: Headers | None = None
    partition: int | None = None


class Outline(NamedTuple):
    """
    What the batches of a run say of its records before these are decoded.

    Attributes:
        largest_batch_bytes: Size of the largest batch, as the log stores it.
        last_ms: Largest timestamp; milliseconds since the epoch.
    """

    largest_batch_bytes: int
    last_ms: int


class RecordRun(Protocol):
    """
    Adjacent records of one source partition, in offset order; at least one.

    This is all that the engine knows of the records between source and producer. A lane's
    producers accept the runs that its source returns, in whatever form they hold them.
    """

    @property
    def partition(self) -> TopicPartition:
        """The source partition."""

    @property
    def count(self) -> int:
        """Number of records."""

    @property
    def size_bytes(self) -> int:
        """Sum of the value lengths, or of the batches as stored; the byte boundary counts this."""

    @property
    def timestamps(self) -> Sequence[int]:
        """Milliseconds since the epoch; -1 is a record without one. The extremes are included."""

    @property
    def leader_epoch(self) -> int | None:
        """Epoch of the last record; None if the broker did not report it."""

    @property
    def next_offset(self) -> int:
        """Where reading resumes after the run."""

    @property
    def failure(self) -> str:
        """Why the message handler failed for its only record; empty if it did not."""

    def stretches(self) -> Sequence[Stretch | tuple[int, int]]:
        """Return the upstream offsets as stretches without a gap: (first, length)."""

    def from_offset(self, next_offset: int) -> "RecordRun | None":
        """Return the part at or after `next_offset`; None if it is empty."""

    def outline(self) -> Outline | None:
        """Return what its batches say of its records; None if they are decoded."""

    def decoded(self) -> "DecodedRun":
        """Return the records."""


@dataclass(slots=True, kw_only=True)
class DecodedRun:
    """
    A decoded run: its records as parallel columns. Implements `RecordRun`.

    Columns, not objects per record, because the path from consumer to producer is then a
    chain of built-in functions (benchmarks/throughput.py shows what that is worth).

    Attributes:
        offsets: Upstream offsets, strictly increasing.
        headers: None where a record has none.
        codec: Number of the codec of the batches that held the records; None: unknown.
        why: Why they were decoded, as `TaskReport.written` counts them.
    """

    partition: TopicPartition
    offsets: Sequence[int]
    timestamps: Sequence[int]
    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    headers: Sequence[Headers | None]
    leader_epoch: int | None
    size_bytes: int
    codec: int | None = None
    why: str = "changed"

    failure: ClassVar[str] = ""
    """See `RecordRun`."""

    @property
    def count(self) -> int:
        """See `RecordRun`."""
        return len(self.offsets)

    @property
    def next_offset(self) -> int:
        """See `RecordRun`."""
        return self.offsets[-1] + 1

    def stretches(self) -> Sequence[Stretch | tuple[int, int]]:
        """See `RecordRun`."""
        return stretches(self.offsets)

    def whole(self, count: int) -> int:
        """Return how many of these first records can be separated from the others."""
        return count

    def siblings(self, start: int, stop: int) -> tuple[int, int]:
        """Return the range of these records with all copies of the same records of the source."""
        return start, stop

    def outline(self) -> None:
        """See `RecordRun`."""

    def decoded(self) -> "DecodedRun":
        """Return the run itself."""
        return self

    def from_offset(self, next_offset: int) -> "DecodedRun | None":
        """See `RecordRun`."""
        if self.offsets[0] >= next_offset:
            return self
        skip = bisect_left(self.offsets, next_offset)
        return self.part(skip, len(self.offsets)) if skip < len(self.offsets) else None

    def head(self, count: int, *, after: int | None) -> "DecodedRun":
        """
        Return the first records.

        Args:
            after: Leader epoch of the record before the run. Epochs never decrease, so if the last
                record of the run has it, too, every record has it.
        """
        part = self.part(0, count)
        if after == self.leader_epoch:
            part.leader_epoch = after
        return part

    def part(self, start: int, stop: int) -> "DecodedRun":
        """
        Return the records at these indices, `stop` not included; at least one.

        Without the last record of the run, the epoch of the part's last record is unknown. A later
        epoch in its place would make the next record look like one of another log.
        """
        if start == 0 and stop == len(self.offsets):
            return self
        values = self.values[start:stop]
        return replace(
            self,
            offsets=self.offsets[start:stop],
            timestamps=self.timestamps[start:stop],
            keys=self.keys[start:stop],
            values=values,
            headers=self.headers[start:stop],
            leader_epoch=self.leader_epoch if stop == len(self.offsets) else None,
            size_bytes=sum(len(value) for value in values if value is not None),
        )

    def selected(self, indices: Sequence[int], headers: Sequence[Headers | None]) -> "DecodedRun":
        """
        Return the records at these indices, at least one, with other headers.

        The epoch is unknown without the last record, as in `part`.
        """
        values = [self.values[i] for i in indices]
        return replace(
            self,
            offsets=[self.offsets[i] for i in indices],
            timestamps=[self.timestamps[i] for i in indices],
            keys=[self.keys[i] for i in indices],
            values=values,
            headers=headers,
            leader_epoch=self.leader_epoch if indices[-1] == len(self.offsets) - 1 else None,
            size_bytes=sum(len(value) for value in values if value is not None),
        )


def stretches(offsets: Sequence[int]) -> list[tuple[int, int]]:
    """Return strictly increasing offsets as stretches without a gap: (first, length)."""
    if not offsets:
        return []
    first, count = offsets[0], len(offsets)
    if offsets[-1] - first == count - 1:
        return [(first, count)]
    steps = map(sub, islice(offsets, 1, None), offsets)
    starts = [0, *(index for index, step in enumerate(steps, 1) if step != 1), count]
    return [
        (offsets[start], end - start)
        for start, end in zip(starts, islice(starts, 1, None), strict=False)
    ]
