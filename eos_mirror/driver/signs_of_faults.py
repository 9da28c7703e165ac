"""Warns of what may show a fault: commits that may have been sent twice, and unexpected offsets."""

import threading
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final

from eos_mirror.runtime.control import EventSink

WARNINGS: Final[Mapping[str, str]] = {
    "commit.suspicious": "commits.doubtful",
    "partition.gap": "offsets.unexpected",
}
"""By event. Single events are harmless, and a slow target causes one a second."""

AT_MOST_EVERY: Final = timedelta(minutes=10)


class SignsOfFaults:
    """
    Passes the events of one flow on, and adds the warnings.

    The first event of a kind is a warning immediately. Later ones are counted, and reported with
    the first event after `AT_MOST_EVERY`.
    """

    def __init__(self, on_event: EventSink, *, clock: Callable[[], float] = time.monotonic) -> None:
        """
        Args:
            on_event: Receives all events. Any thread may call it.
            clock: Seconds.
        """
        self._on_event, self._clock = on_event, clock
        self._lock = threading.Lock()
        self._warned_at: dict[str, float] = {}
        self._count: dict[str, int] = {}

    def __call__(self, name: str, fields: Mapping[str, Any]) -> None:
        """Pass an event on."""
        self._on_event(name, fields)
        warning = WARNINGS.get(name)
        times = self._heed(warning) if warning is not None else 0
        if warning is not None and times:
            self._on_event(warning, {**fields, "times": times})

    def _heed(self, warning: str) -> int:
        """Count an event; return how many a warning must report now, or 0."""
        now = self._clock()
        with self._lock:
            self._count[warning] = self._count.get(warning, 0) + 1
            last = self._warned_at.get(warning)
            if last is not None and now - last < AT_MOST_EVERY.total_seconds():
                return 0
            self._warned_at[warning] = now
            return self._count.pop(warning)
