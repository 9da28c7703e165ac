"""Retries requests to a cluster, but no transactional call: if one fails, the process exits."""

from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_exponential_jitter

from eos_mirror.errors import RetriableError, SourceUnavailable, TargetUnavailable

T = TypeVar("T")


def retrying(call: Callable[[], T], *, within: timedelta) -> T:
    """
    Repeat the call until it succeeds, with growing pauses of 0.02 to 2 s.

    Raises:
        SourceUnavailable, TargetUnavailable, RetriableError: The last error, when time is up.
    """
    return Retrying(
        retry=retry_if_exception_type((SourceUnavailable, TargetUnavailable, RetriableError)),
        stop=stop_after_delay(within),
        wait=wait_exponential_jitter(multiplier=0.02, exp_base=1.5, max=2, jitter=0.02),
        reraise=True,
    )(call)
