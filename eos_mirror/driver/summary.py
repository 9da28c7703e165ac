"""Sums the counters of each flow over its tasks, and over every process of each task."""

from collections.abc import Sequence
from typing import Any

from eos_mirror.core.messages import TaskReport
from eos_mirror.driver.flow import FlowRunner
from eos_mirror.driver.paths import shares
from eos_mirror.driver.task_reports import TaskStatus
from eos_mirror.runtime.control import EventSink
from eos_mirror.telemetry.metrics import COUNTERS
from eos_mirror.telemetry.registry import Totals


class Summary:
    """Reads task statuses. One thread at a time calls `tell`; any thread calls the others."""

    def __init__(self, flows: Sequence[FlowRunner], *, on_event: EventSink) -> None:
        self._flows = flows
        self._on_event = on_event
        self._totals = {str(runner.flow): Totals() for runner in flows}
        self._told: dict[str, dict[str, int]] = {}
        self._told_paths: dict[str, dict[str, int]] = {}

    def totals(self) -> dict[str, dict[str, int]]:
        """Return the counters by flow, since the start."""
        return {str(runner.flow): self._sum(runner) for runner in self._flows}

    def tell(self) -> None:
        """Log one `flow.summary` per flow: what happened since the last one."""
        for runner in self._flows:
            flow = str(runner.flow)
            now, before = self._sum(runner), self._told.get(flow, {})
            self._told[flow] = now
            self._on_event(
                "flow.summary",
                {
                    "flow": flow,
                    **{name: now[name] - before.get(name, 0) for name in COUNTERS},
                    "owned": runner.owned_count,
                    "stopped": len(runner.stopped),
                    "refused": len(runner.topics.refused),
                    **self._new_paths(runner),
                },
            )

    def _new_paths(self, runner: FlowRunner) -> dict[str, Any]:
        """Return how many records passed through, and why others did not, since the last time."""
        flow, now = str(runner.flow), runner.paths.of_flow(runner.statuses())
        before, self._told_paths[flow] = self._told_paths.get(flow, {}), now
        return shares({path: value - before.get(path, 0) for path, value in now.items()})

    def written(self) -> list[tuple[dict[str, str], dict[str, Any]]]:
        """Return the attributes and values of every path of every task, for metrics."""
        return [
            (
                {
                    "source": runner.flow.source,
                    "target": runner.flow.target,
                    "task": str(slot),
                    "path": path,
                },
                {"written": value},
            )
            for runner in self._flows
            for slot, paths in runner.paths.of_tasks(runner.statuses()).items()
            for path, value in paths.items()
        ]

    def of_flows(self) -> list[tuple[dict[str, str], dict[str, float]]]:
        """Return the attributes and values of every flow, for metrics."""
        return [
            (
                {"source": runner.flow.source, "target": runner.flow.target},
                {**runner.checkpoints.counts(), "stopped": len(runner.stopped)},
            )
            for runner in self._flows
        ]

    def read(self) -> list[tuple[dict[str, str], dict[str, Any]]]:
        """Return the attributes and values of every task, for metrics."""
        return [
            (
                {"source": runner.flow.source, "target": runner.flow.target, "task": str(slot)},
                {
                    **_gauges(task.report),
                    **self._of(runner, slot, task),
                    "restarts": task.slot.restarts,
                },
            )
            for runner in self._flows
            for slot, task in runner.statuses().items()
        ]

    def _sum(self, runner: FlowRunner) -> dict[str, int]:
        sums = dict.fromkeys(COUNTERS, 0)
        for slot, task in runner.statuses().items():
            for name, value in self._of(runner, slot, task).items():
                sums[name] += value
        return sums

    def _of(self, runner: FlowRunner, slot: int, task: TaskStatus) -> dict[str, int]:
        report = task.report or TaskReport()
        counters = {name: int(getattr(report, name)) for name in COUNTERS}
        return self._totals[str(runner.flow)].add(slot, task.slot.submission, counters)


def _gauges(report: TaskReport | None) -> dict[str, int]:
    """Return the gauges of a task; none before it has reported."""
    if report is None:
        return {}
    throttled = sum(one.waits for one in report.throttles)
    return {"owned": report.owned, "pending": report.pending, "throttled": throttled}
