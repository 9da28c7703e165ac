"""Which report counts as the state of a task."""

import pytest

from eos_mirror.core.messages import TaskReport
from eos_mirror.driver.task_reports import TaskReports
from eos_mirror.runtime.supervisor import SlotStatus, State

REPORT = TaskReport(records=7, owned=3, pending=1)


def slot(submission: str | None, state: State = State.RUNNING) -> SlotStatus:
    """Return the status of slot 0."""
    return SlotStatus(
        slot=0,
        state=state,
        reason="",
        submission=submission,
        restarts=0,
        pid=None,
        host=None,
        loop_age_s=None,
        events_dropped=0,
    )


@pytest.fixture
def reports() -> TaskReports:
    """Submission 0.1 has sent a report."""
    kept = TaskReports()
    kept.put(0, "0.1", REPORT)
    return kept


def test_a_report_counts_only_for_the_process_that_sent_it(reports: TaskReports) -> None:
    """A new process owns nothing until its own first report arrives."""
    assert reports.status(slot("0.1")).report == REPORT
    assert reports.status(slot("0.2")).report is None


def test_the_newest_report_replaces_the_earlier_ones(reports: TaskReports) -> None:
    """A partition that the task has released is not counted any more."""
    newest = TaskReport(records=9, owned=2)
    reports.put(0, "0.1", newest)

    assert reports.status(slot("0.1")).report == newest


def test_a_task_that_failed_for_good_owns_nothing(reports: TaskReports) -> None:
    """Its counters remain: the records were mirrored."""
    status = reports.status(slot("0.1", State.FAILED))

    assert status.has_failed
    assert status.report == TaskReport(records=7, holds=())
    assert not reports.status(slot("0.1", State.BACKOFF)).has_failed


def test_a_slot_that_was_never_submitted_has_no_report() -> None:
    """The driver waits for the first report before it is ready."""
    assert TaskReports().status(slot(None)).report is None
    assert TaskReports().status(slot("0.0")).report is None
