"""
From samples of a running mirror to its rate and its cost in the steady state.

The first 20 % of the records are left out: processes start, caches and compilers warm up.

Times are taken where a commit has just been seen: transactions come in steps, and the way to the
next step belongs to its records.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

WARM_UP_SHARE = 0.2
TAIL_SHARE = 0.5
"""Left out for the rate of what is warm: a JVM compiles for long."""
MIN_STEADY_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """
    One look.

    Attributes:
        at: Monotonic seconds.
        records: Committed so far, by the shadow offsets.
        cpu_s: CPU seconds so far, by role.
        peak_rss_mb: Highest so far, of the task.
    """

    at: float
    records: int
    cpu_s: Mapping[str, float]
    peak_rss_mb: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Steady:
    """
    A mirror between two samples.

    Attributes:
        records: Committed in it.
        seconds: How long it was.
        cpu_s: CPU seconds per million records, by role.
    """

    records: int
    seconds: float
    cpu_s: Mapping[str, float]

    @property
    def rate(self) -> float:
        """Records per second."""
        return self.records / self.seconds


def steady_state(samples: Sequence[Sample], *, total: int) -> Steady:
    """
    Between the first commit after the warm-up and the last one before everything was copied.

    Raises:
        ValueError: The window is too short to mean anything: use more records.
    """
    window = _window(samples, total)
    return _between(window[0], window[-1])


def warm_tail(samples: Sequence[Sample], *, total: int) -> Steady:
    """
    Of the steady state the second half of the records, and no less than a second.

    Raises:
        ValueError: As `steady_state`.
    """
    window = _window(samples, total)
    last = window[-1]
    half = next((s for s in window if s.records >= TAIL_SHARE * total), last)
    second = next(s for s in reversed(window) if last.at - s.at >= MIN_STEADY_S)
    return _between(min(half, second, key=lambda one: one.at), last)


def _window(samples: Sequence[Sample], total: int) -> list[Sample]:
    steps = [after for before, after in pairwise(samples) if after.records > before.records]
    window = [s for s in steps if WARM_UP_SHARE * total <= s.records < total]
    if len(window) < 2 or window[-1].at - window[0].at < MIN_STEADY_S:
        raise ValueError(f"less than {MIN_STEADY_S} s of steady state: use more than {total}")
    return window


def _between(first: Sample, last: Sample) -> Steady:
    records = last.records - first.records
    return Steady(
        records=records,
        seconds=last.at - first.at,
        cpu_s={
            role: (spent - first.cpu_s[role]) * 1e6 / records for role, spent in last.cpu_s.items()
        },
    )


def spread(values: Sequence[float], form: str = ".0f") -> str:
    """Median and range: `512 (498-530)`; of one value the value."""
    if len(values) == 1:
        return format(values[0], form)
    low, middle, high = (format(x, form) for x in (min(values), median(values), max(values)))
    return f"{middle} ({low}-{high})"
