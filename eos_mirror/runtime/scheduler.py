"""Runs the driver's chores, one after the other in one thread."""

import heapq
import itertools
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

Chore = Callable[[], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    name: str
    interval_s: float
    chore: Chore


class Scheduler:
    """
    Runs each chore immediately, or after a delay, and then once per interval.

    The interval counts from the end of the last run.

    Invariants:
        A. No two chores run at the same time.
        B. A chore that raises is reported and stays scheduled.
    """

    def __init__(self, *, on_error: Callable[[str, Exception], None]) -> None:
        """
        Args:
            on_error: Receives the name of the chore and what it raised; must not raise.
        """
        self._on_error = on_error
        self._order = itertools.count()
        self._due: list[tuple[float, int, _Job]] = []
        self._changed = threading.Condition()  # guards what follows
        self._hurried: list[str] = []
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="scheduler", daemon=True)

    def add(
        self, name: str, interval: timedelta, chore: Chore, *, after: timedelta = timedelta(0)
    ) -> None:
        """Schedule a chore, first after this delay. Call it before `start` only."""
        job = _Job(name=name, interval_s=interval.total_seconds(), chore=chore)
        self._push(time.monotonic() + after.total_seconds(), job)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def hurry(self, *names: str) -> None:
        """
        Make chores due now, in this order. One that is running runs once more.

        Any thread may call this.
        """
        with self._changed:
            self._hurried += names
            self._changed.notify()

    def stop(self, within: timedelta) -> bool:
        """Run no further chore; return True if the running one ended in time."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread.ident is not None:
            self._thread.join(within.total_seconds())
        return not self._thread.is_alive()

    def _run(self) -> None:
        while (job := self._next()) is not None:
            try:
                job.chore()
            except Exception as exc:  # noqa: BLE001 - one bad chore must not stop the others (B)
                self._on_error(job.name, exc)
            self._push(time.monotonic() + job.interval_s, job)

    def _next(self) -> _Job | None:
        """Wait for the next chore that is due; return None at the end."""
        with self._changed:
            while self._due and not self._stopping:
                self._bring_forward()
                wait_s = self._due[0][0] - time.monotonic()
                if wait_s <= 0:
                    return heapq.heappop(self._due)[2]
                self._changed.wait(wait_s)
        return None

    def _bring_forward(self) -> None:
        if self._hurried:
            first_s = {
                name: float(rank) - len(self._hurried) for rank, name in enumerate(self._hurried)
            }
            self._due = [
                (first_s.get(job.name, due_s), number, job) for due_s, number, job in self._due
            ]
            heapq.heapify(self._due)
            self._hurried.clear()

    def _push(self, due_s: float, job: _Job) -> None:
        heapq.heappush(self._due, (due_s, next(self._order), job))
