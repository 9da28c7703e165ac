"""Keeps the newest report of each mirror task of a flow."""

import threading
from dataclasses import dataclass, replace

from eos_mirror.core.messages import TaskReport
from eos_mirror.runtime.supervisor import SlotStatus, State


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStatus:
    """
    A mirror task: its process and its newest report.

    Attributes:
        report: None until its newest process has reported.
    """

    slot: SlotStatus
    report: TaskReport | None

    @property
    def has_failed(self) -> bool:
        """True if it failed for good."""
        return self.slot.state is State.FAILED

    @property
    def has_ended(self) -> bool:
        """True if it stopped by itself; one that was killed may live for a moment elsewhere."""
        return self.slot.state is State.STOPPED and not self.slot.reason


class TaskReports:
    """The newest report of each slot. Any thread may call."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._newest: dict[int, tuple[str, TaskReport]] = {}

    def put(self, slot: int, submission: str, report: TaskReport) -> None:
        """Store the newest report of a slot, which holds what it held before unless it says so."""
        with self._lock:
            known, before = self._newest.get(slot, ("", report))
            if report.holds is None and known == submission:
                report = replace(report, holds=before.holds)
            self._newest[slot] = submission, report

    def status(self, slot: SlotStatus) -> TaskStatus:
        """Return the status of a slot. A task that failed for good owns nothing."""
        with self._lock:
            submission, report = self._newest.get(slot.slot, ("", TaskReport()))
        if submission != slot.submission:
            return TaskStatus(slot=slot, report=None)
        if slot.state is State.FAILED:
            report = replace(report, owned=0, holds=(), pending=0)
        return TaskStatus(slot=slot, report=report)
