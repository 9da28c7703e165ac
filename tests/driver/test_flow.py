"""One flow in the driver: what it writes before its tasks start, and what it orders them to do."""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from eos_mirror.core.claims import DeliveryMode
from eos_mirror.core.messages import Orders, TaskReport
from eos_mirror.core.records import TopicPartition
from eos_mirror.driver.chores import chores_of
from eos_mirror.driver.flow import FlowRunner
from eos_mirror.driver.partition_states import state_rows
from eos_mirror.driver.unowned import SHORT_LOOKS
from eos_mirror.errors import (
    NotAuthorized,
    SourceUnavailable,
    TargetUnavailable,
    TooFewBrokers,
    UnsafeError,
)
from eos_mirror.runtime.outcome import Ending, Outcome
from eos_mirror.runtime.supervisor import Patience
from eos_mirror.tasks.messages import decode
from eos_mirror.testing import wait_until
from tests.driver.fake_tasks import FakeLauncher, FakeTask
from tests.driver.fakes import (
    FLOW,
    ORDERS,
    REMOTE,
    SOON,
    Events,
    FakeClusters,
    flow_of,
    group_offset,
)

USERS = TopicPartition("users", 0)
Make = Callable[..., "Stage"]


class Stage:
    """A flow with two topics of one partition each."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, keys: Mapping[str, object]) -> None:
        self.clusters, self.events, self.launcher = FakeClusters(), Events(), FakeLauncher()
        self.clusters.source.counts = {"orders": 1, "users": 1}
        self.clusters.install(patch)
        self.runner = FlowRunner(flow_of(folder, keys), on_event=self.events)

    def start(self) -> FakeTask:
        """Check, prepare and start the flow; return its first task."""
        self.runner.check()
        self.runner.prepare()
        self.runner.start(self.launcher, patience=Patience(), bind="127.0.0.1", advertise="")
        return self.launcher.task()

    def close(self) -> None:
        """Stop the tasks."""
        self.runner.stop()
        self.launcher.close()


def states_of(runner: FlowRunner) -> dict[str, tuple[str, str]]:
    """Return state and cause of each remote topic, which has one partition."""
    return {named["topic"]: (named["state"], named["cause"]) for named, _ in state_rows(runner)}


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Makes a flow with these keys, and stops it after the test."""
    made: list[Stage] = []

    def one(keys: Mapping[str, object] | None = None) -> Stage:
        made.append(Stage(tmp_path, monkeypatch, keys or {}))
        return made[-1]

    yield one
    for stage in made:
        stage.close()


def orders_of(task: FakeTask) -> Orders:
    """Return the newest orders of a task. They arrive with its next heartbeat."""
    task.beat()
    return decode(Orders, task.orders)


@pytest.mark.parametrize(("tasks_max", "partitions", "count"), [(3, 2, 2), (1, 2, 1), (3, 0, 1)])
def test_a_flow_has_no_more_tasks_than_partitions(
    make: Make, tasks_max: int, partitions: int, count: int
) -> None:
    """One task waits for the first topic of an empty source. The check writes nothing."""
    stage = make({"tasks.max": tasks_max})
    stage.clusters.source.counts = {"orders": partitions} if partitions else {}

    stage.runner.check()

    assert stage.runner.tasks_count == count
    assert stage.clusters.target.writes == []
    assert stage.clusters.mode.noted is None


def test_the_mode_is_noted_before_the_first_task_starts(make: Make) -> None:
    """A run in another mode that was faster wins."""
    stage = make()
    stage.runner.check()
    stage.runner.prepare()
    assert stage.clusters.mode.noted is DeliveryMode.EXACTLY_ONCE

    stage.clusters.mode.rival = DeliveryMode.AT_LEAST_ONCE
    with pytest.raises(UnsafeError, match="another run just started it at-least-once"):
        stage.runner.prepare()


