"""`eos-mirror verify --watch`: repeats the proof, each time for what is new since the last one."""

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

DETAIL = "  "
"""A line that begins so belongs to the topic above it."""

Looking = Callable[[], AbstractContextManager[Callable[[], Report]]]


class Silence:
    """Implements `operate.verify.Watcher` without output: each of many proofs is short."""

    def __init__(self, on_done: Callable[[], None]) -> None:
        """
        Args:
            on_done: Called for each task.
        """
        self.done = on_done

    def look(self) -> None:
        """Do nothing: here a second signal stops. See `operate.verify.Watcher`."""

    def planned(self, planned: Planned) -> None:
        """Do nothing. See `operate.verify.Watcher`."""


def watch(looking: Looking, *, on_report: Callable[[Report], None]) -> Report | None:
    """
    Verify again and again until SIGINT or SIGTERM; a second signal stops immediately.

    A failure is printed, and the proof is tried again: a cluster may be down for a while.

    Args:
        looking: See `operate.verify.auditing`.
        on_report: Called with each report.

    Returns:
        The last report, if there was any.

    Raises:
        ConfigError: There is nothing to verify.
        KeyboardInterrupt: There was a second signal.
    """
    stop = threading.Event()

    def on_signal(_: str) -> None:
        stop.set()
        sys.stderr.write("eos-mirror: stopping after this proof; repeat to stop immediately\n")

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
            sys.stderr.write(f"eos-mirror: cannot verify, trying again: {exc}\n")
            stop.wait(LOOK_EVERY_S)
    return last


class Lines:
    """Prints one line per proof, and the details when the differences are others than before."""

    def __init__(self) -> None:
        self._wrong: Sequence[str] = []

    def tell(self, report: Report) -> None:
        """Print a report on stdout."""
        *details, verdict = report.lines()
        # the line of a topic also counts what matches, which grows while the mirror runs
        wrong = [] if report.holds else [line for line in details if line.startswith(DETAIL)]
        is_new, self._wrong = wrong != self._wrong, wrong
        if wrong and is_new:
            sys.stdout.write("".join(f"{line}\n" for line in details))
        sys.stdout.write(f"{datetime.now(UTC):%H:%M:%S} UTC {verdict}\n")
        sys.stdout.flush()
