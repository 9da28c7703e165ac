"""
The source side of the lane: a member of the source group, and a fetcher that reads for it.

The client library keeps the membership. It is never given a partition to read, so it fetches
nothing: the fetcher reads what the engine assigns.
"""

import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Final, Protocol

from eos_mirror.core.records import Position, TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.ports import Polled, RebalanceListener, Source
from eos_mirror.wire.connection import wait_for
from eos_mirror.wire.fetcher import Fetcher
from eos_mirror.wire.outbox import Outbox
from eos_mirror.wire.translate import translated

AHEAD_BYTES: Final = 16 << 20
"""While more than this is not acknowledged by the target, nothing is handed over."""

ASK_MEMBER_S: Final = 0.02
"""How often the member is asked whether the group assigns or revokes partitions."""

NO_WAIT: Final = timedelta(0)


class Pumped(Protocol):
    """A producer that sends while the source is polled."""

    outbox: Outbox

    def pump(self) -> None:
        """See `producer.WireProducer`."""


class WireSource:
    """Implements `ports.Source`. Used by one thread."""

    def __init__(
        self,
        open_member: Callable[[RebalanceListener], Source],
        listener: RebalanceListener,
        fetcher: Fetcher,
        producer: Callable[[], Pumped | None],
    ) -> None:
        """
        Args:
            open_member: Joins the source group.
            producer: Returns the producer of the task; None before it is opened.
        """
        self._listener = listener
        self._fetcher = fetcher
        self._producer = producer
        self._rebalances = 0
        self._ask_member_at = float("-inf")
        self.member = open_member(self)

    def subscribe(self, topics: Sequence[str]) -> None:
        """See `ports.Source`."""
        self.member.subscribe(topics)

    def poll(self, *, wait: timedelta) -> Polled:
        """See `ports.Source`. Sends and acknowledges for the producer meanwhile."""
        until = time.monotonic() + wait.total_seconds()
        before, producer = self._rebalances, self._producer()
        while True:
            has_room = _has_room(producer)
            # with all parts of an answer queued, a request has a batch of every partition
            if producer is not None and not (has_room and self._fetcher.has_parts):
                producer.pump()
                has_room = _has_room(producer)
            self._ask_member()
            if self._rebalances != before:
                return Polled(more_pending=True)
            with translated("poll the source", side=Side.SOURCE):
                polled = self._fetcher.take() if has_room else None
            if polled is not None:
                return polled
            now = time.monotonic()
            if now >= until:
                return Polled(more_pending=not has_room or self._fetcher.more_pending)
            waits_for = [] if producer is None else producer.outbox.connections
            if has_room:
                waits_for = [*waits_for, *self._fetcher.connections]
            wait_for(waits_for, until=min(until, now + ASK_MEMBER_S))

    def _ask_member(self) -> None:
        """Let the member answer rebalances, some times a second."""
        now = time.monotonic()
        if now >= self._ask_member_at:
            self._ask_member_at = now + ASK_MEMBER_S
            self.member.poll(wait=NO_WAIT)

    def assign(self, positions: Mapping[TopicPartition, Position]) -> None:
        """See `ports.Source`."""
        self._fetcher.start(positions)

    def unassign(self, partitions: Sequence[TopicPartition]) -> None:
        """See `ports.Source`."""
        self._fetcher.stop(partitions)

    def commit(self, positions: Mapping[TopicPartition, Position]) -> None:
        """See `ports.Source`."""
        self.member.commit(positions)

    def close(self) -> None:
        """See `ports.Source`."""
        self.stop_reading()
        self.member.close()

    def stop_reading(self) -> None:
        """Close the connections that read. The member stays in the group."""
        self._fetcher.close()

    @property
    def topic_ids(self) -> Mapping[str, str]:
        """Ids of the topics that were assigned last, as Kafka's tools print them."""
        return {
            topic: urlsafe_b64encode(topic_id).decode().rstrip("=")
            for topic, topic_id in self._fetcher.topic_ids.items()
        }

    # ------------------------------------------------------------------ rebalances

    def on_granted(self, partitions: Sequence[TopicPartition]) -> None:
        """See `ports.RebalanceListener`."""
        self._rebalances += 1
        self._listener.on_granted(partitions)

    def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        """See `ports.RebalanceListener`."""
        self._rebalances += 1
        self._listener.on_revoked(partitions)
        self._fetcher.stop(partitions)

    def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
        """See `ports.RebalanceListener`."""
        self._rebalances += 1
        self._listener.on_lost(partitions)
        self._fetcher.stop(partitions)


def _has_room(producer: Pumped | None) -> bool:
    """Return True if more may be read: not too much waits for an acknowledgement."""
    return producer is None or producer.outbox.unacknowledged_bytes < AHEAD_BYTES
