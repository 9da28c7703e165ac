"""Prints what the demo is doing: short lines, each with the seconds since the start."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

FIRST_TICK_S = 2.0
TICK_S = 4.0
"""The longest time without a line of progress."""


class Story:
    """Prints progress. Thread-safe."""

    def __init__(
        self, stream: TextIO | None = None, *, ticks_s: tuple[float, float] = (FIRST_TICK_S, TICK_S)
    ) -> None:
        """
        Args:
            stream: The output; stderr if None.
            ticks_s: Seconds until the first progress line of a step, and between later ones.
        """
        self._stream = stream or sys.stderr
        self._ticks_s = ticks_s
        self._started = time.monotonic()

    @property
    def elapsed_s(self) -> float:
        """Return the seconds since the start."""
        return time.monotonic() - self._started

    def tell(self, text: str, *details: str) -> None:
        """Print one line, and its details below it."""
        lines = [f"{self.elapsed_s:6.1f} s  {text}", *(f"          {line}" for line in details)]
        self._stream.write("\n".join(lines) + "\n")
        self._stream.flush()

    @contextmanager
    def during(
        self, text: str, progress: Callable[[], str] = lambda: "still at it"
    ) -> Iterator[None]:
        """
        Print what the block does, and every few seconds its progress.

        Args:
            progress: Called on a separate thread; must not raise.
        """
        self.tell(text)
        done = threading.Event()

        def tick() -> None:
            wait_s, then_s = self._ticks_s
            while not done.wait(wait_s):
                self.tell(f"  ... {progress()}")
                wait_s = then_s

        ticker = threading.Thread(target=tick, name="story", daemon=True)
        ticker.start()
        try:
            yield
        finally:
            done.set()
            ticker.join()
