"""What operators want of a task's partitions: paused, stopped, tried again, or limited."""

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import timedelta

from eos_mirror.core.messages import Orders, TaskThrottle, Throttle
from eos_mirror.core.records import TopicPartition
from eos_mirror.replication.holdings import Holdings
from eos_mirror.replication.mode import Mode
from eos_mirror.replication.partition import OwnedPartition
from eos_mirror.replication.throttled_source import ThrottledSource

Commit = Callable[[Sequence[OwnedPartition]], bool]
"""Commits these partitions, with everything in memory that others need; False if it could not."""


class OperatorOrders:
    """
    Does what the orders say about topics. Used between two transactions only.

    A paused partition stays owned, with its claim, and is not read. A stopped one is released. Its
    position is still committed again in time, or the target would forget it.

    Attributes:
        holdings, mode: Of the task.
        stopped_topics: Topics whose partitions no task holds.

    Invariants:
        A: A partition that is resumed or started is acquired again; nothing in memory is used.
        B: A partition of a stopped topic is owned only for the time of one commit.
    """

    def __init__(
        self,
        holdings: Holdings,
        source: ThrottledSource,
        mode: Mode,
        commit: Commit,
        keepalive: timedelta,
        now: Callable[[], float],
    ) -> None:
        """
        Args:
            keepalive: A position is committed at least this often.
            now: Monotonic seconds.
        """
        self.holdings = self._hold = holdings
        self._source = source
        self.mode = self._mode = mode
        self._commit = commit
        self._keepalive_s = keepalive.total_seconds()
        self._now = now
        self.stopped_topics: Collection[str] = ()
        self._released: dict[TopicPartition, float] = {}  # when each was committed last

    @property
    def throttles(self) -> tuple[TaskThrottle, ...]:
        """Return the limits that are applied, with what was mirrored under each."""
        return self._source.used()

    def throttle(self, throttles: Sequence[Throttle]) -> None:
        """Apply these limits to what is read from now on; no partition is released."""
        self._source.follow(throttles)

    def have_changed(self, orders: Orders) -> bool:
        """Return True if `follow` has something to do. Costs nothing."""
        paused, stopped = orders.paused, orders.stopped_topics
        return self._hold.pauses.have_changed(paused) or stopped is not self.stopped_topics

    def follow(self, orders: Orders) -> None:
        """Stop reading paused topics, release stopped ones, and acquire all others again."""
        owned = self._hold.owned
        if not self._release(
            [o for o in owned.values() if o.source.topic in orders.stopped_topics]
        ):
            return  # the next turn tries again
        self.stopped_topics = orders.stopped_topics
        self._source.unassign(self._hold.pauses.pause(orders.paused, owned))
        resumed = self._hold.pauses.resumed(owned)
        self._hold.forget(one.source for one in resumed)
        self._mode.release([one.remote for one in resumed])
        started = [p for p in self._released if p.topic not in self.stopped_topics]
        self.forget(started)
        self._mode.acquisition.grant([*(one.source for one in resumed), *started])

    def own(self, new: Sequence[OwnedPartition]) -> list[OwnedPartition]:
        """Take note of partitions that are owned now; return those to read."""
        self._hold.pauses.own(new)
        stopped = [one for one in new if one.source.topic in self.stopped_topics]
        self._release(stopped)
        return self._hold.pauses.to_read(one for one in new if one not in stopped)

    def keep_alive(self) -> None:
        """Acquire stopped partitions whose positions must be committed again: `own` does that."""
        now = self._now()
        due = [p for p, at in self._released.items() if now - at > self._keepalive_s]
        if due:
            self._released.update(dict.fromkeys(due, now))
            self._mode.acquisition.grant(due)

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """Forget partitions that the group takes back, or that are started."""
        for partition in partitions:
            self._released.pop(partition, None)

    def _release(self, owned: Sequence[OwnedPartition]) -> bool:
        """Commit and release partitions; return False if they could not be committed."""
        if not owned:
            return True
        if not self._commit(owned):
            return False
        sources = [one.source for one in owned]
        self._source.unassign(sources)
        self._hold.forget(sources)
        self._mode.release([one.remote for one in owned])
        self._released.update(dict.fromkeys(sources, self._now()))
        return True
