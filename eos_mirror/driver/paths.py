"""Counts the records that the tasks of a flow wrote, by the path they took (docs/data-path.md)."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from eos_mirror.core.messages import TaskReport
from eos_mirror.driver.task_reports import TaskStatus
from eos_mirror.telemetry.registry import Totals

PASSED: Final = "passed"
"""The path of records in batches of the source."""

Statuses = Mapping[int, TaskStatus]


class Paths:
    """Sums over every process of each task, since the start of the run. Any thread may call."""

    def __init__(self) -> None:
        self._totals = Totals()

    def of_tasks(self, statuses: Statuses) -> dict[int, dict[str, int]]:
        """Return the records by path of each task. Without our own lane, a task has no paths."""
        return {
            slot: self._totals.add(
                slot, task.slot.submission, dict((task.report or TaskReport()).written)
            )
            for slot, task in statuses.items()
        }

    def of_flow(self, statuses: Statuses) -> dict[str, int]:
        """Return the records by path of all tasks together."""
        sums: Counter[str] = Counter()
        for paths in self.of_tasks(statuses).values():
            sums.update(paths)
        return dict(sums)


def shares(paths: Mapping[str, int]) -> dict[str, Any]:
    """Return how many records passed through, and how many were decoded for each reason."""
    if not paths:
        return {}
    decoded = {why: n for why, n in sorted(paths.items()) if n and why != PASSED}
    return {"passed": paths.get(PASSED, 0), "decoded": decoded}
