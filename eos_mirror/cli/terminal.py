"""
The terminal: tables, colours and progress bars, drawn by `rich`.

No other module imports rich, and this one does so only when there is something to draw. On a
stream that is no terminal, and where rich is not installed, a view is plain text and there are no
bars. The environment variable NO_COLOR turns colours off (https://no-color.org).
"""

import os
import shutil
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, Literal, TextIO

from eos_mirror.cli.views import Line, Row, Tone, View, plain

if TYPE_CHECKING:
    from rich.console import Console
    from rich.padding import Padding
    from rich.progress import Progress
    from rich.text import Text

STYLES: Final = {
    Tone.GOOD: "green",
    Tone.BUSY: "cyan",
    Tone.ORDERED: "magenta",
    Tone.WARNING: "yellow",
    Tone.BAD: "bold red",
    Tone.QUIET: "dim",
}
INDENT: Final = 2
BAR_WIDTH: Final = 30
REDRAWN_PER_S: Final = 5
ENTER, LEAVE = "\033[?1049h\033[?25l", "\033[?25h\033[?1049l"
"""The alternate screen without a cursor, and the way back."""

HOME, END_OF_LINE, REST = "\033[H", "\033[K\n", "\033[J"
"""Move to the first line; clear the rest of the line and move to the next; clear the rest."""


