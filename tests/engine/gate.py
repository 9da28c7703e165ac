"""The points where a fake can be stopped, and what can happen to a request there."""

from collections.abc import Callable
from enum import Enum, auto


class Fate(Enum):
    """
    What happens to one request.

    GO: carried out and answered.
    NOT_SENT: never arrives; the caller gives up.
    NOT_ANSWERED: carried out; the caller gives up without an answer.
    DELAYED: the caller gives up; the request arrives whenever the network lets it.
    TWICE_CUT: carried out and answered, after a broken connection; a second copy is in flight.
    TWICE_SLOW: carried out and answered, after a request timeout; a second copy is in flight.
    REFUSED: the target will never accept this record.

    The last four apply to EndTxn, TxnOffsetCommit and Produce only; elsewhere they are GO.
    """

    GO = auto()
    NOT_SENT = auto()
    NOT_ANSWERED = auto()
    DELAYED = auto()
    TWICE_CUT = auto()
    TWICE_SLOW = auto()
    REFUSED = auto()


Gate = Callable[[str], Fate]
"""Called before each request with its name; returns when the caller may continue."""


def open_gate(_: str) -> Fate:
    """Let every request pass: nothing stops, nothing fails."""
    return Fate.GO


class Clock:
    """Monotonic seconds that pass only in `advance`."""

    def __init__(self) -> None:
        self.now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.now_s += seconds
