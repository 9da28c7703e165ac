"""`ready` means that everything is mirrored; otherwise `degraded` says what is not."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import cast

import pytest

from eos_mirror.core.desired import Order, Wanted
from eos_mirror.core.flow import Flow
from eos_mirror.core.messages import TaskReport
from eos_mirror.core.records import TopicPartition
from eos_mirror.driver import readiness
from eos_mirror.driver.flow import FlowRunner
from eos_mirror.driver.readiness import Readiness
from eos_mirror.driver.task_reports import TaskStatus
from eos_mirror.runtime.supervisor import SlotStatus, State
from tests.driver.fakes import FLOW, Events

PLANNED = {TopicPartition("orders", p): TopicPartition("A.orders", p) for p in range(4)}
ONE, TWO, *_ = PLANNED


@dataclass
class FakeRunner:
    """What the readiness reads of a `FlowRunner` with one task."""

    flow: Flow = FLOW
    owned_count: int = 0
    stopped: dict[TopicPartition, str] = field(default_factory=dict)
    waiting: dict[TopicPartition, str] = field(default_factory=dict)
    orders: dict[TopicPartition, Order] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    outages: dict[str, str] = field(default_factory=dict)
    ended_for: str = ""
    tasks_count: int = 1
    failure: str = ""

    @property
    def topics(self) -> SimpleNamespace:
        """See `FlowRunner`."""
        return SimpleNamespace(
            partitions=PLANNED, routes={"orders": "A.orders"}, refused=self.refused
        )

    def ordered(self) -> dict[TopicPartition, Order]:
        """See `FlowRunner`."""
        return self.orders

    def statuses(self) -> dict[int, TaskStatus]:
        """See `FlowRunner`."""
        slot = SlotStatus(
            slot=0,
            state=State.FAILED if self.failure else State.RUNNING,
            reason=self.failure,
            submission="0.0",
            restarts=0,
            pid=1,
            host="h",
            loop_age_s=0.0,
            events_dropped=0,
        )
        return {0: TaskStatus(slot=slot, report=None if self.failure else TaskReport())}


class Stage:
    """A flow of four partitions, looked at when `at` is called."""

    def __init__(self) -> None:
        self.runner, self.events, self._now = FakeRunner(), Events(), 0.0
        self.readiness = Readiness(
            [cast("FlowRunner", self.runner)], on_event=self.events, now=lambda: self._now
        )

    def at(self, now: float, *, owned: int) -> list[str]:
        """Look at this time; return the names of all events so far."""
        self._now, self.runner.owned_count = now, owned
        self.readiness.look()
        return self.events.names


@pytest.fixture
def stage() -> Stage:
    """Nothing is owned yet."""
    return Stage()


def test_it_says_nothing_while_tasks_start_and_ready_once_they_own_everything(
    stage: Stage,
) -> None:
    """`ready` is logged once, with the time that the start took."""
    assert stage.at(1, owned=3) == []
    assert stage.at(2, owned=4) == ["ready"]
    assert stage.at(3, owned=4) == ["ready"]

    described = {"flow": "A->B", "topics": 1, "partitions": 4, "tasks": 1}
    assert stage.events.of("ready") == [{"after_s": 2.0, "flows": [described]}]
    assert (stage.readiness.ready_s, stage.readiness.is_settled) == (2.0, True)


@pytest.mark.parametrize("what", ["stopped", "waiting"])
def test_a_partition_that_cannot_be_mirrored_makes_a_start_degraded(
    stage: Stage, what: str
) -> None:
    """The event names the partition with its reason, and `ready` does not come before it is
    mirrored. Then it says how long that took.
    """
    setattr(stage.runner, what, {TWO: "why"})
    assert stage.at(1, owned=3) == ["degraded"]
    (degraded,) = stage.events.of("degraded")
    state = {"stopped": "failed", "waiting": "waiting"}[what]
    assert degraded["flows"][0]["reasons"] == {"orders-1": f"{state}: why"}
    assert (degraded["flows"][0][state], degraded["flows"][0]["mirroring"]) == (1, 3)
    assert (stage.readiness.ready_s, stage.readiness.is_settled) == (None, True)

    setattr(stage.runner, what, {})
    assert stage.at(5, owned=3) == ["degraded"], "a task acquires it"
    assert stage.at(8, owned=4) == ["degraded", "ready"]
    assert stage.events.of("ready")[0]["degraded_s"] == 7.0


@pytest.mark.parametrize(("wanted", "owned"), [(Wanted.PAUSED, 4), (Wanted.STOPPED, 3)])
def test_what_an_operator_ordered_is_no_reason_for_a_warning(
    stage: Stage, wanted: Wanted, owned: int
) -> None:
    """A paused partition is owned, and a stopped one is not, even if it had failed before."""
    at = datetime(2026, 3, 1, tzinfo=UTC)
    stage.runner.orders = {ONE: Order(topics="orders", wanted=wanted, at=at, by="operator@host-7")}
    stage.runner.stopped = {ONE: "too large"}
    assert stage.at(1, owned=owned) == ["ready"]
    assert stage.events.of("ready")[0]["flows"][0][wanted.value] == 1


def test_a_run_that_stood_by_has_time_to_start(stage: Stage) -> None:
    """It may have waited for days before its tasks start."""
    stage.readiness.is_on_standby = True
    late = 100 * readiness.STARTING_FOR_S

    assert stage.at(late, owned=0) == []
    assert stage.at(late + 3, owned=4) == ["ready"]


def test_a_refused_topic_and_a_task_that_ended_are_named_too(stage: Stage) -> None:
    """The partitions of the task have no owner, so waiting for them makes no sense."""
    stage.runner.refused, stage.runner.failure = {"odd": "taken"}, "not authorized"

    assert stage.at(0.1, owned=0) == ["degraded"]

    (degraded,) = stage.events.of("degraded")
    reasons = {"task 0": "ended: not authorized", "odd": "refused: taken"}
    assert degraded["flows"][0]["reasons"] == reasons


def test_a_task_that_restarts_is_no_reason_for_a_warning(stage: Stage) -> None:
    """Unless its partitions stay without a task."""
    stage.at(1, owned=4)
    assert stage.at(2, owned=0) == ["ready"]
    assert stage.at(30, owned=4) == ["ready"]

    stage.at(40, owned=3)
    assert stage.at(30 + readiness.STARTING_FOR_S - 1, owned=3) == ["ready"]
    assert stage.at(30 + readiness.STARTING_FOR_S, owned=3) == ["ready", "degraded"]
    assert stage.events.of("degraded")[0]["flows"][0]["starting"] == 1


def test_a_list_that_changes_is_logged_again_after_a_pause(stage: Stage) -> None:
    """An outage in which every partition fails in turn costs one event a minute."""
    stage.at(1, owned=4)
    stage.runner.stopped = {ONE: "why"}
    stage.at(2, owned=3)
    stage.runner.stopped = {ONE: "why", TWO: "why"}
    stage.at(3, owned=2)
    assert stage.at(61, owned=2) == ["ready", "degraded"]
    assert stage.at(62, owned=2) == ["ready", "degraded", "degraded"]
    assert stage.at(200, owned=2) == ["ready", "degraded", "degraded"], "nothing changed"


def test_an_event_names_ten_reasons_and_counts_all(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A flow may have thousands of partitions."""
    monkeypatch.setattr(readiness, "REASONS", 2)
    stage.runner.stopped = dict.fromkeys(PLANNED, "why")

    stage.at(1, owned=0)

    (flow,) = stage.events.of("degraded")[0]["flows"]
    assert (flow["failed"], len(flow["reasons"])) == (4, 2)
