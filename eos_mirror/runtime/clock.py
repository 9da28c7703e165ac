"""
A clock that stops while its process is stopped.

A process that was stopped (SIGSTOP, a suspended machine, a long pause of the kernel) must not
conclude afterwards that all others were silent meanwhile.
"""

import threading
import time
from collections.abc import Callable
from datetime import timedelta


class PatientClock:
    """
    Counts the seconds that this process spent running.

    Invariant A: between two reads it advances by at most twice the period. It must be read at
    least once per period, or it runs slow: timeouts come late, never early.
    """

    def __init__(self, period: timedelta, clock: Callable[[], float] = time.monotonic) -> None:
        self._most_s = 2 * period.total_seconds()
        self._clock = clock
        self._lock = threading.Lock()
        self._last_s = clock()
        self._patient_s = 0.0

    def read(self) -> float:
        """Return the seconds since the clock was made, without the time the process was stopped."""
        with self._lock:
            now_s = self._clock()
            self._patient_s += min(now_s - self._last_s, self._most_s)
            self._last_s = now_s
            return self._patient_s