def is_screen(stream: TextIO) -> bool:
    """Return whether a stream is a terminal that can move its cursor."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def is_drawn(stream: TextIO) -> bool:
    """Return whether views and bars are drawn on this stream, and not printed as plain text."""
    return is_screen(stream) and find_spec("rich") is not None


def lines_of(view: View, stream: TextIO, *, follows: bool = False) -> list[str]:
    """
    Return a view as this stream gets it: with a table and colours, or as plain text.

    Args:
        follows: True if another view is above; what is drawn then begins with an empty line.
    """
    if not view or not is_drawn(stream):
        return list(plain(view))
    console = _console(stream)
    rows = [one for one in view if isinstance(one, Row)]
    lines = [""] if follows else []
    with console.capture() as captured:
        for one in view:
            if not isinstance(one, Row):
                console.print(_paragraph(one))
            elif rows:
                console.print(_table(rows))
                rows = []
    return lines + [one.rstrip() for one in captured.get().removesuffix("\n").split("\n")]


def painter(stream: TextIO) -> Callable[[str, Tone | None], str]:
    """Return a function that adds the colour of a tone to a text for this stream."""
    if not is_drawn(stream):
        return lambda text, _: text
    console = _console(stream)

    def paint(text: str, tone: Tone | None) -> str:
        with console.capture() as captured:
            console.out(text, style=None if tone is None else STYLES[tone], end="", highlight=False)
        return captured.get()

    return paint


def _console(stream: TextIO) -> "Console":
    from rich.console import Console  # noqa: PLC0415 (an extra, and slow to import)

    return Console(
        file=stream,
        color_system=None if os.environ.get("NO_COLOR") else "auto",
        no_color=False,  # rich 13 does not print colours if NO_COLOR is empty
        highlight=False,
        markup=False,
        emoji=False,
    )


def _paragraph(one: str | Line) -> "Padding":
    """Return a line that keeps its indentation where it is too long for the terminal."""
    from rich.padding import Padding  # noqa: PLC0415

    text = _text(one)
    depth = len(text.plain) - len(text.plain.lstrip(" "))
    return Padding(text[depth:], (0, 0, 0, depth), expand=False)


def _text(one: str | Line) -> "Text":
    from rich.text import Text  # noqa: PLC0415

    if isinstance(one, str):
        return Text(one, overflow="fold")
    pieces = ((p.text, "" if p.tone is None else STYLES[p.tone]) for p in one.pieces)
    return Text.assemble(*pieces, overflow="fold")


def _table(rows: Sequence[Row]) -> "Padding":
    from rich import box  # noqa: PLC0415
    from rich.padding import Padding  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for name in rows[0].cells:
        justify: Literal["left", "right"] = "right" if name in rows[0].numbers else "left"
        table.add_column(name, justify=justify, overflow="fold")
    for row in rows:
        table.add_row(*(_text(cell) for cell in row.cells.values()))
    return Padding(table, (0, 0, 0, INDENT), expand=False)


@contextmanager
def refreshed(
    stream: TextIO, *, as_data: bool = False
) -> Iterator[Callable[[Sequence[str]], None]]:
    """
    Yield a function that shows lines in the place of those before.

    What does not fit on the screen is cut off. When the block ends, the last lines remain on the
    terminal as a whole. On a stream that is no terminal, lines follow those before.

    Args:
        as_data: True if lines follow those before on a terminal, too.
    """
    last: Sequence[str] | None = None

    def show(lines: Sequence[str]) -> None:
        nonlocal last
        if as_data or not is_screen(stream):
            stream.writelines(f"{one}\n" for one in lines)
            stream.flush()
            return
        begin = ENTER if last is None else ""
        last = lines
        fitted = _fitted(lines, are_wrapped=is_drawn(stream))
        stream.write(begin + HOME + "".join(f"{one}{END_OF_LINE}" for one in fitted) + REST)
        stream.flush()

    try:
        yield show
    finally:
        if last is not None:
            stream.write(LEAVE + "".join(f"{one}\n" for one in last))
            stream.flush()


def _fitted(lines: Sequence[str], *, are_wrapped: bool) -> list[str]:
    """Return the lines that fit on the screen."""
    size = shutil.get_terminal_size()
    if not are_wrapped:
        lines = [
            part
            for one in lines
            for part in textwrap.wrap(one, size.columns, subsequent_indent=" " * 4) or [""]
        ]
    room = max(2, size.lines - 1)  # the cursor is on the last line
    if len(lines) <= room:
        return list(lines)
    return [*lines[: room - 1], f"... and {len(lines) - room + 1} more lines"]


class Bar:
    """
    The progress bar on stderr: of one thing at a time. Any thread may call it.

    Lines that are written to stdout or stderr meanwhile are printed above it. It disappears when it
    is full.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._what = ""
        self._progress: Progress | None = None
        self._is_closed = False

    def show(self, what: str, *, done: int, total: int, unit: str) -> None:
        """
        Show how much of something is done.

        Args:
            what: Name of the thing; another one takes the place of the one before.
            unit: Plural of what is counted.
        """
        with self._lock:
            if what != self._what or done >= total:
                self._end()
            if done >= total or self._is_closed:
                return
            if self._progress is None:
                self._what, self._progress = what, _progress()
                self._progress.add_task(what, completed=done, total=total, unit=unit)
                self._progress.start()
            (task,) = self._progress.task_ids
            self._progress.update(task, completed=done, total=total)

    def close(self) -> None:
        """Remove the bar; later calls show nothing."""
        with self._lock:
            self._is_closed = True
            self._end()

    def _end(self) -> None:
        if self._progress is not None:
            self._progress.stop()
            self._progress = None


@contextmanager
def bar() -> Iterator[Bar | None]:
    """Yield the bar for the length of the block; None if nothing is drawn on stderr."""
    if not is_drawn(sys.stderr):
        yield None
        return
    drawn = Bar()
    try:
        yield drawn
    finally:
        drawn.close()


def _progress() -> "Progress":
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=BAR_WIDTH),
        TaskProgressColumn(),
        TextColumn("{task.completed:,.0f} of {task.total:,.0f} {task.fields[unit]}", markup=False),
        TimeRemainingColumn(),
        console=_console(sys.stderr),
        transient=True,
        refresh_per_second=REDRAWN_PER_S,
        redirect_stdout=is_screen(sys.stdout),  # else it would be written to stderr
    )
