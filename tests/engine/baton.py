"""Runs one task at a time: threads hand over a baton at every request."""

import threading
from collections.abc import Callable

from tests.engine.gate import Fate, Gate


class Killed(BaseException):
    """Unwinds the thread of a task whose process was killed. The engine never sees it."""


class Actor:
    """
    Runs a body in a thread of its own, but only while the test waits in `step`.

    Attributes:
        at: The request that it is about to send.
        steps: Requests so far.
        error: The exception that ended it; None after a return or a kill.
    """

    def __init__(self, body: Callable[[Gate], None]) -> None:
        self.at = "start"
        self.steps = 0
        self.is_over = False
        self.was_killed = False
        self.error: BaseException | None = None
        self._body = body
        self._fate = Fate.GO
        self._go = threading.Lock()
        self._back = threading.Lock()
        self._go.acquire()
        self._back.acquire()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        self._go.acquire()
        try:
            if not self.was_killed:
                self._body(self.gate)
        except Killed:
            pass
        except BaseException as exc:  # noqa: BLE001 (the thread's top; the tests check it)
            self.error = exc
        self.is_over = True
        self._back.release()

    def gate(self, point: str) -> Fate:
        """Block the thread before a request, until the test calls `step` or `kill`."""
        if self.was_killed:
            raise Killed
        self.at = point
        self._back.release()
        self._go.acquire()
        if self.was_killed:
            raise Killed
        self.steps += 1
        fate, self._fate = self._fate, Fate.GO
        return fate

    def step(self, fate: Fate = Fate.GO) -> None:
        """Let it send its request, and run to the next one or to its end."""
        if not self.is_over:
            self._fate = fate
            self._go.release()
            self._back.acquire()

    def kill(self) -> None:
        """Kill it: its request is never sent."""
        self.was_killed = True
        while not self.is_over:
            self.step()
