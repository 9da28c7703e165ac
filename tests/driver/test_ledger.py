"""The driver's part of the ledger: which events are noted, in order, and what a failure delays."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from eos_mirror.core.ledger import Kind
from eos_mirror.core.side import Side
from eos_mirror.driver import ledger
from eos_mirror.driver.ledger import STORM_RESTARTS, STORM_WITHIN, LedgerKeeper, create_ledger
from eos_mirror.errors import MirrorError, TargetUnavailable
from eos_mirror.kafka.topics import Topics
from eos_mirror.testing import wait_until
from eos_mirror.testing.external import Cluster
from tests.driver.fakes import FLOW, SOON, Events, FakeTopics, entry, flow_of

DOWN = TargetUnavailable("no answer")


class Stage:
    """
    The ledger of a flow, with a clock that a test moves.

    Attributes:
        errors: What the next appends raise.
        entries: What was appended.
        events: What was reported.
        times: When the entries say that it happened.
        failed_at: When an append failed last.
    """

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.now_s = 100.0
        self.errors: list[MirrorError] = []
        self.entries: list[tuple[Kind, Mapping[str, Any]]] = []
        self.events = Events()
        self.times: list[datetime] = []
        self.failed_at = datetime.now(UTC)
        self.target = FakeTopics()
        patch.setattr(ledger, "time", SimpleNamespace(monotonic=lambda: self.now_s))
        patch.setattr(ledger, "PAUSE", timedelta(milliseconds=1))
        patch.setattr(ledger, "KafkaLedger", lambda *_: self)
        self.keeper = LedgerKeeper(
            flow_of(folder), cast("Topics", self.target), on_event=self.events
        )

    def append(self, kind: Kind, details: Mapping[str, Any], *, at: datetime) -> None:
        """See `KafkaLedger`."""
        if self.errors:
            self.failed_at = datetime.now(UTC)
            raise self.errors.pop(0)
        self.entries.append((kind, details))
        self.times.append(at)

    def wait_for(self, count: int) -> None:
        """Wait until this many entries are written."""
        wait_until(lambda: len(self.entries) >= count, within=SOON, what="entries")


def is_writing(stage: Stage) -> bool:
    """Return True if the thread of the ledger runs. Other tests may leave theirs for a moment."""
    return stage.keeper._thread.is_alive()  # noqa: SLF001 (nothing else shows that it has ended)


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """Not started; stopped after the test."""
    made = Stage(tmp_path, monkeypatch)
    yield made
    made.keeper.stop()


def test_only_some_events_are_noted_and_in_their_order(stage: Stage) -> None:
    """Also those from before the start. The flow is in the name of the topic."""
    stage.keeper.hear("incarnation.fenced", {"flow": "A->B", "transactional_id": "x"})
    stage.keeper.hear("flow.summary", {"records": 7})
    stage.keeper.start()
    stage.keeper.hear("partition.stopped", {"partition": "orders-0"})
    stage.keeper.hear("partition.gap", {"offsets": 2})
    stage.wait_for(3)

    assert stage.entries == [
        (Kind.FENCE, {"transactional_id": "x"}),
        (Kind.STOP, {"partition": "orders-0"}),
        (Kind.GAP, {"offsets": 2}),
    ]
    assert list(stage.target.created) == [FLOW.ledger_topic]


def test_a_ledger_without_entries_creates_no_topic(stage: Stage) -> None:
    """Most flows never need one."""
    stage.keeper.start()
    stage.keeper.hear("ready", {})
    stage.keeper.stop()

    assert stage.target.requests == []


def test_many_restarts_in_a_minute_are_one_entry_until_a_calm_period(stage: Stage) -> None:
    """A single restart is no entry; restarts that are spread over an hour are none either."""

    def restart(count: int, *, every_s: float) -> None:
        for number in range(count):
            stage.keeper.hear("task.restarting", {"reason": f"reason {number}"})
            stage.now_s += every_s

    restart(STORM_RESTARTS, every_s=STORM_WITHIN.total_seconds() / 2)
    stage.now_s += 2 * STORM_WITHIN.total_seconds()
    restart(STORM_RESTARTS - 1, every_s=1)
    stage.now_s += 2 * STORM_WITHIN.total_seconds()
    restart(3 * STORM_RESTARTS, every_s=1)
    stage.now_s += 2 * STORM_WITHIN.total_seconds()
    restart(STORM_RESTARTS, every_s=1)
    stage.keeper.hear("partition.gap", {})
    stage.keeper.start()
    stage.wait_for(3)

    storm = {"restarts": 5, "within_s": 60.0, "reason": "reason 4"}
    assert stage.entries == [(Kind.STORM, storm), (Kind.STORM, storm), (Kind.GAP, {})]


def test_an_entry_is_written_when_the_target_answers_again(stage: Stage) -> None:
    """The failure is reported once, and no later entry is written before this one."""
    stage.errors = [DOWN, DOWN, DOWN]
    stage.keeper.hear("partition.gap", {"offsets": 1})
    stage.keeper.hear("partition.gap", {"offsets": 2})
    stage.keeper.start()
    stage.wait_for(2)

    assert stage.entries == [(Kind.GAP, {"offsets": 1}), (Kind.GAP, {"offsets": 2})]
    wait_until(lambda: len(stage.events) > 1, within=SOON, what="the end of the failure")
    assert stage.events.names == ["ledger.failed", "failure.over"]
    assert stage.events.of("failure.over") == [{"what": "ledger.failed"}]
    assert stage.times[0] <= stage.failed_at, "it has the time of its event"


def test_a_topic_that_cannot_be_created_is_reported_and_delays_nothing_else(stage: Stage) -> None:
    """The stop does not wait for it either."""
    stage.target.refused = {FLOW.ledger_topic: MirrorError("INVALID_REPLICATION_FACTOR")}
    stage.keeper.hear("partition.gap", {})
    stage.keeper.start()
    wait_until(lambda: bool(stage.events), within=SOON, what="a failure")
    stage.keeper.stop()

    (failed,) = stage.events.of("ledger.failed")
    assert failed["reason"] == "INVALID_REPLICATION_FACTOR"
    assert not is_writing(stage)


def test_a_stop_writes_what_is_queued(stage: Stage) -> None:
    """The last events of a run explain why it ended."""
    stage.keeper.start()
    for number in range(50):
        stage.keeper.hear("partition.gap", {"offsets": number})
    stage.keeper.stop()

    assert len(stage.entries) == 50
    assert not is_writing(stage)


def test_a_stop_tries_a_failed_entry_once_more(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The target may be back by then."""
    monkeypatch.setattr(ledger, "PAUSE", SOON)
    stage.errors = [DOWN]
    stage.keeper.hear("partition.gap", {"offsets": 1})
    stage.keeper.start()
    wait_until(lambda: bool(stage.events), within=SOON, what="a failure")
    stage.keeper.stop()

    assert stage.entries == [(Kind.GAP, {"offsets": 1})]


@pytest.mark.brokers
def test_a_ledger_is_kept_indefinitely(tmp_path: Path, target_cluster: Cluster, ns: str) -> None:
    """Whatever the defaults of the brokers are. A second call changes nothing."""
    keys = {
        "clusters": f"A, B, {ns}",
        f"{ns}.bootstrap.servers": target_cluster.bootstrap,
        f"A->{ns}.enabled": "true",
        "A->B.enabled": "false",
    }
    settings = flow_of(tmp_path, keys)
    topics = Topics(target_cluster.client_config(), side=Side.TARGET)
    for _ in range(2):
        create_ledger(settings, topics)

    name = settings.flow.ledger_topic
    entries = topics.describe([name]).entries[name]
    assert topics.list()[name] == 1
    assert entries["cleanup.policy"] == entry("delete")
    assert entries["retention.ms"] == entries["retention.bytes"] == entry(-1)
