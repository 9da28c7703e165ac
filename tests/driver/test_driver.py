"""A whole run with fake clusters and fake tasks: what it checks, awaits and reports."""

import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from eos_mirror.core.flow import Flow
from eos_mirror.core.messages import TaskReport
from eos_mirror.core.records import TopicPartition
from eos_mirror.driver import chores, cluster_watch, driver, first_contact, flow, leader_election
from eos_mirror.driver.driver import Driver, Report
from eos_mirror.errors import ConfigError, SourceUnavailable, TargetUnavailable
from eos_mirror.ports import GroupOffset
from eos_mirror.runtime.outcome import Ending, Outcome
from eos_mirror.settings.model import FlowSettings
from tests.driver.fake_leadership import FakeLeadership, alone
from tests.driver.fake_probe import FakeProbe
from tests.driver.fake_tasks import FakeLauncher, FakeTask
from tests.driver.fakes import (
    ORDERS,
    REMOTE,
    Events,
    FakeClusters,
    FakeOffsets,
    group_offset,
    settings_of,
)

GOOD = Report(totals={}, stopped={}, refused={}, failed=[], ready_s=1.0)
Make = Callable[..., "Stage"]


class Growing(FakeOffsets):
    """Each answer is one record further than the one before."""

    def read(
        self, partitions: Sequence[TopicPartition], _deadline: object = None
    ) -> dict[TopicPartition, GroupOffset]:
        """See `CommittedOffsets`."""
        found = super().read(partitions)
        for partition, offset in found.items():
            self.committed[partition] = group_offset(offset.position.next_offset + 1)
        return found


def mirrors(task: FakeTask) -> None:
    """Mirror the only partition."""
    task.beat(TaskReport(records=7, owned=1))


def answer_all(patch: pytest.MonkeyPatch) -> None:
    """Let every cluster answer when it is asked whether it answers."""
    patch.setattr(first_contact, "ClusterProbe", FakeProbe)
    patch.setattr(cluster_watch, "ClusterProbe", FakeProbe)


