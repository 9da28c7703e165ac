"""Waits for a condition, never for a fixed time."""

import time
from collections.abc import Callable
from datetime import timedelta

POLL_S = 0.02


def wait_until(condition: Callable[[], bool], *, within: timedelta, what: str) -> None:
    """
    Return as soon as the condition holds.

    Args:
        what: Description of the condition, for the message.

    Raises:
        TimeoutError: The condition did not hold in time.
    """
    deadline = time.monotonic() + within.total_seconds()
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {within.total_seconds():g} s in vain for: {what}")
        time.sleep(POLL_S)
