"""`eos-mirror status --watch`: shows the status again and again."""

import argparse
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta

from eos_mirror.cli.terminal import is_screen, lines_of, refreshed
from eos_mirror.cli.views import Answer, Piece, Tone, line, plain
from eos_mirror.errors import MirrorError
from eos_mirror.operate.repeated import Repeated

EVERY_S = 5.0
LEAST_S, MOST_S = 1.0, 86_400.0
ANSWERS_WITHIN = timedelta(minutes=2)
"""After this, the process that asks the clusters is replaced. A single question may take a minute
while a cluster does not answer."""


def seconds(text: str) -> float:
    """
    Parse an interval.

    Raises:
        ArgumentTypeError: Not a number, too small, or too large.
    """
    try:
        every_s = float(text)
    except ValueError as exc:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no number of seconds; write --watch after the file and the flow"
        ) from exc
    if LEAST_S <= every_s <= MOST_S:
        return every_s
    raise argparse.ArgumentTypeError(f"{text}: at least {LEAST_S:.0f} s, and at most a day")


def watch(
    look: Callable[[], Sequence[Answer]], *, every_s: float, title: str, as_data: bool
) -> int:
    """
    Show what `look` returns until SIGINT or SIGTERM.

    If it fails, the error is shown, and it is called again: a cluster may be down for a while.

    Args:
        look: Called in a child process; picklable.
        every_s: Seconds between two calls.
        title: Shown above, with the time.
        as_data: Print the lines alone, also on a terminal.

    Returns:
        The exit code of the last answer.

    Raises:
        MirrorError: The first call failed.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    on_screen = is_screen(sys.stdout) and not as_data
    code = None
    with closing(Repeated(look)) as repeated, refreshed(sys.stdout, as_data=as_data) as show:
        try:
            while True:
                try:
                    answers = repeated(ANSWERS_WITHIN)
                except MirrorError as exc:
                    if code is None:
                        raise
                    answers = [_failed(exc, on_screen=on_screen)]
                code = max((one.code for one in answers), default=0)
                show(_lines(answers, title, every_s, as_data=as_data))
                time.sleep(every_s)
        except KeyboardInterrupt:
            return code or 0


def _lines(answers: Sequence[Answer], title: str, every_s: float, *, as_data: bool) -> list[str]:
    if as_data:
        return [text for one in answers for text in plain(one.view)]
    now = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
    header = line(Piece(f"{now}: {title}, every {every_s:g} s", Tone.QUIET))
    shown = lines_of([header], sys.stdout)
    for one in answers:
        shown += lines_of(one.view, sys.stdout, follows=True)
    return shown


def _failed(exc: MirrorError, *, on_screen: bool) -> Answer:
    """Return an error as a view; it is printed on stderr if the view is not a screen."""
    lines = [f"cannot read the status, trying again: {one}" for one in str(exc).splitlines()]
    if on_screen:
        return Answer(view=[line(Piece(one, Tone.BAD)) for one in lines], code=exc.exit_code)
    sys.stderr.writelines(f"eos-mirror: {one}\n" for one in lines)
    return Answer(view=[], code=exc.exit_code)
