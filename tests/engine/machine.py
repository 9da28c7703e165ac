"""The state machine that Hypothesis drives."""

import sys
from collections.abc import Sequence
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.engine.checked_scenario import CheckedScenario
from tests.engine.misfortunes import MOVES, Misfortunes, Move

DEALT: Final = [move for move in MOVES for _ in range(move.weight)]


def _arguments(move: Move) -> st.SearchStrategy[tuple[str, tuple[Any, ...]]]:
    return st.tuples(st.just(move.name), st.tuples(*map(st.sampled_from, move.arguments)))


class MirrorMachine(RuleBasedStateMachine):
    """
    Deals all misfortunes by one rule.

    With several rules, Hypothesis would skip some of them in each run, and a run without steps or
    without records finds nothing.
    """

    misfortunes: Misfortunes
    own_lane = False

    @initialize(slots=st.integers(2, 3), start=st.sampled_from(["earliest", "latest"]))
    def begin(self, slots: int, start: str) -> None:
        """Start a process in every slot."""
        scenario = CheckedScenario(slots=slots, start_position=start, own_lane=self.own_lane)
        self.misfortunes = Misfortunes(scenario)
        for slot in range(slots):
            self.misfortunes.scenario.start(slot)

    @rule(move=st.sampled_from(DEALT).flatmap(_arguments))
    def deal(self, move: tuple[str, Sequence[Any]]) -> None:
        """Deal one misfortune of the table."""
        name, arguments = move
        getattr(self.misfortunes, name)(*arguments)

    @invariant()
    def holds(self) -> None:
        """Check what was done from outside; the oracle has checked every step already."""
        if hasattr(self, "misfortunes"):
            self.misfortunes.scenario.oracle.check()

    def teardown(self) -> None:
        """Repair everything; then every record must arrive."""
        if hasattr(self, "misfortunes"):
            try:
                if sys.exc_info()[0] is None:  # a violation is reported as it was found
                    self.misfortunes.scenario.drain()
            finally:
                self.misfortunes.scenario.close()


class OwnLaneMachine(MirrorMachine):
    """The same with producers as those of our own lane: failures end incarnations."""

    own_lane = True
