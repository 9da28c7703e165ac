"""The chores of the driver."""

import threading
from collections.abc import Iterator
from datetime import timedelta
from functools import partial

import pytest

from eos_mirror.runtime.scheduler import Scheduler
from tests.runtime.toolbox import eventually

SOON = timedelta(milliseconds=5)
LONG = timedelta(seconds=5)


class Errors:
    """Collects what chores raised."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []

    def __call__(self, name: str, exc: Exception) -> None:
        self.seen.append((name, str(exc)))


@pytest.fixture
def errors() -> Errors:
    """A collector that has no errors yet."""
    return Errors()


@pytest.fixture
def scheduler(errors: Errors) -> Iterator[Scheduler]:
    """A scheduler that is not started yet; the fixture stops it at the end."""
    made = Scheduler(on_error=errors)
    yield made
    made.stop(LONG)


def test_a_chore_runs_again_and_again(scheduler: Scheduler) -> None:
    """The first run is immediate, and the next ones follow."""
    runs: list[int] = []
    scheduler.add("topics", SOON, lambda: runs.append(1))

    scheduler.start()

    eventually(lambda: len(runs) >= 3)


def test_a_chore_that_raises_is_reported_and_runs_again(
    scheduler: Scheduler, errors: Errors
) -> None:
    """A failure ends neither the chore nor the other ones."""
    runs: list[int] = []

    def fail() -> None:
        raise ValueError("no answer")

    scheduler.add("acls", SOON, fail)
    scheduler.add("topics", SOON, lambda: runs.append(1))

    scheduler.start()

    eventually(lambda: len(errors.seen) >= 2 and len(runs) >= 2)
    assert errors.seen[0] == ("acls", "no answer")


def test_stop_waits_for_the_running_chore(scheduler: Scheduler) -> None:
    """After `stop` no chore runs any more; `stop` returns False if one hangs."""
    entered, leave = threading.Event(), threading.Event()

    def linger() -> None:
        entered.set()
        leave.wait(LONG.total_seconds())

    scheduler.add("linger", SOON, linger)
    scheduler.start()
    assert entered.wait(LONG.total_seconds())

    assert not scheduler.stop(timedelta(milliseconds=20))
    leave.set()
    assert scheduler.stop(LONG)


def test_stop_does_not_wait_for_a_chore_that_is_not_due(scheduler: Scheduler) -> None:
    """A chore that runs once an hour does not delay the stop."""
    runs: list[int] = []
    scheduler.add("topics", timedelta(hours=1), lambda: runs.append(1))
    scheduler.start()
    eventually(lambda: runs)

    assert scheduler.stop(LONG)


def test_a_chore_can_be_made_due_now(scheduler: Scheduler) -> None:
    """Others keep their time, and so does the chore afterwards. An unknown name is no fault."""
    runs: list[str] = []
    for name in ("topics", "acls"):
        scheduler.add(name, timedelta(hours=1), partial(runs.append, name), after=LONG * 99)
    scheduler.start()
    assert runs == []

    scheduler.hurry("topics", "unknown")
    eventually(lambda: runs == ["topics"])
    scheduler.hurry("acls", "topics")
    eventually(lambda: runs == ["topics", "acls", "topics"])


def test_a_chore_that_is_running_runs_once_more(scheduler: Scheduler) -> None:
    """What it read before may be out of date."""
    runs: list[int] = []
    is_running, may_end = threading.Event(), threading.Event()

    def run() -> None:
        runs.append(1)
        is_running.set()
        may_end.wait(LONG.total_seconds())

    scheduler.add("topics", timedelta(hours=1), run)
    scheduler.start()
    assert is_running.wait(LONG.total_seconds())
    scheduler.hurry("topics")
    may_end.set()
    eventually(lambda: len(runs) == 2)
