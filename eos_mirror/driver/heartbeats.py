"""
Heartbeats: a record a second that says which clusters reach which.

Best effort: what a cluster does not take is said once, and mirroring does not wait for it.

Source: KIP-382; Kafka's MirrorHeartbeatConnector, which writes those of disabled flows, too.
"""

import time
from collections.abc import Sequence
from datetime import timedelta

from eos_mirror.core.internal_records import Heartbeat
from eos_mirror.core.policy import HEARTBEATS_TOPIC
from eos_mirror.kafka.best_effort import BestEffortTopic
from eos_mirror.runtime.control import EventSink
from eos_mirror.runtime.scheduler import Scheduler
from eos_mirror.settings import clients
from eos_mirror.settings.model import HeartbeatSettings


class Heartbeats:
    """Those of all pairs, in one thread."""

    def __init__(
        self, pairs: Sequence[HeartbeatSettings], *, after: timedelta, on_event: EventSink
    ) -> None:
        """
        Args:
            after: When they begin, from now.
            on_event: Takes log events.
        """
        self._scheduler = Scheduler(on_error=lambda _name, _exc: None)  # a pair tells by itself
        for pair in pairs:
            beat = _Pair(pair, on_event=on_event).beat
            self._scheduler.add(str(pair.flow), pair.interval, beat, after=after)

    def start(self) -> None:
        """Begin."""
        self._scheduler.start()

    def stop(self, within: timedelta) -> None:
        """End; what is under way may be lost."""
        self._scheduler.stop(within)


class _Pair:
    """Of one pair of clusters."""

    def __init__(self, pair: HeartbeatSettings, *, on_event: EventSink) -> None:
        self._flow = pair.flow
        self._on_event = on_event
        self._topic = BestEffortTopic(
            HEARTBEATS_TOPIC,
            clients.heartbeat_admin(pair),
            clients.heartbeat_producer(pair),
            replication_factor=pair.replication_factor,
            outlives_clients=True,
        )
        self._is_told = False

    def beat(self) -> None:
        """One."""
        heartbeat = Heartbeat(
            source=self._flow.source,
            target=self._flow.target,
            timestamp_ms=time.time_ns() // 1_000_000,
        )
        try:
            if self._topic.write(
                heartbeat.key, heartbeat.value, timestamp_ms=heartbeat.timestamp_ms
            ):
                self._is_told = False
        except Exception as exc:  # noqa: BLE001 - no heartbeat is worth more than the others
            if not self._is_told:
                self._is_told = True
                reason = f"{type(exc).__name__}: {exc}"
                self._on_event("heartbeats.failed", {"flow": str(self._flow), "reason": reason})
