"""When the watchdog ends a process, and when it does not."""

import threading
from datetime import timedelta

import pytest

from eos_mirror.runtime.outcome import Ending, ExitCode, Outcome
from eos_mirror.runtime.watchdog import MARGIN, TICK, Watchdog

SECOND = timedelta(seconds=1)
TICK_S = TICK.total_seconds()


class WatchdogHarness:
    """A watchdog with a clock that the test moves and an exit that is only noted."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.codes: list[int] = []
        self.farewells: list[Ending] = []
        self.dog = Watchdog(
            farewell=self.farewells.append, end=self.codes.append, clock=lambda: self.now_s
        )

    def live(self, seconds: float) -> None:
        """Tick regularly for this long, or until the process would have exited."""
        for _ in range(round(seconds / TICK_S)):
            if not self.codes:
                self.now_s += TICK_S
                self.dog.tick()

    def freeze(self, seconds: float) -> None:
        """Be stopped for this long, and continue."""
        self.now_s += seconds
        self.dog.tick()


@pytest.fixture
def harness() -> WatchdogHarness:
    """A watchdog without a watch."""
    return WatchdogHarness()


def test_a_block_within_its_budget_lives(harness: WatchdogHarness) -> None:
    """Nothing happens before budget and margin are used up."""
    with harness.dog.watch("commit", SECOND):
        harness.live(1 + MARGIN.total_seconds() - TICK_S)

    assert harness.codes == []


def test_a_block_over_its_budget_ends_the_process(
    harness: WatchdogHarness, capsys: pytest.CaptureFixture[str]
) -> None:
    """The process exits with 71, prints the reason to stderr and reports it to the driver."""
    with harness.dog.watch("commit", SECOND):
        harness.live(2)

    reason = "watchdog: commit took longer than 1 s"
    assert harness.codes == [ExitCode.WATCHDOG]
    assert harness.farewells == [Ending(Outcome.RESTART, reason)]
    told = capsys.readouterr().err
    assert told.startswith(f"eos-mirror {reason}, in ")
    assert "test_a_block_over_its_budget_ends_the_process (test_watchdog.py:" in told
    assert told.endswith("; the process exits\n")


def test_a_stopped_process_is_not_ended_for_the_pause(harness: WatchdogHarness) -> None:
    """An hour of SIGSTOP counts as two ticks."""
    with harness.dog.watch("commit", SECOND):
        harness.freeze(3600)

    assert harness.codes == []


def test_one_watch_after_the_other_has_a_fresh_budget(harness: WatchdogHarness) -> None:
    """Budgets of closed watches are forgotten."""
    for _ in range(5):
        with harness.dog.watch("commit", SECOND):
            harness.live(1)

    assert harness.codes == []


def test_an_outer_watch_counts_through_inner_ones(harness: WatchdogHarness) -> None:
    """Nested watches each keep their own budget."""
    with harness.dog.watch("release", SECOND):
        for _ in range(3):
            with harness.dog.watch("commit", SECOND):
                harness.live(0.8)

    assert harness.farewells == [Ending(Outcome.RESTART, "watchdog: release took longer than 1 s")]


def test_a_watch_closes_when_its_block_raises(harness: WatchdogHarness) -> None:
    """An exception inside the block closes its watch, too."""
    with pytest.raises(ValueError, match="inside"), harness.dog.watch("commit", SECOND):
        raise ValueError("inside")
    harness.live(5)

    assert harness.codes == []


def test_a_farewell_that_blocks_does_not_keep_the_process() -> None:
    """The farewell gets 0.2 s; the process exits whether or not it was received."""
    ended = threading.Event()
    never = threading.Event()
    dog = Watchdog(farewell=lambda _ending: never.wait(30), end=lambda _code: ended.set())
    dog.start()

    with dog.watch("commit", timedelta(0)):
        assert ended.wait(5), "the farewell held the process"

    dog.stop()
    never.set()
