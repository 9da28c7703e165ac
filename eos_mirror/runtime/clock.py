"""
A clock that stands still while its process does.

A process that was stopped (SIGSTOP, a suspended machine, a long pause of the kernel) must not
conclude on waking that everybody else was silent all the time.
"""

import threading
import time
from collections.abc import Callable
from datetime import timedelta


class PatientClock:
    """
    Seconds that this process spent running, as seen by whoever reads the clock.

    Invariant A: between two reads it advances by at most twice the period. It must be read at
    least once a period, or it runs slow: late judgement, never early.
    """

    def __init__(self, period: timedelta, clock: Callable[[], float] = time.monotonic) -> None:
        self._most_s = 2 * period.total_seconds()
        self._clock = clock
        self._lock = threading.Lock()
        self._last_s = clock()
        self._patient_s = 0.0

    def read(self) -> float:
        """Seconds since the clock was made, less the time in which nobody could read it."""
        with self._lock:
            now_s = self._clock()
            self._patient_s += min(now_s - self._last_s, self._most_s)
            self._last_s = now_s
            return self._patient_s
