"""The state machine can fail: it catches engines that break one rule, and passes the engine."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Final
from unittest import mock

import pytest

from eos_mirror.replication import positions
from eos_mirror.replication.config import Fencing
from tests.engine.chance import play
from tests.engine.checked_scenario import CheckedScenario
from tests.engine.mutants import MUTANTS
from tests.engine.oracle import Violation
from tests.engine.schedules import SCHEDULES

pytestmark = pytest.mark.usefixtures("one_core")

FULL = os.environ.get("EOS_MIRROR_ENGINE") == "full"
MODES: Final = {"naive": Fencing.NAIVE, "stable only": Fencing.STABLE_ONLY}
QUICK: Final = (
    "naive",
    "stable only",
    "no writer fenced",
    "position from before the fence",
    "committed again after an error",
    "end taken past a fault",
)
"""Mutants that random play finds within seconds."""

GAMES = 20_000 if FULL else 400
TIMEOUT_S = 3_600 if FULL else 300

TITLE = "broken engines, and what caught them"
NoteRow = Callable[[str, str], None]


@contextmanager
def broken(name: str) -> Iterator[None]:
    """
    Break this rule of the engine inside the block.

    Also switches off the check of the last records. It would stop partitions that some mutants
    split, and these must be caught without it.
    """
    with (
        mock.patch.object(positions, "split_partitions", return_value={}),
        MUTANTS[name]() if name in MUTANTS else nullcontext(),
    ):
        yield


def perform(name: str, *, fencing: Fencing) -> Violation | None:
    """Run the schedule of a mutant to the end; return the violation that it found."""
    scenario = CheckedScenario(slots=3, fencing=fencing)
    try:
        SCHEDULES[name](scenario)
        scenario.drain()
    except Violation as exc:
        return exc
    finally:
        scenario.close()
    return None


def row(mutant: str, how: str, finding: Violation) -> str:
    """Return a table row: how a mutant was caught, and by which finding."""
    return f"{mutant:32} {how:26} {str(finding)[:90]}"


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_mutant_is_caught_where_the_engine_is_not(name: str, note_row: NoteRow) -> None:
    """The same schedule, step by step: only the broken engine violates the guarantee."""
    with broken(name):
        started = time.perf_counter()
        finding = perform(name, fencing=MODES.get(name, Fencing.CLAIMS))
        took_s = time.perf_counter() - started

    assert finding is not None, "the mutant was not caught"
    assert perform(name, fencing=Fencing.CLAIMS) is None
    note_row(TITLE, row(name, f"schedule, {took_s:.2f} s", finding))


@pytest.mark.timeout(TIMEOUT_S)
@pytest.mark.parametrize("name", SCHEDULES if FULL else QUICK)
def test_dice_find_a_mutant(name: str, note_row: NoteRow) -> None:
    """Random play finds the mutant without a schedule."""
    started = time.perf_counter()
    with broken(name):
        for game in range(GAMES):
            finding = play(game, fencing=MODES.get(name, Fencing.CLAIMS))
            if finding is not None:
                took_s = time.perf_counter() - started
                note_row(TITLE, row(name, f"dice, game {game}, {took_s:.1f} s", finding))
                return
    pytest.fail(f"{name}: not caught in {GAMES} games")


def test_every_mutant_has_a_schedule() -> None:
    """No mutant depends on random play alone."""
    assert set(SCHEDULES) == set(MODES) | set(MUTANTS)
