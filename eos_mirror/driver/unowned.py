"""Finds partitions that stay without an owner in the source group."""

from collections.abc import Sequence
from typing import Final

from eos_mirror.driver.task_reports import TaskStatus

LOOP_IS_BUSY_S: Final = 2.0
SHORT_LOOKS: Final = 3
"""Consecutive checks that must find unowned partitions before the tasks rejoin."""


class Unowned:
    """
    Counts the checks that find partitions without an owner.

    A static member that returns within its session gets its old assignment without a rebalance.
    Partitions that were added meanwhile would then have no owner.

    Attributes:
        held: Partitions that tasks held or were acquiring at the last check.
    """

    def __init__(self) -> None:
        self.held = 0
        self._looks_short = 0

    def is_persistent(self, tasks: Sequence[TaskStatus], *, expected: int) -> bool:
        """
        Check once; return True if the tasks should rejoin now.

        Args:
            tasks: The status of every task.
            expected: Number of partitions that have to be held.
        """
        if all(task.has_failed for task in tasks):
            return False  # no task can take them
        if any((task.slot.loop_age_s or 0.0) > LOOP_IS_BUSY_S for task in tasks):
            return False  # a rebalance would wait for it, and block all partitions
        reports = [task.report for task in tasks if task.report is not None]
        self.held = sum(report.owned + report.pending for report in reports)
        if self.held >= expected or len(reports) < len(tasks):
            self._looks_short = 0
            return False
        self._looks_short += 1
        if self._looks_short < SHORT_LOOKS:
            return False
        self._looks_short = -SHORT_LOOKS  # time for the rebalance
        return True
