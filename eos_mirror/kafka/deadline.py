"""The time that one operation has, passed down to every request that it makes."""

import time
from collections.abc import Callable
from datetime import timedelta


class Deadline:
    """A moment on a monotonic clock. Requests get what is left until then."""

    def __init__(self, within: timedelta, now: Callable[[], float] = time.monotonic) -> None:
        self.within = within
        self._now = now
        self._at = now() + within.total_seconds()

    @property
    def is_over(self) -> bool:
        """No time is left."""
        return self._now() >= self._at

    def left_s(self, *, at_most: timedelta) -> float:
        """Seconds for one request: what is left, but not more than `at_most`."""
        return min(max(self._at - self._now(), 0.0), at_most.total_seconds())
