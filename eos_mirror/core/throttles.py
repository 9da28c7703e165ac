"""Limits on how fast records are mirrored, and how the tasks of a flow share them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

BURST_S: Final = 1.0
"""What was not used is kept for this long: longer than a commit takes on a busy machine."""

SLICE_S: Final = 0.1
"""Records are handed over in portions of this length, not one by one."""

KEPT_FREE: Final = 0.02
"""Part of a limit for the tasks that need nothing now, so that they can begin."""

GROWTH: Final = 1.25
"""A task that does not wait gets what it uses, times this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """
    A limit, or a task's share of one.

    Attributes:
        bytes_per_s: Bytes of values; None: no limit.
        records_per_s: None: no limit.
    """

    bytes_per_s: float | None = None
    records_per_s: float | None = None

    def __bool__(self) -> bool:
        return self.bytes_per_s is not None or self.records_per_s is not None

    def __str__(self) -> str:
        parts = [
            f"{value:,.0f} {unit}/s"
            for value, unit in ((self.bytes_per_s, "bytes"), (self.records_per_s, "records"))
            if value is not None
        ]
        return " and ".join(parts) or "no limit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """
    What a task used of a limit.

    Attributes:
        used: Per second, lately.
        waits: True if records wait for the limit.
    """

    used: Limit
    waits: bool


def shares(limit: Limit, uses: Sequence[Use]) -> tuple[Limit, ...]:
    """Return a share of a limit for each task; together they are the limit."""
    waits = [use.waits for use in uses]
    by_bytes = _shared(limit.bytes_per_s, [use.used.bytes_per_s or 0.0 for use in uses], waits)
    by_records = _shared(
        limit.records_per_s, [use.used.records_per_s or 0.0 for use in uses], waits
    )
    return tuple(
        Limit(bytes_per_s=one, records_per_s=other)
        for one, other in zip(by_bytes, by_records, strict=True)
    )


def _shared(
    rate: float | None, used: Sequence[float], waits: Sequence[bool]
) -> Sequence[float | None]:
    """Give each task that waits an equal part of what the others do not need."""
    if rate is None or not used:
        return [None] * len(used)
    if all(waits) or not any(waits):
        return [rate / len(used)] * len(used)
    least = rate * KEPT_FREE / len(used)
    fair = rate / len(used)
    needs = [
        None if wait else min(max(least, one * GROWTH), fair)
        for one, wait in zip(used, waits, strict=True)
    ]
    left = rate - sum(need for need in needs if need is not None)
    return [left / sum(waits) if need is None else need for need in needs]


class Bucket:
    """
    Counts what a share allows now.

    A record larger than the share of a moment is allowed too; the following ones then wait longer.
    """

    def __init__(self, share: Limit, *, now: float) -> None:
        """
        Args:
            now: Monotonic seconds, as in the other methods.
        """
        self.share = share
        self._bytes = self._records = 0.0
        self._filled_at = now

    def fill(self, *, now: float) -> None:
        """Add what the share allows since the last call."""
        passed_s = now - self._filled_at
        self._filled_at = now
        if (rate := self.share.bytes_per_s) is not None:
            self._bytes = min(self._bytes + rate * passed_s, rate * BURST_S)
        if (rate := self.share.records_per_s) is not None:
            self._records = min(self._records + rate * passed_s, max(rate * BURST_S, 1.0))

    def room(self, records: int, size_bytes: int) -> int:
        """Return how many of these records may be handed over now; 0 if it is not worth it yet."""
        allowed = records
        if (rate := self.share.bytes_per_s) is not None:
            if self._bytes < min(rate * SLICE_S, size_bytes):
                return 0
            allowed = min(allowed, max(1, int(self._bytes * records / max(size_bytes, 1))))
        if (rate := self.share.records_per_s) is not None:
            if self._records < min(max(rate * SLICE_S, 1.0), records):
                return 0
            allowed = min(allowed, int(self._records))
        return allowed

    def take(self, records: int, size_bytes: int) -> None:
        """Count records that were handed over."""
        self._bytes -= size_bytes
        self._records -= records

    def seconds_of(self, records: int, size_bytes: int) -> float:
        """Return how long the share needs for so much."""
        by_bytes = size_bytes / self.share.bytes_per_s if self.share.bytes_per_s else 0.0
        by_records = records / self.share.records_per_s if self.share.records_per_s else 0.0
        return max(by_bytes, by_records)