@pytest.mark.parametrize(
    ("transactions", "aborts", "is_created"),
    [("false", "false", True), ("false", "true", False), ("true", "false", False)],
)
def test_the_ledger_exists_before_a_task_may_drop_records(
    make: Make, transactions: str, aborts: str, is_created: bool
) -> None:
    """Tasks note each dropped record there. Otherwise it is created with its first entry."""
    stage = make({"transaction.producer": transactions, "abort.on.send.failure": aborts})
    stage.runner.check()
    stage.runner.prepare()

    assert (FLOW.ledger_topic in stage.clusters.target.counts) is is_created


def test_a_flow_whose_orders_may_not_be_read_runs_and_says_so(make: Make) -> None:
    """A principal with rights on single topics has none on a topic that a later release adds."""
    stage = make()
    stage.clusters.target.counts[FLOW.desired_topic] = 1
    stage.clusters.target.hidden.add(FLOW.desired_topic)

    assert orders_of(stage.start()).paused == ()

    (failed,) = stage.events.of("orders.failed")
    assert failed["cause"] == "NotAuthorized"
    assert FLOW.desired_topic in failed["reason"]


def test_a_stopped_partition_is_an_order_for_every_task_until_it_resumes(make: Make) -> None:
    """A successor must not meet the same record again."""
    stage = make({"tasks.max": 2})
    first, second = stage.start(), stage.launcher.task(1)
    assert orders_of(second).topics == {"orders": "A.orders", "users": "A.users"}

    first.beat(TaskReport(stopped={ORDERS: "too large"}))
    assert orders_of(second).stopped == {ORDERS: "too large"}
    assert stage.runner.stopped == {ORDERS: "too large"}

    first.beat(TaskReport(resumed=(ORDERS,)))
    assert orders_of(second).stopped == {}


def test_a_stopped_partition_of_a_deleted_topic_does_not_count(make: Make) -> None:
    """Neither in metrics and the exit code nor among the partitions that need an owner."""
    stage = make()
    stage.start().beat(TaskReport(stopped={ORDERS: "too large"}))
    del stage.clusters.source.counts["orders"]
    stage.runner.follow_topics()

    assert stage.runner.stopped == {}
    assert orders_of(stage.launcher.task()).topics == {"users": "A.users"}


def test_tasks_rejoin_when_partitions_stay_without_an_owner(make: Make) -> None:
    """Not while a partition is acquired or stopped, and not after one look: a rebalance lasts."""
    stage = make()
    task = stage.start()
    for whole in (TaskReport(owned=1, pending=1), TaskReport(owned=2)):
        task.beat(whole)
        for _ in range(SHORT_LOOKS):
            stage.runner.tend_assignment()
    for owned in (1, 2, 1):
        task.beat(TaskReport(owned=owned))
        for _ in range(SHORT_LOOKS - 1):
            stage.runner.tend_assignment()
    assert orders_of(task).rejoin == 0

    stage.runner.tend_assignment()
    assert orders_of(task).rejoin == 1
    assert stage.events.of("flow.rejoining") == [{"flow": "A->B", "owned": 1, "planned": 2}]
    for _ in range(SHORT_LOOKS):
        stage.runner.tend_assignment()
    assert orders_of(task).rejoin == 1, "the rebalance has time"

    task.beat(TaskReport(owned=1, stopped={ORDERS: "too large"}))
    for _ in range(3 * SHORT_LOOKS):
        stage.runner.tend_assignment()
    assert orders_of(task).rejoin == 1


def test_tasks_do_not_rejoin_while_a_loop_is_busy_or_a_report_is_missing(make: Make) -> None:
    """A rebalance waits for the slowest task and blocks all partitions meanwhile."""
    stage = make({"tasks.max": 2})
    first, second = stage.start(), stage.launcher.task(1)
    first.beat(TaskReport())
    for _ in range(2 * SHORT_LOOKS):
        stage.runner.tend_assignment()
    second.loop_age_s = 9.0
    second.beat(TaskReport())
    for _ in range(2 * SHORT_LOOKS):
        stage.runner.tend_assignment()
    assert orders_of(first).rejoin == 0

    second.loop_age_s = 0.0
    second.beat()
    for _ in range(SHORT_LOOKS):
        stage.runner.tend_assignment()
    assert orders_of(first).rejoin == 1


