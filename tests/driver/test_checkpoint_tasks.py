"""The driver's side of the checkpoint task: its orders, its events and its counters."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from eos_mirror.core.messages import CheckpointOrders, CheckpointReport
from eos_mirror.core.spread import Spread
from eos_mirror.driver.checkpoint_tasks import CheckpointTasks
from eos_mirror.runtime.outcome import Ending, Outcome
from eos_mirror.tasks.messages import decode
from eos_mirror.testing import wait_until
from tests.driver.fake_tasks import FakeLauncher, FakeTask
from tests.driver.fakes import SOON, Events, flow_of

GROUPS = {"groups": "orders-.*", "groups.exclude": "orders-test"}


class Stage:
    """The checkpoint task of a flow that mirrors one topic."""

    def __init__(self, folder: Path) -> None:
        self.routes = {"orders": "A.orders"}
        self.events, self.launcher = Events(), FakeLauncher()
        settings = flow_of(folder, GROUPS)
        self.tasks = CheckpointTasks(settings, lambda: self.routes, on_event=self.events)

    def start(self) -> FakeTask:
        """Start the task."""
        self.tasks.start(self.launcher)
        return self.launcher.task()


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """Not started; stopped after the test."""
    made = Stage(tmp_path)
    yield made
    made.tasks.stop()
    made.launcher.close()


def orders_of(task: FakeTask) -> tuple[dict[str, str], tuple[str, ...], tuple[str, ...]]:
    """Return the topics and the groups that the task has received with its last heartbeat."""
    task.beat()
    orders = decode(CheckpointOrders, task.orders)
    assert orders.groups is not None
    return dict(orders.topics), orders.groups.include, orders.groups.exclude


@pytest.mark.parametrize(
    ("checkpoints", "transactions", "syncs", "is_wanted"),
    [
        ("true", "true", "false", True),
        ("true", "false", "true", True),
        ("true", "false", "false", False),
        ("false", "true", "true", False),
    ],
)
def test_the_task_is_wanted_if_offsets_can_be_translated(
    tmp_path: Path, checkpoints: str, transactions: str, syncs: str, is_wanted: bool
) -> None:
    """Exactly once has the offset map; at least once needs offset syncs."""
    keys = {
        "emit.checkpoints.enabled": checkpoints,
        "transaction.producer": transactions,
        "emit.offset-syncs.enabled": syncs,
    }
    tasks = CheckpointTasks(flow_of(tmp_path, keys), dict, on_event=Events())

    assert tasks.is_wanted is is_wanted


def test_the_task_receives_the_mirrored_topics_and_the_selected_groups(
    stage: Stage, tmp_path: Path
) -> None:
    """With its first heartbeat, and again when the topics or the filters change."""
    task = stage.start()
    assert orders_of(task) == ({"orders": "A.orders"}, ("orders-.*",), ("orders-test",))

    stage.routes = {"users": "A.users"}
    stage.tasks.give_orders()
    assert orders_of(task)[0] == {"users": "A.users"}

    stage.tasks.take(flow_of(tmp_path, {"groups": "users", "groups.exclude": ""}))
    assert orders_of(task) == ({"users": "A.users"}, ("users",), ())


def test_orders_before_the_start_are_not_lost(stage: Stage) -> None:
    """The flow syncs its topics first."""
    stage.routes = {"users": "A.users"}
    stage.tasks.give_orders()

    assert orders_of(stage.start())[0] == {"users": "A.users"}


def test_counters_are_added_from_round_to_round(stage: Stage) -> None:
    """There are none before the first round: a report without groups is no round."""
    task = stage.start()
    assert stage.tasks.counts() == {}
    task.beat(CheckpointReport(checkpoints=9))
    assert stage.tasks.counts() == {}
    for groups, latency in ((5, 10), (4, 30)):
        spread = Spread.of([latency])
        task.beat(CheckpointReport(groups=groups, checkpoints=2, moved=1, latency=spread))

    counts = stage.tasks.counts()

    assert (counts["groups"], counts["checkpoints"], counts["moved"]) == (4, 4, 2)
    assert (counts["checkpoint-latency-ms-min"], counts["checkpoint-latency-ms-max"]) == (10, 30)
    assert counts["groups.age"] >= 0


def test_only_events_about_groups_and_checkpoints_are_forwarded(stage: Stage) -> None:
    """Without the number of the task: it would look like a mirror task."""
    sent = ("task.started", "group.skipped", "unknown", "checkpoints.emitted")
    stage.start().beat(events=[(name, {"group": "g"}) for name in sent])

    assert stage.events == [
        ("group.skipped", {"group": "g"}),
        ("checkpoints.emitted", {"group": "g"}),
    ]


@pytest.mark.parametrize("outcome", [Outcome.RESTART, Outcome.FATAL])
def test_the_end_of_the_task_is_a_failure_of_the_checkpoints(
    stage: Stage, outcome: Outcome
) -> None:
    """It is started again unless it failed for good."""
    stage.start().end(Ending(outcome, "damaged", cause="ForeignRecord"))
    wait_until(lambda: bool(stage.events), within=SOON, what="the failure")
    if outcome is Outcome.RESTART:
        stage.launcher.task(1)

    failure = {"cause": "ForeignRecord", "reason": "damaged"}
    assert stage.events == [("checkpoints.failed", failure)]


def test_a_stop_ends_the_task_and_may_be_repeated(stage: Stage) -> None:
    """A requested end is no failure. A task that was never started has nothing to stop."""
    stage.tasks.stop()
    task = stage.start()
    stage.tasks.stop()
    stage.tasks.stop()

    assert task.wait(SOON) == Ending(Outcome.STOPPED)
    assert stage.events == []
