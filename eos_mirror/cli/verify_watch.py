"""`eos-mirror verify --watch`: one proof after the other, each of what is new since the last."""

import signal
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime

from eos_mirror.cli.signals import on_signals
from eos_mirror.errors import ConfigError, MirrorError
from eos_mirror.operate.verify import Planned
from eos_mirror.operate.verify_report import Report

LOOK_EVERY_S = 5.0

Looking = Callable[[], AbstractContextManager[Callable[[], Report]]]


class Silence:
    """Implements `operate.verify.Watcher`: every look of many is short."""

    def __init__(self, on_done: Callable[[], None]) -> None:
        """
        Args:
            on_done: Called for each task.
        """
        self.done = on_done

    def look(self) -> None:
        """See `operate.verify.Watcher`: a second signal is enough here."""

    def planned(self, planned: Planned) -> None:
        """See `operate.verify.Watcher`."""


def watch(looking: Looking, *, on_report: Callable[[Report], None]) -> Report | None:
    """
    Look until SIGINT or SIGTERM; a second signal ends at once.

    What keeps it from looking is said, and tried again: a cluster may be away for a while.

    Args:
        looking: See `operate.verify.auditing`.
        on_report: Called with each.

    Returns:
        The last one, if there was any.

    Raises:
        ConfigError: There is nothing to look at.
        KeyboardInterrupt: A second signal.
    """
    stop = threading.Event()

    def on_signal(_: str) -> None:
        stop.set()
        sys.stderr.write("eos-mirror: ending after this look; once more to end at once\n")

    on_signals(on_signal, signal.SIGINT, signal.SIGTERM, only_once=True)
    last: Report | None = None
    while not stop.is_set():
        try:
            with looking() as look:
                while not stop.is_set():
                    last = look()
                    on_report(last)
                    stop.wait(LOOK_EVERY_S)
        except ConfigError:
            raise
        except MirrorError as exc:
            sys.stderr.write(f"eos-mirror: cannot look, trying again: {exc}\n")
            stop.wait(LOOK_EVERY_S)
    return last


class Lines:
    """A line for each look, and all of them when something is wrong that was not before."""

    def __init__(self) -> None:
        self._wrong: Sequence[str] = []

    def tell(self, report: Report) -> None:
        """On stdout."""
        *details, verdict = report.lines()
        if report.holds:
            self._wrong = []
        elif details != self._wrong:
            self._wrong = details
            sys.stdout.write("".join(f"{line}\n" for line in details))
        sys.stdout.write(f"{datetime.now(UTC):%H:%M:%S} UTC {verdict}\n")
        sys.stdout.flush()
