"""The watchdog: when it bites and when not."""

import threading
from datetime import timedelta

import pytest

from eos_mirror.runtime.outcome import Ending, ExitCode, Outcome
from eos_mirror.runtime.watchdog import MARGIN, TICK, Watchdog

SECOND = timedelta(seconds=1)
TICK_S = TICK.total_seconds()


class Kennel:
    """A watchdog with a clock that the test moves and an exit that is only noted."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.codes: list[int] = []
        self.farewells: list[Ending] = []
        self.dog = Watchdog(
            farewell=self.farewells.append, end=self.codes.append, clock=lambda: self.now_s
        )

    def live(self, seconds: float) -> None:
        """Tick regularly for this long, or until the process would have ended."""
        for _ in range(round(seconds / TICK_S)):
            if not self.codes:
                self.now_s += TICK_S
                self.dog.tick()

    def freeze(self, seconds: float) -> None:
        """Be stopped for this long, and go on."""
        self.now_s += seconds
        self.dog.tick()


@pytest.fixture
def kennel() -> Kennel:
    """A watchdog at rest."""
    return Kennel()


def test_a_block_within_its_budget_lives(kennel: Kennel) -> None:
    """Nothing happens before budget and margin are used up."""
    with kennel.dog.watch("commit", SECOND):
        kennel.live(1 + MARGIN.total_seconds() - TICK_S)

    assert kennel.codes == []


def test_a_block_over_its_budget_ends_the_process(
    kennel: Kennel, capsys: pytest.CaptureFixture[str]
) -> None:
    """The process ends with 71, says why on stderr and tells the driver."""
    with kennel.dog.watch("commit", SECOND):
        kennel.live(2)

    reason = "watchdog: commit took longer than 1 s"
    assert kennel.codes == [ExitCode.WATCHDOG]
    assert kennel.farewells == [Ending(Outcome.RESTART, reason)]
    told = capsys.readouterr().err
    assert told.startswith(f"{reason}, in ")
    assert "test_a_block_over_its_budget_ends_the_process (test_watchdog.py:" in told
    assert told.endswith("; the process exits\n")


def test_a_stopped_process_is_not_ended_for_the_pause(kennel: Kennel) -> None:
    """An hour of SIGSTOP counts as two ticks."""
    with kennel.dog.watch("commit", SECOND):
        kennel.freeze(3600)

    assert kennel.codes == []


def test_one_watch_after_the_other_has_a_fresh_budget(kennel: Kennel) -> None:
    """Budgets of closed watches are forgotten."""
    for _ in range(5):
        with kennel.dog.watch("commit", SECOND):
            kennel.live(1)

    assert kennel.codes == []


def test_an_outer_watch_counts_through_inner_ones(kennel: Kennel) -> None:
    """Nested watches each keep their own budget."""
    with kennel.dog.watch("release", SECOND):
        for _ in range(3):
            with kennel.dog.watch("commit", SECOND):
                kennel.live(0.8)

    assert kennel.farewells == [Ending(Outcome.RESTART, "watchdog: release took longer than 1 s")]


def test_a_watch_closes_when_its_block_raises(kennel: Kennel) -> None:
    """An exception inside leaves no watch behind."""
    with pytest.raises(ValueError, match="inside"), kennel.dog.watch("commit", SECOND):
        raise ValueError("inside")
    kennel.live(5)

    assert kennel.codes == []


def test_a_farewell_that_blocks_does_not_keep_the_process() -> None:
    """The last gasp has 0.2 s; the end comes whether it was heard or not."""
    ended = threading.Event()
    never = threading.Event()
    dog = Watchdog(farewell=lambda _ending: never.wait(30), end=lambda _code: ended.set())
    dog.start()

    with dog.watch("commit", timedelta(0)):
        assert ended.wait(5), "the farewell held the process"

    dog.stop()
    never.set()
