"""
The driver's part of the ledger: writes reported events in a thread of its own.

Best effort, unlike the entries that tasks write: a killed driver loses its queued entries.
"""

import queue
import threading
import time
from collections import deque
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from eos_mirror.core.ledger import Kind
from eos_mirror.core.reported import Reported
from eos_mirror.errors import fields_of
from eos_mirror.kafka.ledger import KafkaLedger
from eos_mirror.kafka.topics import Topics, TopicSpec
from eos_mirror.runtime.control import EventSink
from eos_mirror.settings.clients import claims_producer
from eos_mirror.settings.model import FlowSettings

KINDS: Final[Mapping[str, Kind]] = {
    "incarnation.fenced": Kind.FENCE,
    "partition.stopped": Kind.STOP,
    "partition.resumed": Kind.RESUME,
    "partition.gap": Kind.GAP,
}
"""By event. A storm consists of many events. Tasks write drops themselves, before they commit."""

RESTARTING = "task.restarting"
STORM_RESTARTS = 5
STORM_WITHIN = timedelta(minutes=1)
KEPT_FOR_EVER = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
LAST_WORDS = timedelta(seconds=5)
PAUSE = timedelta(seconds=5)

Entry = tuple[Kind, Mapping[str, Any], datetime]
"""Kind, details, and when it happened: the target may not answer for a while."""


class LedgerKeeper:
    """Writes the entries of one flow, in the order of their events."""

    def __init__(
        self,
        settings: FlowSettings,
        topics: Topics,
        *,
        on_event: EventSink,
    ) -> None:
        """
        Args:
            topics: Topics of the target.
            on_event: Receives log events: what keeps entries from being written, once until they
                are written.
        """
        self._settings = settings
        self._topics = topics
        self._on_event = on_event
        self._heard: queue.SimpleQueue[Entry | None] = queue.SimpleQueue()
        self._storm = _Storm()
        self._ledger = KafkaLedger(claims_producer(settings), settings.flow.ledger_topic)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ledger", daemon=True)

    def create(self) -> None:
        """
        Create the topic if it does not exist.

        Raises:
            NotAuthorized: Create is denied.
            RestartTask: The target did not answer (TargetUnavailable).
        """
        create_ledger(self._settings, self._topics)

    def hear(self, name: str, fields: Mapping[str, Any]) -> None:
        """Queue an entry for an event of the flow, if it needs one. Never blocks."""
        details = {key: value for key, value in fields.items() if key != "flow"}
        if name in KINDS:
            self._heard.put((KINDS[name], details, datetime.now(UTC)))
        elif name == RESTARTING and self._storm.grows(time.monotonic()):
            summary = {"restarts": STORM_RESTARTS, "within_s": STORM_WITHIN.total_seconds()}
            why = {**summary, "reason": details.get("reason", "")}
            self._heard.put((Kind.STORM, why, datetime.now(UTC)))

    def start(self) -> None:
        """Start writing."""
        self._thread.start()

    def stop(self) -> None:
        """Write the queued entries, if the target accepts them, and stop."""
        self._stopping.set()
        self._heard.put(None)
        if self._thread.ident is not None:
            self._thread.join(LAST_WORDS.total_seconds())

    def _run(self) -> None:
        while (entry := self._heard.get()) is not None:
            reported = Reported()
            while not self._write(entry, reported):
                if self._stopping.is_set():
                    return
                self._stopping.wait(PAUSE.total_seconds())
            if reported.over():
                self._on_event("failure.over", {"what": "ledger.failed"})

    def _write(self, entry: Entry, reported: Reported) -> bool:
        """Try to write an entry; return whether the target accepted it."""
        kind, details, at = entry
        try:
            self.create()
            self._ledger.append(kind, details, at=at)
        except Exception as exc:  # noqa: BLE001 - no error may stop the ledger
            if reported.is_new():
                self._on_event("ledger.failed", fields_of(exc))
            return False
        return True


class _Storm:
    """Detects many restarts in a short time. A storm counts once, until a calm period."""

    def __init__(self) -> None:
        self._restarts: deque[float] = deque(maxlen=STORM_RESTARTS)

    def grows(self, now: float) -> bool:
        """Count a restart, and return True if it makes a storm."""
        if self._restarts and now - self._restarts[-1] > STORM_WITHIN.total_seconds():
            self._restarts.clear()
        was_storm = self._is_storm()
        self._restarts.append(now)
        return self._is_storm() and not was_storm

    def _is_storm(self) -> bool:
        if len(self._restarts) < STORM_RESTARTS:
            return False
        return self._restarts[-1] - self._restarts[0] <= STORM_WITHIN.total_seconds()


def note(settings: FlowSettings, topics: Topics, kind: Kind, details: Mapping[str, Any]) -> None:
    """
    Append an entry, and create the ledger if it does not exist.

    Args:
        topics: Of the target.

    Errors: as `create_ledger` and `KafkaLedger.append`.
    """
    create_ledger(settings, topics)
    KafkaLedger(claims_producer(settings), settings.flow.ledger_topic).append(kind, details)


def create_ledger(settings: FlowSettings, topics: Topics) -> None:
    """
    Create the ledger of a flow if it does not exist.

    Raises:
        NotAuthorized: Create is denied.
        RestartTask: The target did not answer (TargetUnavailable).
    """
    flow = settings.flow
    spec = TopicSpec(
        name=flow.ledger_topic,
        partitions=1,
        replication_factor=settings.internal_topic_replication_factor,
        config={
            **KEPT_FOR_EVER,
            "unclean.leader.election.enable": "false",
            **settings.min_in_sync,
        },
    )
    topics.ensure(spec)
