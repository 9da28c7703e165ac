"""What a running task sees of its runtime: the `ports.TaskChannel` of a process."""

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any, Generic, TypeVar

from eos_mirror.runtime.link import Event
from eos_mirror.runtime.outcome import Ending
from eos_mirror.runtime.watchdog import Watchdog

MAX_EVENTS = 1_000
"""Log events kept for the driver. If there are more, the oldest are dropped."""

MAX_REPORTS = 100
"""Reports kept for the driver; a task reports four times a second, and its lease lasts 30 s."""

_PER_BEAT = 200

T = TypeVar("T")


class Outbox(Generic[T]):
    """
    Items to send to the driver, in order.

    Invariant A: an item is removed only when the driver has received it, or when newer ones need
    its place. Items that were removed without being received are counted.
    """

    def __init__(self, *, max_items: int) -> None:
        self._lock = threading.Lock()
        self._items: deque[T] = deque()
        self._max_items = max_items
        self._first = 0
        self.dropped_count = 0

    def put(self, item: T) -> None:
        """Append an item; drops the oldest one when full."""
        with self._lock:
            self._items.append(item)
            if len(self._items) > self._max_items:
                self._items.popleft()
                self._first += 1
                self.dropped_count += 1

    def pending(self) -> tuple[int, Sequence[T]]:
        """Return the oldest items, and the serial number to confirm once they have arrived."""
        with self._lock:
            batch = list(self._items)[:_PER_BEAT]
            return self._first + len(batch), batch

    def confirm(self, serial: int) -> None:
        """Remove every item before this serial number: it has arrived."""
        with self._lock:
            while self._first < serial:
                self._items.popleft()
                self._first += 1


class RunningContext:
    """
    The context of the one task in this process; implements `ports.TaskChannel`.

    `report` and `watch` belong to the task's thread; any thread may call the other methods.
    """

    def __init__(
        self, slot: int, submission: str, watchdog: Watchdog, *, wake: Callable[[], object]
    ) -> None:
        """
        Args:
            wake: Triggers the next heartbeat immediately.
        """
        self.stop = threading.Event()
        self.events: Outbox[Event] = Outbox(max_items=MAX_EVENTS)
        self.reports: Outbox[Mapping[str, Any]] = Outbox(max_items=MAX_REPORTS)
        self._slot = slot
        self._submission = submission
        self._watchdog = watchdog
        self._wake = wake
        self._orders: Mapping[str, Any] = {}
        self._reported_s = time.monotonic()
        self._halt_lock = threading.Lock()
        self._halted: Ending | None = None

    @property
    def slot(self) -> int:
        """Index of the task, from 0."""
        return self._slot

    @property
    def submission(self) -> str:
        """Name of this start of the slot."""
        return self._submission

    def orders(self) -> Mapping[str, Any]:
        """Return the newest orders of the driver; empty until it has set any."""
        return self._orders

    def report(self, report: Mapping[str, Any]) -> None:
        """Send a JSON-able report with string keys. It proves that the loop is alive."""
        self.reports.put(dict(report))
        self._reported_s = time.monotonic()

    def event(self, name: str, fields: Mapping[str, Any]) -> None:
        """Send a log event to the driver, with the newest reports."""
        self.events.put((name, dict(fields)))
        self._wake()

    def watch(self, what: str, budget: timedelta) -> AbstractContextManager[None]:
        """Exit the process if the block takes longer than the budget."""
        return self._watchdog.watch(what, budget)

    def take_orders(self, orders: Mapping[str, Any]) -> None:
        """Store new orders from the driver."""
        self._orders = orders

    def halt(self, ending: Ending) -> None:
        """Ask the task to return. The first caller decides what its return means."""
        with self._halt_lock:
            if self._halted is None:
                self._halted = ending
        self.stop.set()

    @property
    def halted(self) -> Ending | None:
        """What a normal return of the task means; None if no return was requested."""
        return self._halted

    @property
    def loop_age_s(self) -> float:
        """Seconds since the last report, or since the start."""
        return time.monotonic() - self._reported_s
