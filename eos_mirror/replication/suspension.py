"""
Notices that a task was suspended for so long that a successor may mirror its partitions.

A group refuses the commit of such a task, and claims fence its transactions. Where positions are
stored at least once without a group, nothing else keeps it from setting them back.
"""

from collections.abc import Callable
from typing import Final

from eos_mirror.errors import RestartTask

LIMIT_S: Final = 22.0
"""A flush lasts 20 s at most. The driver replaces a task 30 s after its last sign of life, and the
commit that follows lasts 6 s at most (`config.COMMIT_BUDGET`)."""


class Suspension:
    """The time since a task last polled. Used by one thread."""

    def __init__(self, now: Callable[[], float], *, limit_s: float = LIMIT_S) -> None:
        """
        Args:
            now: Monotonic seconds.
        """
        self._now = now
        self._limit_s = limit_s
        self._polled_at = now()

    def poll(self) -> None:
        """Note that the task polls. Errors: as `check`."""
        self.check()
        self._polled_at = self._now()

    def check(self) -> None:
        """
        Check before positions are stored.

        Raises:
            RestartTask: Too much time has passed since the last poll.
        """
        passed_s = self._now() - self._polled_at
        if passed_s > self._limit_s:
            raise RestartTask(
                f"the task did not poll for {passed_s:.0f} s: it was suspended, and another one "
                f"may mirror its partitions"
            )
