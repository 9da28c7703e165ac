"""
Computes rate and cost in the steady state from samples of a running mirror.

The first 20 % of the records are excluded: processes start, caches and compilers warm up.

The window starts and ends at samples that have just seen a commit: records become visible one
transaction at a time, and the time before a commit belongs to its records. At that moment, other
tasks have an open transaction. Their share of it is counted as if a task worked evenly from one
commit to the next. Otherwise a second task that commits every two seconds could lack the records
of up to two seconds at the end.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

WARM_UP_SHARE = 0.2
TAIL_SHARE = 0.5
"""Share of the records that the warm rate excludes: a JVM takes long to compile."""
MIN_STEADY_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """
    One sample.

    Attributes:
        at: Monotonic seconds.
        ends: Records committed so far, per partition or per set of partitions that are committed
            together.
        cpu_s: CPU seconds so far, by role.
        peak_rss_mb: Peak memory so far, of the task or of all processes.
        task_rss_mb: Peak memory so far of the largest process that copies.
    """

    at: float
    ends: Sequence[int]
    cpu_s: Mapping[str, float]
    peak_rss_mb: float = 0.0
    task_rss_mb: float = 0.0

    @property
    def records(self) -> int:
        """Records committed so far."""
        return sum(self.ends)


@dataclass(frozen=True, slots=True, kw_only=True)
class Steady:
    """
    The work of a mirror between two samples.

    Attributes:
        records: Records copied.
        seconds: Time between the samples.
        cpu_s: CPU seconds per million records, by role.
    """

    records: float
    seconds: float
    cpu_s: Mapping[str, float]

    @property
    def rate(self) -> float:
        """Records per second."""
        return self.records / self.seconds


def steady_state(samples: Sequence[Sample], *, total: int) -> Steady:
    """
    Measure from the first commit after the warm-up to the last one before the copy was complete.

    Raises:
        ValueError: The window is too short: use more records.
    """
    window = _window(samples, total)
    return _between(samples, window[0], window[-1])


def warm_tail(samples: Sequence[Sample], *, total: int) -> Steady:
    """
    Measure the second half of the records, but at least one second of the steady state.

    Raises:
        ValueError: The window is too short: use more records.
    """
    window = _window(samples, total)
    last = window[-1]
    half = next((s for s in window if s.records >= TAIL_SHARE * total), last)
    second = next(s for s in reversed(window) if last.at - s.at >= MIN_STEADY_S)
    return _between(samples, min(half, second, key=lambda one: one.at), last)


def _window(samples: Sequence[Sample], total: int) -> list[Sample]:
    steps = [after for before, after in pairwise(samples) if after.records > before.records]
    window = [s for s in steps if WARM_UP_SHARE * total <= s.records < total]
    if len(window) < 2 or window[-1].at - window[0].at < MIN_STEADY_S:
        raise ValueError(f"less than {MIN_STEADY_S} s of steady state: use more than {total}")
    return window


def _between(samples: Sequence[Sample], first: Sample, last: Sample) -> Steady:
    records = _copied(samples, last.at) - _copied(samples, first.at)
    return Steady(
        records=records,
        seconds=last.at - first.at,
        cpu_s={
            role: (spent - first.cpu_s[role]) * 1e6 / records for role, spent in last.cpu_s.items()
        },
    )


def _copied(samples: Sequence[Sample], at: float) -> float:
    """Return the records copied until then, with the estimated share of open transactions."""
    times = [sample.at for sample in samples]
    columns = zip(*(sample.ends for sample in samples), strict=True)
    return sum(_done(times, ends, at) for ends in columns)


def _done(times: Sequence[float], ends: Sequence[int], at: float) -> float:
    """Return the records of one partition until then, interpolated between two commits."""
    commits = [0, *(i for i in range(1, len(ends)) if ends[i] > ends[i - 1])]
    following = bisect_left(commits, at, key=times.__getitem__)
    if following == len(commits):
        return ends[-1]
    after = commits[following]
    before = commits[max(following - 1, 0)]
    share = (at - times[before]) / (times[after] - times[before]) if after else 0
    return ends[before] + share * (ends[after] - ends[before])


def spread(values: Sequence[float], form: str = ".0f") -> str:
    """Format median and range as `512 (498-530)`; format a single value alone."""
    if len(values) == 1:
        return format(values[0], form)
    low, middle, high = (format(x, form) for x in (min(values), median(values), max(values)))
    return f"{middle} ({low}-{high})"
