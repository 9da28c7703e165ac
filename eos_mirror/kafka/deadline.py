"""The time that one operation has, passed down to every request that it makes."""

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Final

ANSWER: Final = timedelta(seconds=10)
"""The longest wait for the answer to one request."""

PATIENCE: Final = timedelta(seconds=30)
"""How long an operation is retried. Longer than an election after a broker was lost: the brokers'
session timeout with their controller is 9 s."""

LEAST_S: Final = 0.1
"""The client accepts no timeout of 0."""

GRACE_S = 1.0
"""A future is waited for this much longer than its request may take: the error with which the
client ends it says more than our own timeout."""


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

    @property
    def all_s(self) -> float:
        """How many seconds a request may take that is not repeated."""
        return max(self.left_s(at_most=self.within), LEAST_S)

    @property
    def answer_s(self) -> float:
        """
        How many seconds one request may take.

        At most half of the whole time, so that a request whose answer was lost can be repeated.
        """
        return max(self.left_s(at_most=min(ANSWER, self.within / 2)), LEAST_S)

    def left_s(self, *, at_most: timedelta) -> float:
        """Seconds for one request: what is left, but not more than `at_most`."""
        return min(max(self._at - self._now(), 0.0), at_most.total_seconds())