@pytest.mark.parametrize("is_exactly_once", [True, False])
def test_an_end_is_reached_at_the_position_of_the_mode(make: Make, is_exactly_once: bool) -> None:
    """Stopped and waiting partitions are skipped; while no cluster answers, nothing is reached."""
    stage = make({"transaction.producer": str(is_exactly_once).lower()})
    task = stage.start()
    offsets = stage.clusters.shadow_offsets if is_exactly_once else stage.clusters.source_offsets
    ends = {ORDERS: 7, USERS: 3}
    key = REMOTE if is_exactly_once else ORDERS
    assert not stage.runner.reached(ends)
    task.beat(TaskReport(waiting={USERS: "no leader"}))
    for next_offset, is_reached in ((6, False), (7, True), (8, True)):
        offsets.committed = {key: group_offset(next_offset)}
        assert stage.runner.reached(ends) is is_reached
    offsets.down = TargetUnavailable("no answer") if is_exactly_once else SourceUnavailable("no")
    assert not stage.runner.reached(ends)
    task.beat(TaskReport(stopped={ORDERS: "full"}, waiting={USERS: "no leader"}))
    assert stage.runner.reached(ends)


def test_ends_leave_out_a_partition_without_a_leader_and_fail_without_a_right(make: Make) -> None:
    """A run with `--once` does not wait for that partition."""
    stage = make()
    stage.start()
    stage.clusters.metadata.ends = {ORDERS: 7}
    stage.clusters.metadata.reasons = {USERS: SourceUnavailable("no leader")}
    assert stage.runner.source_ends().stable == {ORDERS: 7}

    stage.clusters.metadata.reasons = {USERS: NotAuthorized("users")}
    with pytest.raises(NotAuthorized):
        stage.runner.source_ends()


def test_ends_before_a_time_are_those_of_its_first_later_record(make: Make) -> None:
    """A partition without one ends where it does; what an open transaction hides counts, too."""
    stage, at = make(), datetime(2026, 1, 31, tzinfo=UTC)
    stage.start()
    metadata = stage.clusters.metadata
    metadata.ends, metadata.hidden = {ORDERS: 7, USERS: 7}, {ORDERS: 3, USERS: 3}
    for first_later, stable, hidden in ((5, 5, None), (7, 7, None), (9, 7, 9), (None, 7, 10)):
        metadata.later = {} if first_later is None else {ORDERS: first_later}
        ends = stage.runner.source_ends(at)
        assert ends.stable[ORDERS] == stable
        assert ends.ended({}).get(ORDERS) == hidden
        assert (ends.stable[USERS], ends.ended({})[USERS]) == (7, 10)


@pytest.mark.parametrize(("when_deleted", "ends"), [("keep", False), ("stop", True)])
def test_a_deleted_topic_ends_the_flow_only_if_the_configuration_says_so(
    make: Make, when_deleted: str, ends: bool
) -> None:
    """The tasks are stopped once; the other topics continue otherwise."""
    stage = make({"source.topic.deleted": when_deleted})
    task = stage.start()
    del stage.clusters.source.counts["orders"]
    for _ in range(2):
        stage.runner.follow_topics()

    assert stage.runner.has_failed is ends
    assert len(stage.events.of("flow.ended")) == int(ends)
    assert (task.wait(timedelta(0)) is not None) is ends


def test_a_task_that_failed_for_good_fails_the_flow(make: Make) -> None:
    """Its partitions have no owner. A task that restarts does not fail it."""
    stage = make()
    stage.start().end(Ending(Outcome.RESTART, "no answer"))
    task = stage.launcher.task(1)
    task.beat(TaskReport(owned=2))
    assert (stage.runner.has_failed, stage.runner.owned_count) == (False, 2)

    task.end(Ending(Outcome.FATAL, "not authorized"))
    wait_until(lambda: stage.runner.has_failed, within=SOON, what="the failure")
    assert stage.runner.owned_count == 0