class Stage:
    """A driver of one flow, A->B, with one partition that ends at offset 7."""

    def __init__(
        self,
        folder: Path,
        patch: pytest.MonkeyPatch,
        keys: Mapping[str, object],
        act: Callable[[FakeTask], None],
        shadow_offsets: FakeOffsets,
    ) -> None:
        self.clusters, self.events = FakeClusters(shadow_offsets=shadow_offsets), Events()
        self.clusters.source.counts = {"orders": 1}
        self.clusters.metadata.ends = {ORDERS: 7}
        self.clusters.install(patch)
        self.launcher, self.stop = FakeLauncher(act), threading.Event()
        patch.setattr(driver, "LocalLauncher", lambda: self.launcher)
        answer_all(patch)
        patch.setattr(driver, "CAUGHT_UP_POLL_S", 0.001)
        patch.setattr(leader_election, "Leadership", alone)
        quiet = {"emit.checkpoints.enabled": "false", "emit.heartbeats.enabled": "false"}
        self.settings = settings_of(folder, {**quiet, **keys})
        self.driver = Driver(self.settings, on_event=self.events, stop=self.stop)


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Makes a driver with these keys and shadow offsets, whose tasks begin with this act."""

    def one(
        keys: Mapping[str, object] | None = None,
        *,
        act: Callable[[FakeTask], None] = mirrors,
        offsets: FakeOffsets | None = None,
    ) -> Stage:
        return Stage(tmp_path, monkeypatch, keys or {}, act, offsets or FakeOffsets())

    return one


@pytest.mark.parametrize(
    ("report", "is_good"),
    [
        (GOOD, True),
        (Report(totals={}, stopped={"A->B": {}}, refused={}, failed=[], ready_s=None), True),
        (Report(totals={}, stopped={"A->B": {"p": "r"}}, refused={}, failed=[], ready_s=1), False),
        (Report(totals={}, stopped={}, refused={"A->B": {"t": "r"}}, failed=[], ready_s=1), False),
        (Report(totals={}, stopped={}, refused={}, failed=["A->B"], ready_s=1), False),
    ],
)
def test_a_run_is_good_if_nothing_failed_stopped_or_was_refused(
    report: Report, is_good: bool
) -> None:
    """The exit code of the command depends on it."""
    assert report.is_good is is_good


def test_a_run_with_once_ends_when_every_partition_has_reached_its_end(make: Make) -> None:
    """Events in order, and the counters of the tasks in the report."""
    offsets = Growing(committed={REMOTE: group_offset(5)})
    stage = make(offsets=offsets)

    report = stage.driver.run(once=True)

    steps = ("topic.created", "ready", "flow.caught_up", "flow.summary", "stopped")
    assert [name for name in stage.events.names if name in steps] == list(steps)
    assert report.is_good
    assert report.totals["A->B"]["records"] == 7
    assert offsets.committed == {REMOTE: group_offset(8)}, "it did not wait for the end"
    assert report.ready_s is not None


def test_a_run_until_a_time_ends_when_its_records_are_mirrored(make: Make) -> None:
    """It does not wait for the end of the log."""
    offsets = Growing(committed={REMOTE: group_offset(3)})
    stage = make(offsets=offsets)
    stage.clusters.metadata.later = {ORDERS: 5}

    report = stage.driver.run(once=True, until=datetime(2026, 1, 31, tzinfo=UTC))

    assert report.is_good
    assert "flow.caught_up" in stage.events.names
    assert offsets.committed == {REMOTE: group_offset(6)}, "it waited for another end"


def test_a_partition_that_stops_does_not_hold_up_a_run_with_once(make: Make) -> None:
    """The report names it with its reason."""
    stage = make(act=lambda task: task.beat(TaskReport(stopped={ORDERS: "too large"})))

    report = stage.driver.run(once=True)

    assert report.stopped == {"A->B": {"orders-0": "too large"}}
    assert not report.is_good


def test_a_partition_that_waits_for_a_leader_does_not_hold_up_a_run_with_once(make: Make) -> None:
    """It is a failure of the run: its records were not mirrored."""
    waiting = TaskReport(pending=1, waiting={ORDERS: "orders-0 has no leader"})
    stage = make(act=lambda task: task.beat(waiting))

    report = stage.driver.run(once=True)

    assert report.failed == ["A->B: orders-0 has no leader"]


def test_a_run_ends_when_every_flow_has_failed(make: Make) -> None:
    """Also without `--once`: no task is left that a person could wait for."""
    stage = make(act=lambda task: task.end(Ending(Outcome.FATAL, "not authorized")))

    report = stage.driver.run(once=False)

    assert report.failed == ["A->B task 0: not authorized"]
    assert "ready" not in stage.events.names


def test_a_signal_before_the_start_mirrors_nothing(make: Make) -> None:
    """The configuration is checked all the same, and nothing is written."""
    stage = make()
    stage.stop.set()

    report = stage.driver.run(once=False)

    assert (stage.launcher.tasks, stage.clusters.target.writes) == ([], [])
    assert (report.ready_s, report.is_good) == (None, True)
    assert stage.events.names[-1] == "stopped"


@pytest.mark.parametrize("alias", ["A", "B"])
def test_a_cluster_that_is_silent_after_its_first_answer_is_named(make: Make, alias: str) -> None:
    """Nothing is written, and no task starts."""
    stage = make()
    stage.clusters.source.down = SourceUnavailable("no answer") if alias == "A" else None
    stage.clusters.target.down = TargetUnavailable("no answer") if alias == "B" else None
    line = {"A": 2, "B": 3}[alias]
    where = f"{stage.settings.path}:{line}: cluster {alias} does not answer at"

    with pytest.raises(ConfigError) as caught:
        stage.driver.run(once=False)

    assert str(caught.value).startswith(
        f"{where} {alias}.bootstrap.servers=127.0.0.1:9: no answer."
    )
    assert (stage.launcher.tasks, stage.clusters.target.writes) == ([], [])


def test_two_flows_that_would_write_one_topic_do_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exactly once cannot hold there."""
    answer_all(monkeypatch)
    flows = {name: FakeClusters(flow=Flow(name, "B")) for name in ("A", "C")}
    for one in flows.values():
        one.source.counts = {"orders": 1}
        one.install(monkeypatch)

    def open_clusters(settings: FlowSettings) -> object:
        return flows[settings.flow.source].clients

    monkeypatch.setattr(flow, "open_clusters", open_clusters)
    keys = {
        "clusters": "A, B, C",
        "C.bootstrap.servers": "127.0.0.1:9",
        "C->B.enabled": "true",
        "replication.policy.class": "IdentityReplicationPolicy",
    }
    both = Driver(settings_of(tmp_path, keys), on_event=Events(), stop=threading.Event())

    with pytest.raises(ConfigError, match=r"topic orders on B would be written by A->B .* C->B"):
        both.check()


def lost_at_once(_config: object, **_: object) -> FakeLeadership:
    """Make a leadership that is lost as soon as this run mirrors."""
    return FakeLeadership(True, False)


def test_a_run_ends_when_another_run_leads(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """It reports that, so that the command can start again on standby."""
    stage = make()
    monkeypatch.setattr(leader_election, "Leadership", lost_at_once)
    monkeypatch.setattr(chores, "LOOK_AT_TURN", timedelta(milliseconds=1))

    report = stage.driver.run(once=False)

    assert report.superseded
    names = [name for name in stage.events.names if name.startswith("driver.")]
    assert names == ["driver.superseded"]
