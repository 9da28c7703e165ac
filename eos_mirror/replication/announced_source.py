"""Notifies a user's rebalance listener of the partitions of a task."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

from eos_mirror.core.rebalance_listener import UserListener
from eos_mirror.core.records import Position, TopicPartition
from eos_mirror.errors import RestartTask
from eos_mirror.ports import Polled, RebalanceListener, Source

Method = Callable[[Sequence[TopicPartition]], object]


class AnnouncedSource:
    """
    Implements `ports.Source` over another source. Used by one thread.

    Invariant A: the engine is called in any case, and what the user's class raises ends the task
    after the poll: a callback of a rebalance must not raise.
    """

    def __init__(
        self,
        open_source: Callable[[RebalanceListener], Source],
        listener: RebalanceListener,
        user: UserListener,
    ) -> None:
        """
        Args:
            open_source: Opens the source below.
            listener: The engine.
            user: The user's class.
        """
        self._listener = listener
        self._user = user
        self._failure: Exception | None = None
        self._source = open_source(self)

    def subscribe(self, topics: Sequence[str]) -> None:
        """See `ports.Source`."""
        self._source.subscribe(topics)

    def poll(self, *, wait: timedelta) -> Polled:
        """See `ports.Source`."""
        polled = self._source.poll(wait=wait)
        if self._failure is not None:
            failed = f"{type(self._failure).__name__}: {self._failure}"
            raise RestartTask(f"the rebalance listener failed: {failed}") from self._failure
        return polled

    def assign(self, positions: Mapping[TopicPartition, Position]) -> None:
        """See `ports.Source`."""
        self._source.assign(positions)

    def unassign(self, partitions: Sequence[TopicPartition]) -> None:
        """See `ports.Source`."""
        self._source.unassign(partitions)

    def commit(self, positions: Mapping[TopicPartition, Position]) -> None:
        """See `ports.Source`."""
        self._source.commit(positions)

    def close(self) -> None:
        """See `ports.Source`."""
        self._source.close()

    # ------------------------------------------------------------------ rebalances

    def on_granted(self, partitions: Sequence[TopicPartition]) -> None:
        """See `ports.RebalanceListener`."""
        self._tell(self._user.on_partitions_assigned, partitions)
        self._listener.on_granted(partitions)

    def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        """See `ports.RebalanceListener`."""
        self._listener.on_revoked(partitions)
        self._tell(self._user.on_partitions_revoked, partitions)

    def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
        """See `ports.RebalanceListener`."""
        self._listener.on_lost(partitions)
        self._tell(self._user.on_partitions_lost, partitions)

    def _tell(self, call: Method, partitions: Sequence[TopicPartition]) -> None:
        try:
            call(list(partitions))
        except Exception as exc:  # noqa: BLE001 (user code may raise anything; raised after the poll)
            self._failure = exc
