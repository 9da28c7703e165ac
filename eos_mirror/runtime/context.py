"""What a running task sees of its runtime: the `ports.TaskContext` of a process."""

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any

from eos_mirror.runtime.link import Event
from eos_mirror.runtime.outcome import Ending
from eos_mirror.runtime.watchdog import Watchdog

MAX_EVENTS = 1_000
"""Events kept for the driver; the oldest make room."""

_EVENTS_PER_BEAT = 200


class Outbox:
    """
    Events on their way to the driver, in order.

    Invariant A: an event leaves only when the driver has it or a newer one needs its room;
    what had to leave unseen is counted.
    """

    def __init__(self, *, max_events: int = MAX_EVENTS) -> None:
        self._lock = threading.Lock()
        self._events: deque[Event] = deque()
        self._max_events = max_events
        self._first = 0
        self.dropped_count = 0

    def put(self, event: Event) -> None:
        """Append; drops the oldest when full."""
        with self._lock:
            self._events.append(event)
            if len(self._events) > self._max_events:
                self._events.popleft()
                self._first += 1
                self.dropped_count += 1

    def pending(self) -> tuple[int, Sequence[Event]]:
        """The oldest events, and the serial number to confirm once they have arrived."""
        with self._lock:
            batch = list(self._events)[:_EVENTS_PER_BEAT]
            return self._first + len(batch), batch

    def confirm(self, serial: int) -> None:
        """Everything before this serial number has arrived."""
        with self._lock:
            while self._first < serial:
                self._events.popleft()
                self._first += 1


class RunningContext:
    """
    The context of the one task in this process.

    `report` and `watch` belong to the task's thread; the rest may be called from anywhere.
    """

    def __init__(self, slot: int, watchdog: Watchdog, *, wake: Callable[[], object]) -> None:
        """
        Args:
            wake: Makes the next heartbeat come at once.
        """
        self.stop = threading.Event()
        self.outbox = Outbox()
        self._slot = slot
        self._watchdog = watchdog
        self._wake = wake
        self._orders: Mapping[str, Any] = {}
        self._status: tuple[float, Mapping[str, Any]] = (time.monotonic(), {})
        self._halt_lock = threading.Lock()
        self._halted: Ending | None = None

    @property
    def slot(self) -> int:
        """Index of the task, from 0."""
        return self._slot

    def orders(self) -> Mapping[str, Any]:
        """The newest orders of the driver; empty until it has set any."""
        return self._orders

    def report(self, status: Mapping[str, Any]) -> None:
        """Replace the status; proves that the loop turns. JSON-able, with string keys."""
        self._status = (time.monotonic(), dict(status))

    def event(self, name: str, fields: Mapping[str, Any]) -> None:
        """Send a log event to the driver, with the newest status."""
        self.outbox.put((name, dict(fields)))
        self._wake()

    def watch(self, what: str, budget: timedelta) -> AbstractContextManager[None]:
        """End the process if the block takes longer than the budget."""
        return self._watchdog.watch(what, budget)

    def take_orders(self, orders: Mapping[str, Any]) -> None:
        """New orders have come."""
        self._orders = orders

    def halt(self, ending: Ending) -> None:
        """Ask the task to return. The first asker decides how its return is understood."""
        with self._halt_lock:
            if self._halted is None:
                self._halted = ending
        self.stop.set()

    @property
    def halted(self) -> Ending | None:
        """How a normal return shall be understood; None if nobody asked for it."""
        return self._halted

    @property
    def status(self) -> Mapping[str, Any]:
        """What the task reported last."""
        return self._status[1]

    @property
    def loop_age_s(self) -> float:
        """Seconds since the last report, or since the start."""
        return time.monotonic() - self._status[0]
