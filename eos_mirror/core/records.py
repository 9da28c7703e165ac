"""Records, partitions and positions."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

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
        leader_epoch: Epoch of the last record read; None when nothing was read yet.
    """

    next_offset: int
    leader_epoch: int | None = None


@dataclass(slots=True, kw_only=True)
class RecordRun:
    """
    Adjacent records of one source partition, in offset order, as parallel columns.

    Columns, not objects per record, because the path from consumer to producer is then a
    chain of built-in functions (benchmarks/throughput.py shows what that is worth).

    Attributes:
        offsets: Upstream offsets, strictly increasing.
        timestamps: Milliseconds since the epoch; -1 is a record without one.
        headers: None where a record has none.
        leader_epoch: Epoch of the last record; None if the broker did not report it.
        size_bytes: Sum of the value lengths; the byte boundary counts this.
    """

    partition: TopicPartition
    offsets: Sequence[int]
    timestamps: Sequence[int]
    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    headers: Sequence[Headers | None]
    leader_epoch: int | None
    size_bytes: int

    @property
    def next_offset(self) -> int:
        """Where reading resumes after the run."""
        return self.offsets[-1] + 1

    def from_offset(self, next_offset: int) -> "RecordRun | None":
        """Return the part at or after `next_offset`; None if it is empty."""
        if self.offsets[0] >= next_offset:
            return self
        skip = bisect_left(self.offsets, next_offset)
        return self.part(skip, len(self.offsets)) if skip < len(self.offsets) else None

    def part(self, start: int, stop: int) -> "RecordRun":
        """Return the records at these indices, `stop` not included; at least one."""
        if start == 0 and stop == len(self.offsets):
            return self
        values = self.values[start:stop]
        return RecordRun(
            partition=self.partition,
            offsets=self.offsets[start:stop],
            timestamps=self.timestamps[start:stop],
            keys=self.keys[start:stop],
            values=values,
            headers=self.headers[start:stop],
            leader_epoch=self.leader_epoch,
            size_bytes=sum(len(value) for value in values if value is not None),
        )