def test_the_state_of_each_partition_is_known(make: Make) -> None:
    """Also with its cause; a report without partitions means those of the one before."""
    stage = make()
    stage.clusters.target.refused = {FLOW.ledger_topic: TooFewBrokers("no ledger here")}
    task = stage.start()
    assert states_of(stage.runner) == {"A.orders": ("starting", ""), "A.users": ("starting", "")}

    stopped = {"partition": str(USERS), "cause": "RecordRefused", "reason": "too large"}
    task.beat(
        TaskReport(owned=1, holds=(ORDERS,), stopped={USERS: "too large"}),
        TaskReport(owned=1, stopped={USERS: "too large"}),
        events=[("partition.stopped", stopped)],
    )
    failed = ("failed", "RecordRefused")
    assert states_of(stage.runner) == {"A.orders": ("mirroring", ""), "A.users": failed}

    task.beat(events=[("partition.stopped", {**stopped, "cause": "PartitionStopped"})])
    assert [one["cause"] for one in stage.events.of("partition.stopped")] == 2 * ["RecordRefused"]
    assert states_of(stage.runner)["A.users"] == failed

    task.beat(TaskReport(holds=(), resumed=(USERS,), waiting={ORDERS: "no leader"}))
    assert states_of(stage.runner) == {"A.orders": ("waiting", ""), "A.users": ("starting", "")}


def test_a_flow_without_a_task_asks_nobody_to_rejoin(make: Make) -> None:
    """Another flow may keep the run alive for days."""
    failed = make()
    task = failed.start()
    task.beat(TaskReport(owned=2))
    task.end(Ending(Outcome.FATAL, "not authorized"))
    wait_until(lambda: failed.runner.has_failed, within=SOON, what="the failure")
    ended = make({"source.topic.deleted": "stop"})
    ended.start()
    del ended.clusters.source.counts["orders"]
    ended.runner.follow_topics()

    for stage in (failed, ended):
        for _ in range(3 * SHORT_LOOKS):
            stage.runner.tend_assignment()
        assert stage.events.of("flow.rejoining") == []


def test_refused_topics_are_tried_again_before_the_next_look(make: Make) -> None:
    """After pauses that grow: the next regular look may be ten minutes away."""
    stage = make()
    full = TooFewBrokers("the target has too few brokers")
    stage.clusters.target.refused = {"A.orders": full}
    stage.start()
    stage.runner.follow_doubtful()
    assert str(full) in stage.runner.topics.refused["orders"]

    stage.clusters.target.refused = {}

    def is_mirrored() -> bool:
        stage.runner.follow_doubtful()
        return not stage.runner.topics.refused

    wait_until(is_mirrored, within=SOON, what="the topic")
    assert stage.runner.topics.routes == {"orders": "A.orders", "users": "A.users"}


def test_a_topic_is_missed_as_soon_as_a_task_cannot_read_on(make: Make) -> None:
    """Its task notices within seconds that it was deleted; the next look may be far away."""
    stage = make()
    task = stage.start()
    stop = {"partition": str(ORDERS), "cause": "SourceDataLost", "reason": "deleted"}
    task.beat(TaskReport(stopped={ORDERS: "deleted"}), events=[("partition.stopped", stop)])
    del stage.clusters.source.counts["orders"]

    stage.runner.follow_doubtful()

    assert [one["topic"] for one in stage.events.of("topic.deleted")] == ["orders"]
    assert stage.runner.stopped == {}


def test_only_configured_chores_run_and_those_that_ask_clusters_wait_for_the_tasks(
    make: Make,
) -> None:
    """New topics are looked for immediately."""
    chores = {chore.name.split()[0]: chore.after for chore in chores_of(make().runner)}
    off = ("refresh.topics.enabled", "sync.topic.configs.enabled", "sync.topic.acls.enabled")

    assert chores.keys() == {"topics", "doubtful", "configuration", "access"}
    assert [name for name, after in chores.items() if not after] == ["topics"]
    assert list(chores_of(make(dict.fromkeys(off, "false")).runner)) == []
