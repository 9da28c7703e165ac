"""Repeating questions to a cluster. Never wraps a transactional call: those end the process."""

from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_exponential_jitter

from eos_mirror.errors import RetriableError, SourceUnavailable, TargetUnavailable

T = TypeVar("T")


def retrying(call: Callable[[], T], *, within: timedelta) -> T:
    """
    Call until it answers, with growing pauses of 0.02 to 2 s.

    Raises:
        SourceUnavailable, TargetUnavailable, RetriableError: The last one, when time is up.
    """
    return Retrying(
        retry=retry_if_exception_type((SourceUnavailable, TargetUnavailable, RetriableError)),
        stop=stop_after_delay(within),
        wait=wait_exponential_jitter(multiplier=0.02, exp_base=1.5, max=2, jitter=0.02),
        reraise=True,
    )(call)
