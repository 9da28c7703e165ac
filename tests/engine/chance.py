"""Plays the state machine with plain random numbers: quicker than Hypothesis, one seed a game."""

import random
from typing import Final

from eos_mirror.replication.config import Fencing
from tests.engine.checked_scenario import CheckedScenario
from tests.engine.misfortunes import MOVES, Misfortunes
from tests.engine.oracle import Violation

DEEDS: Final = 80


def play(
    number: int, *, fencing: Fencing = Fencing.CLAIMS, own_lane: bool = False
) -> Violation | None:
    """Play one game, always the same for its number; return the violation that it found."""
    dice = random.Random(number)
    scenario = CheckedScenario(slots=dice.choice((2, 3)), fencing=fencing, own_lane=own_lane)
    misfortunes = Misfortunes(scenario)
    try:
        for slot in scenario.slots:
            scenario.start(slot)
        for move in dice.choices(MOVES, [move.weight for move in MOVES], k=DEEDS):
            getattr(misfortunes, move.name)(*map(dice.choice, move.arguments))
        scenario.drain()
    except Violation as exc:
        return exc
    finally:
        scenario.close()
    return None
