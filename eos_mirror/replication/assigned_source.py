"""
Reads the partitions that the driver assigns to a task, where no consumer group does.

The engine sees the rebalances of a group: from inside `poll`, on the thread of the task.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from eos_mirror.core.records import Position, TopicPartition
from eos_mirror.ports import Polled, RebalanceListener, Source, TaskContext
from eos_mirror.replication.suspension import Suspension


class AssignedSource:
    """
    Implements `ports.Source` over a source that is a member of no group. Used by one thread.

    Invariant A: the task holds what the newest orders that it has seen assign to its slot.
    """

    def __init__(
        self,
        source: Source,
        listener: RebalanceListener,
        context: TaskContext,
        suspension: Suspension | None,
    ) -> None:
        """
        Args:
            source: Never subscribed.
            listener: Called when the orders assign other partitions.
            context: Gives the orders and the slot.
            suspension: Ends a task that did not poll for too long; None: claims fence it.
        """
        self._suspension = suspension
        self._source = source
        self._listener = listener
        self._context = context
        self._seen: Mapping[TopicPartition, int] | None = None
        self._assigned: set[TopicPartition] = set()

    def subscribe(self, topics: Sequence[str]) -> None:
        """See `ports.Source`; nothing to do, as the orders name the partitions."""

    def poll(self, *, wait: timedelta) -> Polled:
        """See `ports.Source`."""
        if self._suspension is not None:
            self._suspension.poll()
        assigned = self._context.orders().assigned
        if assigned is not self._seen:
            self._seen = assigned
            self._follow({one for one, slot in assigned.items() if slot == self._context.slot})
        return self._source.poll(wait=wait)

    def _follow(self, assigned: set[TopicPartition]) -> None:
        gone, new = sorted(self._assigned - assigned), sorted(assigned - self._assigned)
        self._assigned = assigned
        if gone:
            self._listener.on_revoked(gone)
            self._source.unassign(gone)
        if new:
            self._listener.on_granted(new)

    def assign(self, positions: Mapping[TopicPartition, Position]) -> None:
        """See `ports.Source`."""
        self._source.assign(positions)

    def unassign(self, partitions: Sequence[TopicPartition]) -> None:
        """See `ports.Source`."""
        self._source.unassign(partitions)

    def commit(self, positions: Mapping[TopicPartition, Position]) -> None:
        """See `ports.Source`; nothing to do without a group."""

    def close(self) -> None:
        """See `ports.Source`."""
        self._source.close()
