"""Retries requests to a cluster, but no transactional call: if one fails, the process exits."""

from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_exponential_jitter

from eos_mirror.errors import MirrorError, RetriableError, SourceUnavailable, TargetUnavailable
from eos_mirror.kafka.deadline import PATIENCE, Deadline

T = TypeVar("T")
TRANSIENT = SourceUnavailable, TargetUnavailable, RetriableError


def retrying(
    call: Callable[[Deadline], T],
    *,
    within: timedelta = PATIENCE,
    when: type[MirrorError] | tuple[type[MirrorError], ...] = TRANSIENT,
) -> T:
    """
    Repeat the call until it succeeds, with growing pauses of 0.02 to 2 s.

    Args:
        call: Its argument is the deadline of all attempts together.
        within: How long to repeat it. An attempt that began in time is not interrupted.
        when: The errors after which it is repeated.

    Raises:
        The last error of `when`, when time is up. Any other error is not repeated.
    """
    return Retrying(
        retry=retry_if_exception_type(when),
        stop=stop_after_delay(within),
        wait=wait_exponential_jitter(multiplier=0.02, exp_base=1.5, max=2, jitter=0.02),
        reraise=True,
    )(call, Deadline(within))
