"""Real mirror tasks over fake clusters, under every misfortune, in random order."""

import os
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.engine.chance import play as play_game
from tests.engine.machine import MirrorMachine, OwnLaneMachine

pytestmark = pytest.mark.usefixtures("one_core")

FULL = os.environ.get("EOS_MIRROR_ENGINE") == "full"
"""A long run: EOS_MIRROR_ENGINE=full pytest tests/engine/test_state_machine.py."""

EXAMPLES = 20_000 if FULL else 250
STEPS = 60
TIMEOUT_S = 7_200 if FULL else 300


@pytest.mark.long
@pytest.mark.timeout(TIMEOUT_S)
@pytest.mark.parametrize("machine", [MirrorMachine, OwnLaneMachine], ids=["client", "own lane"])
def test_the_guarantee_holds_in_any_order_of_misfortunes(machine: type[MirrorMachine]) -> None:
    """At every step the target is a prefix of the source; in the end everything arrives."""
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            derandomize=not FULL,
            print_blob=True,
            suppress_health_check=list(HealthCheck),
        ),
    )


TWICE_CREATED_AGAIN = (
    ("start_or_replace", (0,)),
    ("lose_something", (1, 0)),
    ("run_some", (0, 15)),
    ("produce", (1, 1)),
    ("run_to", (1, "produce", 0)),
    ("crash", (0,)),
    ("lose_something", (1, 0)),
    ("run_some", (0, 5)),
)
"""A topic is created again before the mirror begins with it, and once more afterwards."""

BEGUN_BY_THE_NEXT_OWNER = (
    ("run_to", (0, "ends", 0)),
    ("run_some", (1, 2)),
    ("end_session", (0, 1)),
    ("produce_in_a_transaction", (0,)),
    ("run_to", (1, "end", 1)),
)
"""A task reads that there are no offsets, and the map only after its successor has begun."""


def play(moves: Sequence[tuple[str, tuple[Any, ...]]]) -> None:
    """Deal these misfortunes, and check the guarantee as Hypothesis would."""
    machine = MirrorMachine()
    machine.begin(slots=2, start="earliest")
    for move in moves:
        machine.deal(move=move)
        machine.holds()
    machine.teardown()


def test_a_topic_is_judged_by_the_one_that_the_mirror_began_with() -> None:
    """The oracle must not compare records with an earlier topic of that name, as it once did."""
    play(TWICE_CREATED_AGAIN)


def test_a_task_that_lost_a_new_partition_does_not_report_it_as_stopped() -> None:
    """Its successor began between the two reads; nothing was lost."""
    play(BEGUN_BY_THE_NEXT_OWNER)


@pytest.mark.parametrize("game", range(30))
def test_the_guarantee_holds_with_our_own_lane_in_games_of_dice(game: int) -> None:
    """A failed transaction ends the incarnation, and the task continues in the same process."""
    assert play_game(game, own_lane=True) is None
