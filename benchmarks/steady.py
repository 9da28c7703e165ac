"""
From samples of a running mirror to its rate and its cost in the steady state.

The first 20 % of the records are left out: processes start, caches and compilers warm up.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

WARM_UP_SHARE = 0.2
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


def steady_state(
    samples: Sequence[Sample], *, total: int, warm_up: float = WARM_UP_SHARE
) -> Steady:
    """
    Between the first sample after the warm-up and the last one before everything was copied.

    Args:
        warm_up: Part of the records that is left out.

    Raises:
        ValueError: The window is too short to mean anything: use more records.
    """
    window = [s for s in samples if warm_up * total <= s.records < total]
    if len(window) < 2 or window[-1].at - window[0].at < MIN_STEADY_S:
        raise ValueError(f"less than {MIN_STEADY_S} s of steady state: use more than {total}")
    first, last = window[0], window[-1]
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
