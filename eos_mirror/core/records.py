"""The values that name records and positions."""

from typing import NamedTuple


class TopicPartition(NamedTuple):
    """One partition of one topic, on the cluster that the context says."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Position(NamedTuple):
    """
    Where reading goes on.

    Attributes:
        next_offset: First record not yet read (last offset + 1).
        leader_epoch: Epoch of the last record read; None when nothing was read yet.
    """

    next_offset: int
    leader_epoch: int | None = None
