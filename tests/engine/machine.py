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
    One rule for all misfortunes: of several, Hypothesis would leave some out of each run, and a
    run without steps or without records finds nothing.
    """

    misfortunes: Misfortunes

    @initialize(slots=st.integers(2, 3), start=st.sampled_from(["earliest", "latest"]))
    def begin(self, slots: int, start: str) -> None:
        """Every slot has a process."""
        self.misfortunes = Misfortunes(CheckedScenario(slots=slots, start_position=start))
        for slot in range(slots):
            self.misfortunes.scenario.start(slot)

    @rule(move=st.sampled_from(DEALT).flatmap(_arguments))
    def deal(self, move: tuple[str, Sequence[Any]]) -> None:
        """One of the table."""
        name, arguments = move
        getattr(self.misfortunes, name)(*arguments)

    @invariant()
    def holds(self) -> None:
        """The oracle has looked at every step already; this is for what was done from outside."""
        if hasattr(self, "misfortunes"):
            self.misfortunes.scenario.oracle.check()

    def teardown(self) -> None:
        """Everything heals, and arrives."""
        if hasattr(self, "misfortunes"):
            try:
                if sys.exc_info()[0] is None:  # a violation is told as it was found
                    self.misfortunes.scenario.drain()
            finally:
                self.misfortunes.scenario.close()
