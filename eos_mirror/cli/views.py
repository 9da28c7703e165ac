"""What a verb shows a person, as data: lines, and rows that a terminal shows as a table."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from eos_mirror.core.states import State


class Tone(Enum):
    """What a text means. `cli/terminal.py` has a colour for each."""

    GOOD = "good"
    BUSY = "busy"
    """It will soon be good, without anybody's help."""
    ORDERED = "ordered"
    """An operator wants it so."""
    WARNING = "warning"
    BAD = "bad"
    QUIET = "quiet"


TONES = {
    State.MIRRORING: Tone.GOOD,
    State.STARTING: Tone.BUSY,
    State.WAITING: Tone.WARNING,
    State.PAUSED: Tone.ORDERED,
    State.STOPPED: Tone.ORDERED,
    State.UNKNOWN: Tone.BAD,
    State.FAILED: Tone.BAD,
    State.NOT_RUNNING: Tone.BAD,
}
"""The tone of each state."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a line; None is the tone of plain text."""

    text: str
    tone: Tone | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text. `str` returns it without tones."""

    pieces: Sequence[Piece]

    def __str__(self) -> str:
        return "".join(piece.text for piece in self.pieces)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """
    A row of a table. All rows of a view have the same columns.

    Attributes:
        line: What is shown instead where there are no tables; None for nothing.
        cells: By the name of the column, from left to right.
        numbers: Columns that are aligned to the right.
    """

    line: str | None
    cells: Mapping[str, Line]
    numbers: Sequence[str] = ()


View = Sequence[str | Line | Row]
"""What is shown together. Its rows form one table, in the place of the first one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """
    A part of what a verb answers.

    Attributes:
        code: The exit code that follows from it.
        is_overview: True for a part that repeats the others in short.
    """

    view: View
    code: int = 0
    is_overview: bool = False


def line(*pieces: str | Piece) -> Line:
    """Return a line of these pieces; a string is a piece of plain text."""
    return Line([Piece(one) if isinstance(one, str) else one for one in pieces])


def joined(pieces: Iterable[Piece]) -> Line:
    """Return a line of these pieces with commas between them."""
    parts = [part for piece in pieces for part in (Piece(", "), piece)]
    return Line(parts[1:])


def state(one: State) -> Piece:
    """Return the name of a state."""
    return Piece(one.value, TONES[one])


def plain(view: View) -> Iterator[str]:
    """Yield the lines of a view as plain text."""
    for one in view:
        text = one.line if isinstance(one, Row) else str(one)
        if text is not None:
            yield text
