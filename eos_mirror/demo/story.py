"""What a person reads while the demo runs: short lines, each with the second it was said."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

FIRST_TICK_S = 2.0
TICK_S = 4.0
"""Nobody waits longer than this without a sign of life."""


class Story:
    """Tells; any thread may call it."""

    def __init__(
        self, stream: TextIO | None = None, *, ticks_s: tuple[float, float] = (FIRST_TICK_S, TICK_S)
    ) -> None:
        """
        Args:
            stream: Where to; stderr if None.
            ticks_s: Seconds until the first sign of life of a step, and from one to the next.
        """
        self._stream = stream or sys.stderr
        self._ticks_s = ticks_s
        self._started = time.monotonic()

    @property
    def elapsed_s(self) -> float:
        """Seconds since the story began."""
        return time.monotonic() - self._started

    def tell(self, text: str, *details: str) -> None:
        """One line, and its details below it."""
        lines = [f"{self.elapsed_s:6.1f} s  {text}", *(f"          {line}" for line in details)]
        self._stream.write("\n".join(lines) + "\n")
        self._stream.flush()

    @contextmanager
    def during(
        self, text: str, progress: Callable[[], str] = lambda: "still at it"
    ) -> Iterator[None]:
        """
        Say what is done now, and every few seconds how far it has come.

        Args:
            progress: Called on a thread of its own; must not raise.
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
