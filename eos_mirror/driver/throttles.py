"""Divides the limits of operators among the tasks of a flow, by what each task needs."""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from eos_mirror.core.messages import TaskReport, TaskThrottle, Throttle
from eos_mirror.core.throttles import Limit, Use, shares
from eos_mirror.driver.desired_state import DesiredStateFollower

SMALL: Final = 0.05
"""Part of a limit."""

NOTHING: Final = Use(used=Limit(), waits=False)
EXCESS: Final = 1.001
"""Shares are fractions: their sum may differ from the limit in the last digits."""


class Throttles:
    """
    Which share of each limit every task has. One thread at a time divides; any thread asks.

    A limit on the flow has the key None, one on a topic has its name.
    """

    def __init__(
        self, desired: DesiredStateFollower, *, now: Callable[[], float] = time.monotonic
    ) -> None:
        """
        Args:
            now: Monotonic seconds.
        """
        self._desired = desired
        self._now = now
        self._seen: dict[tuple[int, str | None], tuple[float, TaskThrottle]] = {}
        self._uses: dict[tuple[int, str | None], Use] = {}
        self._divided: dict[str | None, tuple[Limit, tuple[Limit, ...]]] = {}

    def limits(self, topics: Iterable[str]) -> dict[str | None, Limit]:
        """Return the limits that count now."""
        return {topic: order.limit for topic, order in self._desired.limited(topics).items()}

    def divided(self, topics: Iterable[str], *, tasks: int) -> tuple[Throttle, ...]:
        """Return the shares of every task. Small changes are not worth a message to every task."""
        divided = {}
        for topic, limit in self.limits(topics).items():
            uses = [self._uses.get((slot, topic), NOTHING) for slot in range(tasks)]
            new = shares(limit, uses)
            known, old = self._divided.get(topic, (limit, ()))
            keep = known == limit and len(old) == tasks and not _differ(limit, old, new)
            divided[topic] = limit, old if keep else new
        self._divided = divided
        return tuple(Throttle(topic=topic, shares=parts) for topic, (_, parts) in divided.items())

    def look(self, reports: Mapping[int, TaskReport | None]) -> None:
        """Learn from the newest report of each task, by slot, what it needs."""
        now = self._now()
        for slot, report in reports.items():
            for one in () if report is None else report.throttles:
                key = slot, one.topic
                at, before = self._seen.get(key, (now, one))
                if one.records < before.records or one.bytes < before.bytes:
                    before = one  # another process
                self._seen[key] = now, one
                if now > at:
                    self._uses[key] = _use(before, one, now - at)

    def are_applied(self, topics: Iterable[str], reports: Iterable[TaskReport]) -> bool:
        """Return True if what the tasks apply is within every limit, and there is no other."""
        limits, found = self.limits(topics), list(reports)
        applied = [{one.topic: one.share for one in report.throttles} for report in found]
        if any(one.keys() != limits.keys() for one in applied):
            return False
        return all(
            _within([one[topic].bytes_per_s for one in applied], limit.bytes_per_s)
            and _within([one[topic].records_per_s for one in applied], limit.records_per_s)
            for topic, limit in limits.items()
        )


def _use(before: TaskThrottle, after: TaskThrottle, passed_s: float) -> Use:
    used = Limit(
        bytes_per_s=(after.bytes - before.bytes) / passed_s,
        records_per_s=(after.records - before.records) / passed_s,
    )
    return Use(used=used, waits=after.waits)


def _differ(limit: Limit, old: Iterable[Limit], new: Iterable[Limit]) -> bool:
    """Return True if a share changes by more than a small part of the limit."""
    return any(
        abs((one.bytes_per_s or 0.0) - (other.bytes_per_s or 0.0))
        > SMALL * (limit.bytes_per_s or 0.0)
        or abs((one.records_per_s or 0.0) - (other.records_per_s or 0.0))
        > SMALL * (limit.records_per_s or 0.0)
        for one, other in zip(old, new, strict=True)
    )


def _within(parts: Iterable[float | None], limit: float | None) -> bool:
    known = [part for part in parts if part is not None]
    return not known if limit is None else sum(known) <= limit * EXCESS and bool(known)
