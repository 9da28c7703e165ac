"""Partitions of a task that cannot be mirrored now, and when each is tried again."""

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from eos_mirror.core.records import TopicPartition
from eos_mirror.errors import ForeignWriter, PartitionStopped
from eos_mirror.ports import TaskContext
from eos_mirror.replication.partition import OwnedPartition

FIRST_PAUSE_S: Final = 5.0
LONGEST_PAUSE_S: Final = 300.0


@dataclass(slots=True)
class _Stop:
    """
    One stopped partition.

    Attributes:
        next_offset: Where reading stopped; None if it never began.
        again_at: Monotonic seconds; None while it is being tried.
    """

    reason: str
    next_offset: int | None
    pause_s: float
    again_at: float | None


class Stopped:
    """
    Stopped partitions. Each is tried again with growing pauses, as its cause may be gone.

    A try claims, fences and reads the position again, so it resets nothing. What is lost stays
    lost until an operator decides how to continue.
    """

    def __init__(self, context: TaskContext, *, now: Callable[[], float]) -> None:
        """
        Args:
            now: Monotonic seconds.
        """
        self._context = context
        self._now = now
        self._stops: dict[TopicPartition, _Stop] = {}
        self._resumed: list[TopicPartition] = []

    @property
    def reasons(self) -> Mapping[TopicPartition, str]:
        """Partitions that are not being tried now, for the task's reports."""
        return {p: stop.reason for p, stop in self._stops.items() if stop.again_at is not None}

    def taken_resumed(self) -> tuple[TopicPartition, ...]:
        """Return partitions that resumed since the last call."""
        resumed, self._resumed = tuple(self._resumed), []
        return resumed

    def note(
        self, partition: TopicPartition, fault: PartitionStopped, *, next_offset: int | None
    ) -> None:
        """Note that a partition stopped; the same reason is reported once."""
        before = self._stops.get(partition)
        pause_s = FIRST_PAUSE_S if before is None else min(2 * before.pause_s, LONGEST_PAUSE_S)
        # a foreign writer, or a lost end of the target, is never over by itself
        again_at = math.inf if isinstance(fault, ForeignWriter) else self._now() + pause_s
        reason = str(fault)
        self._stops[partition] = _Stop(reason, next_offset, pause_s, again_at)
        if before is None or before.reason != reason:
            self._context.event(
                "partition.stopped",
                {"partition": str(partition), "cause": type(fault).__name__, "reason": reason},
            )

    def hurry(self, topics: Collection[str]) -> None:
        """Try stopped partitions of these topics now: an operator asks for it."""
        for partition, stop in self._stops.items():
            if partition.topic in topics and stop.again_at is not None:
                stop.again_at, stop.pause_s = self._now(), FIRST_PAUSE_S / 2

    def due(self, *, held: Collection[str] = ()) -> list[TopicPartition]:
        """Return partitions to try now, but none of the topics that an operator has stopped."""
        now = self._now()
        found = []
        for partition, stop in self._stops.items():
            is_due = stop.again_at is not None and now >= stop.again_at
            if is_due and partition.topic not in held:
                stop.again_at = None
                found.append(partition)
        return found

    def adopted(self, partition: TopicPartition) -> None:
        """Note that a partition is read again. This ends a stop before its first record."""
        stop = self._stops.get(partition)
        if stop is not None and stop.next_offset is None:
            self._over(partition)

    def committed(self, owned: Mapping[TopicPartition, OwnedPartition]) -> None:
        """After a commit, end stops that lie before the committed position."""
        if not self._stops:
            return
        for partition, stop in list(self._stops.items()):
            one = owned.get(partition)
            if one is not None and _is_past(one.committed, stop.next_offset):
                self._over(partition)

    def _over(self, partition: TopicPartition) -> None:
        del self._stops[partition]
        self._resumed.append(partition)
        self._context.event("partition.resumed", {"partition": str(partition)})

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """Forget partitions that another task has now."""
        for partition in partitions:
            self._stops.pop(partition, None)


def _is_past(committed: int | None, stopped_at: int | None) -> bool:
    """Whether a commit proves that a partition is mirrored beyond the place where it stopped."""
    if committed is None:
        return False
    return stopped_at is None or committed > stopped_at
