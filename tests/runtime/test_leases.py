"""Leases, without sockets and with a fake clock."""

from datetime import timedelta

import pytest

from eos_mirror.runtime.leases import Applicant, Beat, Command, Leases
from eos_mirror.runtime.outcome import Ending, Outcome


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def applicant(submission: str = "0.0", process: str = "p") -> Applicant:
    """Return a process of slot 0 that applies for the lease."""
    return Applicant(slot=0, submission=submission, process=process, pid=1, host="h")


def beat(*, loop_age_s: float = 0.0) -> Beat:
    """Return a heartbeat."""
    return Beat(loop_age_s=loop_age_s)


@pytest.fixture
def clock() -> Clock:
    """A clock at zero."""
    return Clock()


@pytest.fixture
def leases(clock: Clock) -> Leases:
    """Leases of 2 s; slot 0 expects submission 0.0."""
    book = Leases(ttl=timedelta(seconds=2), clock=clock)
    book.expect(0, "0.0")
    return book


def live(leases: Leases, clock: Clock, *, seconds: float) -> str | None:
    """Let time pass in small steps, with a check after each, as the supervisors do."""
    for _ in range(round(seconds * 2)):
        clock.now_s += 0.5
        leases.expired(0)
    return leases.expired(0)


def test_the_newest_submission_gets_the_lease(leases: Leases) -> None:
    """HELLO of the expected submission is granted, and its heartbeats are answered RUN."""
    assert leases.admit(applicant()) is None
    assert leases.renew(applicant(), beat()) is Command.RUN


def test_a_stale_submission_is_rejected(leases: Leases) -> None:
    """Only the newest submission of a slot is admitted."""
    leases.expect(0, "0.1")

    assert leases.admit(applicant("0.0")) == "submission 0.0 is not the newest"


def test_a_second_copy_of_a_submission_is_rejected(leases: Leases) -> None:
    """A speculative copy finds the lease in use; the first process continues."""
    leases.admit(applicant(process="first"))

    refusal = leases.admit(applicant(process="second"))

    assert refusal == "submission 0.0 runs already as pid 1 on h"
    assert leases.renew(applicant(process="first"), beat()) is Command.RUN


def test_the_same_process_may_come_back(leases: Leases) -> None:
    """A broken connection does not cost the lease."""
    leases.admit(applicant())

    assert leases.admit(applicant()) is None


def test_a_replaced_process_is_told_to_stop(leases: Leases) -> None:
    """Once another submission is expected, the old one never gets RUN again."""
    leases.admit(applicant("0.0", "old"))
    leases.expect(0, "0.1")
    leases.admit(applicant("0.1", "new"))

    assert leases.renew(applicant("0.0", "old"), beat()) is Command.STOP
    assert leases.admit(applicant("0.0", "old")) is not None


def test_the_bye_of_a_replaced_process_changes_nothing(leases: Leases) -> None:
    """An old copy cannot end its successor."""
    leases.admit(applicant("0.0", "old"))
    leases.expect(0, "0.1")
    leases.admit(applicant("0.1", "new"))

    leases.close(applicant("0.0", "old"), Ending(Outcome.FATAL, "old"))

    view = leases.view(0)
    assert view is not None
    assert view.ending is None


def test_a_silent_holder_expires(leases: Leases, clock: Clock) -> None:
    """No heartbeat for the whole lease counts as dead."""
    leases.admit(applicant())

    assert live(leases, clock, seconds=2) is None
    assert live(leases, clock, seconds=1) == "no heartbeat for 3.0 s"


def test_a_loop_that_stands_still_expires(leases: Leases) -> None:
    """Heartbeats do not keep the lease of a task whose loop hangs."""
    leases.admit(applicant())
    leases.renew(applicant(), beat(loop_age_s=2.5))

    assert leases.expired(0) == "its loop stood still for 2.5 s"


def test_a_pause_of_the_driver_expires_nobody(leases: Leases, clock: Clock) -> None:
    """Time in which the driver could not receive heartbeats expires no lease."""
    leases.admit(applicant())

    clock.now_s += 3600

    assert leases.expired(0) is None


def test_a_submission_that_shall_end_is_not_admitted(leases: Leases) -> None:
    """A stop that comes before HELLO is still obeyed."""
    leases.command(0, Command.STOP)

    assert leases.admit(applicant()) is not None
