"""
Heartbeats: one record a second that shows which clusters reach which.

Best effort: a failure is logged once, and mirroring does not wait.

Source: KIP-382; Kafka's MirrorHeartbeatConnector, which also writes heartbeats of disabled flows.
"""

import time
from collections.abc import Callable, Sequence
from datetime import timedelta

from eos_mirror.core.internal_records import Heartbeat
from eos_mirror.core.policy import HEARTBEATS_TOPIC
from eos_mirror.core.reported import Reported
from eos_mirror.errors import fields_of
from eos_mirror.kafka.topic_writer import BestEffortWriter
from eos_mirror.runtime.control import EventSink
from eos_mirror.runtime.scheduler import Scheduler
from eos_mirror.settings import clients
from eos_mirror.settings.heartbeats import HeartbeatSettings


class Heartbeats:
    """Writes the heartbeats of all pairs of clusters, in one thread."""

    def __init__(
        self,
        pairs: Sequence[HeartbeatSettings],
        *,
        after: timedelta,
        on_event: EventSink,
        on_first: Callable[[], None],
    ) -> None:
        """
        Args:
            after: Delay before the first heartbeat.
            on_event: Receives log events.
            on_first: Called when the first heartbeat of a pair has arrived: the topic exists now.
        """
        self._scheduler = Scheduler(on_error=lambda _name, _exc: None)  # each pair logs
        for pair in pairs:
            beat = _Pair(pair, on_event=on_event, on_first=on_first).beat
            self._scheduler.add(str(pair.flow), pair.interval, beat, after=after)

    def start(self) -> None:
        """Start the thread."""
        self._scheduler.start()

    def stop(self, within: timedelta) -> None:
        """Stop the thread; heartbeats in flight may be lost."""
        self._scheduler.stop(within)


class _Pair:
    """Writes the heartbeats of one pair of clusters."""

    def __init__(
        self, pair: HeartbeatSettings, *, on_event: EventSink, on_first: Callable[[], None]
    ) -> None:
        self._flow = pair.flow
        self._on_event, self._on_first = on_event, on_first
        self._is_first = True
        self._topic = BestEffortWriter(
            HEARTBEATS_TOPIC,
            clients.heartbeat_admin(pair),
            clients.heartbeat_producer(pair),
            replication_factor=pair.replication_factor,
            outlives_clients=True,
        )
        self._reported = Reported()

    def beat(self) -> None:
        """Write one heartbeat."""
        flow = {"flow": str(self._flow)}
        heartbeat = Heartbeat(
            source=self._flow.source,
            target=self._flow.target,
            timestamp_ms=time.time_ns() // 1_000_000,
        )
        try:
            if self._topic.write(
                heartbeat.key, heartbeat.value, timestamp_ms=heartbeat.timestamp_ms
            ):
                if self._reported.over():
                    self._on_event("failure.over", {**flow, "what": "heartbeats.failed"})
                if self._is_first:
                    self._is_first = False
                    self._on_first()
        except Exception as exc:  # noqa: BLE001 - one pair must not stop the other pairs
            if self._reported.is_new():
                self._on_event("heartbeats.failed", {**flow, **fields_of(exc)})
