"""
Exits the process when a watched block exceeds its budget.

librdkafka ignores the timeout of some calls and can block in them indefinitely
(send_offsets_to_transaction; confluentinc/librdkafka #5456, #5511). Nothing releases such a
thread, so another thread exits the process, and the successor reads the truth from the target.
A call that blocks while it holds the GIL stops this thread too: then the lease ends the task.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from eos_mirror.runtime.lifeline import last_words, main_thread_stack
from eos_mirror.runtime.outcome import Ending, ExitCode, Outcome

TICK = timedelta(milliseconds=100)

MARGIN = timedelta(milliseconds=500)
"""Added to every budget: a call that ends exactly at its deadline is not hanging."""


class _Watch:
    """One open block. `spent_s` is written by the watchdog alone."""

    __slots__ = ("budget_s", "spent_s", "what")

    def __init__(self, what: str, budget_s: float) -> None:
        self.what = what
        self.budget_s = budget_s
        self.spent_s = 0.0


class Watchdog:
    """
    Watches the blocks of one thread.

    Invariants:
        A. Opening and closing a watch takes no lock and does not read the clock.
        B. A tick counts at most twice its period, so a process that was stopped and continues
           does not exit because of the time it was stopped.
    """

    def __init__(
        self,
        *,
        farewell: Callable[[Ending], object],
        end: Callable[[int], object] = os._exit,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """
        Args:
            farewell: Reports the ending to the driver; may fail or block.
            end: Exits the process.
        """
        self._farewell = farewell
        self._end = end
        self._clock = clock
        self._open: tuple[_Watch, ...] = ()
        self._last_s = clock()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watchdog", daemon=True)

    def start(self) -> None:
        """Start watching."""
        self._thread.start()

    def stop(self) -> None:
        """Stop watching."""
        self._done.set()
        self._thread.join()

    @contextmanager
    def watch(self, what: str, budget: timedelta) -> Iterator[None]:
        """
        Allow the block this much time; after that the process exits with WATCHDOG (71).

        Watches nest; each has its own budget. Only one thread may use them.
        """
        outer = self._open
        self._open = (*outer, _Watch(what, budget.total_seconds()))
        try:
            yield
        finally:
            self._open = outer

    def tick(self) -> None:
        """Charge the time since the last tick to every open watch (B)."""
        now_s = self._clock()
        spent_s = min(now_s - self._last_s, 2 * TICK.total_seconds())
        self._last_s = now_s
        for watch in self._open:
            watch.spent_s += spent_s
            if watch.spent_s > watch.budget_s + MARGIN.total_seconds():
                self._expire(watch)
                return

    def _run(self) -> None:
        while not self._done.wait(TICK.total_seconds()):
            self.tick()

    def _expire(self, watch: _Watch) -> None:
        reason = f"watchdog: {watch.what} took longer than {watch.budget_s:g} s"
        last_words(
            f"{reason}, in {main_thread_stack()}; the process exits",
            lambda: self._farewell(Ending(Outcome.RESTART, reason)),
        )
        self._end(ExitCode.WATCHDOG)
