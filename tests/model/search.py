"""Visits every state of a small model, and explains the first one that breaks its rule."""

from collections.abc import Callable, Hashable, Iterable
from typing import Literal, NamedTuple, TypeVar

S = TypeVar("S", bound=Hashable)

Result = Literal["safe", "violation"]


class Violation(Exception):  # noqa: N818 - the finding of a search, not a failure of it
    """A state that the model calls unsafe."""


class Finding(NamedTuple):
    """
    What a search found.

    Attributes:
        completed: In so many states, what the model is about is done.
        trace: The steps to the violation.
    """

    result: Result
    states: int
    completed: int
    trace: tuple[str, ...] = ()


def search(
    start: S, steps: Callable[[S], Iterable[tuple[str, S]]], is_complete: Callable[[S], bool]
) -> Finding:
    """
    Visit every state that can be reached, or stop at the first violation.

    Args:
        steps: Returns everything that may happen next, with its name; may raise `Violation`.
    """
    came_from: dict[S, tuple[S, str] | None] = {start: None}
    left, completed = [start], 0
    while left:
        state = left.pop()
        completed += is_complete(state)
        try:
            for label, after in steps(state):
                if after not in came_from:
                    came_from[after] = (state, label)
                    left.append(after)
        except Violation as found:
            trace = (*_path(came_from, state), str(found))
            return Finding("violation", len(came_from), completed, trace)
    return Finding("safe", len(came_from), completed)


def _path(came_from: dict[S, tuple[S, str] | None], state: S) -> list[str]:
    labels: list[str] = []
    before = came_from[state]
    while before is not None:
        labels.append(before[1])
        before = came_from[before[0]]
    return labels[::-1]
