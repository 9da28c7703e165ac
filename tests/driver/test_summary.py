"""Counters of a flow: over all its tasks, and over all processes of each task."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import cast

import pytest

from eos_mirror.core.flow import Flow
from eos_mirror.core.messages import TaskReport
from eos_mirror.core.records import TopicPartition
from eos_mirror.driver.flow import FlowRunner
from eos_mirror.driver.paths import Paths, shares
from eos_mirror.driver.summary import Summary
from eos_mirror.driver.task_reports import TaskStatus
from eos_mirror.runtime.supervisor import SlotStatus, State
from tests.driver.fakes import FLOW, ORDERS, Events


def task(submission: str, report: TaskReport | None, *, restarts: int = 0) -> TaskStatus:
    """Return the status of a running task."""
    slot = SlotStatus(
        slot=0,
        state=State.RUNNING,
        reason="",
        submission=submission,
        restarts=restarts,
        pid=1,
        host="h",
        loop_age_s=0.0,
        events_dropped=0,
    )
    return TaskStatus(slot=slot, report=report)


@dataclass
class FakeRunner:
    """What the summary reads of a `FlowRunner`."""

    flow: Flow = FLOW
    tasks: dict[int, TaskStatus] = field(default_factory=dict)
    stopped: dict[TopicPartition, str] = field(default_factory=dict)
    owned_count: int = 0
    refused: dict[str, str] = field(default_factory=dict)
    groups: Mapping[str, float] = field(default_factory=dict)
    paths: Paths = field(default_factory=Paths)

    def statuses(self) -> dict[int, TaskStatus]:
        """See `FlowRunner`."""
        return self.tasks

    @property
    def topics(self) -> SimpleNamespace:
        """See `FlowRunner`."""
        return SimpleNamespace(refused=self.refused)

    @property
    def checkpoints(self) -> SimpleNamespace:
        """See `FlowRunner`."""
        return SimpleNamespace(counts=lambda: self.groups)


@pytest.fixture
def runner() -> FakeRunner:
    """Two tasks have mirrored 10 and 5 records."""
    return FakeRunner(
        tasks={
            0: task("0.0", TaskReport(records=10, bytes=100, owned=2, pending=1)),
            1: task("1.0", TaskReport(records=5, owned=1)),
        }
    )


def summary_of(*runners: FakeRunner, events: Events | None = None) -> Summary:
    """Return the summary of these flows."""
    flows = [cast("FlowRunner", runner) for runner in runners]
    return Summary(flows, on_event=Events() if events is None else events)


def test_a_summary_counts_since_the_last_summary(runner: FakeRunner) -> None:
    """The sum of all tasks; the states of partitions and topics are those of now."""
    events = Events()
    summary = summary_of(runner, events=events)
    summary.tell()
    runner.tasks[0] = task("0.0", TaskReport(records=30))
    runner.stopped, runner.refused, runner.owned_count = {ORDERS: "full"}, {"a": "b"}, 3

    summary.tell()

    first, second = events.of("flow.summary")
    assert (first["records"], first["bytes"], first["stopped"]) == (15, 100, 0)
    assert (second["records"], second["owned"], second["stopped"], second["refused"]) == (
        20,
        3,
        1,
        1,
    )


def test_totals_include_the_earlier_processes_of_a_task(runner: FakeRunner) -> None:
    """A new process counts from zero; a total never falls, not even before its first report."""
    summary = summary_of(runner)
    totals = [summary.totals()["A->B"]["records"]]
    for report in (None, TaskReport(records=1), TaskReport(records=4)):
        runner.tasks[0] = task("0.1", report)
        totals.append(summary.totals()["A->B"]["records"])

    assert totals == [15, 15, 16, 19]


def test_flows_are_counted_separately(runner: FakeRunner) -> None:
    """Slot 0 of one flow is not slot 0 of another."""
    other = FakeRunner(flow=Flow("B", "A"), tasks={0: task("0.1", TaskReport(records=1))})

    totals = summary_of(runner, other).totals()

    assert {flow: counters["records"] for flow, counters in totals.items()} == {
        "A->B": 15,
        "B->A": 1,
    }


def test_a_task_without_a_report_has_no_gauges(runner: FakeRunner) -> None:
    """A restarting task exports its counters, and no partitions that it may not own."""
    summary = summary_of(runner)
    summary.read()
    runner.tasks[0] = task("0.1", None, restarts=1)

    (attributes, restarted), (_, running) = summary.read()

    assert attributes == {"source": "A", "target": "B", "task": "0"}
    assert (restarted["records"], restarted["restarts"]) == (10, 1)
    assert not {"owned", "pending"} & restarted.keys()
    assert (running["owned"], running["pending"]) == (1, 0)


def test_a_flow_exports_its_stopped_partitions_and_its_groups(runner: FakeRunner) -> None:
    """Both have no task."""
    runner.stopped, runner.groups = {ORDERS: "full"}, {"groups": 4}

    assert summary_of(runner).of_flows() == [
        ({"source": "A", "target": "B"}, {"groups": 4, "stopped": 1})
    ]


def test_records_are_counted_by_path_over_all_processes(runner: FakeRunner) -> None:
    """A summary tells what is new; the total since the start stays when a task starts again."""
    events = Events()
    summary = summary_of(runner, events=events)
    runner.tasks[0] = task("0.0", TaskReport(written={"passed": 90, "gaps": 10}))
    summary.tell()
    runner.tasks[0] = task("0.1", TaskReport(written={"passed": 5}))
    summary.tell()

    first, second = events.of("flow.summary")
    assert (first["passed"], first["decoded"]) == (90, {"gaps": 10})
    assert (second["passed"], second["decoded"]) == (5, {})
    total = runner.paths.of_flow(runner.statuses())
    assert shares(total) == {"passed": 95, "decoded": {"gaps": 10}}


def test_a_task_without_paths_says_nothing_of_them(runner: FakeRunner) -> None:
    """Records that took the client library are not counted as passed or decoded."""
    events = Events()
    summary_of(runner, events=events).tell()

    assert not {"passed", "decoded"} & events.of("flow.summary")[0].keys()
