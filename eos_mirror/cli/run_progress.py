"""The progress of the first catch-up of `run`, as a bar on a terminal."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from eos_mirror.cli.terminal import Bar, bar
from eos_mirror.driver.catch_up import FirstCatchUp
from eos_mirror.driver.driver import Driver
from eos_mirror.errors import MirrorError

LOOK_EVERY_S = 1.0


@contextmanager
def first_catch_up_shown(driver: Driver, stop: threading.Event) -> Iterator[None]:
    """
    Show how far the first catch-up is while the block runs, if there is a terminal to show it on.

    Args:
        driver: Begins to mirror in the block.
        stop: Set when the run stops.
    """
    with bar() as shown:
        ended = threading.Event()
        if shown is not None:
            args = driver, shown, (ended, stop)
            threading.Thread(target=_follow, args=args, name="progress", daemon=True).start()
        try:
            yield
        finally:
            ended.set()


def _follow(driver: Driver, shown: Bar, ends: tuple[threading.Event, threading.Event]) -> None:
    """Show the bar from the second look on: a flow that lags little needs none."""
    ended, stop = ends

    def has_ended() -> bool:
        return ended.wait(LOOK_EVERY_S) or stop.is_set()

    while not driver.readiness.is_settled:
        if has_ended():
            return
    with suppress(MirrorError):  # without an answer there is nothing to show
        progress = FirstCatchUp(driver.flows)
        progress.look()
        while not (progress.is_over or has_ended()):
            progress.look()
            shown.show("catching up", done=progress.done, total=progress.total, unit="offsets")
    shown.close()
