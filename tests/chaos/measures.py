"""Figures of a run, computed from the times at which records became visible to a reader."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from tests.chaos.nemesis import Strike
from tests.chaos.restarting_driver import Heard

AFTERMATH_S = 1.0
"""A silence that begins this soon after a fault is attributed to it."""

Times = Sequence[float]
"""Increasing monotonic seconds."""


def percentile(values: Iterable[float], share: float) -> float | None:
    """Return the smallest value that this share does not exceed; None if there are no values."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else None


def recovery_s(strike: Strike, arrivals: Iterable[Times]) -> float | None:
    """
    Return the time from the fault to the next record, on the partition that waited longest.

    It is the longest silence that overlaps the fault, counted from the fault on. If faults overlap,
    the whole silence counts for each. None if no record came afterwards.
    """
    worst = None
    for times in arrivals:
        for before, after in pairwise(times):
            if before <= strike.ended + AFTERMATH_S and after >= strike.began:
                silent = after - max(before, strike.began)
                worst = silent if worst is None else max(worst, silent)
    return worst


def recoveries(
    strikes: Iterable[Strike], arrivals: Sequence[Times]
) -> Mapping[str, Sequence[float]]:
    """Return `recovery_s` of every fault, by kind."""
    found: defaultdict[str, list[float]] = defaultdict(list)
    for strike in strikes:
        silent = recovery_s(strike, arrivals)
        if silent is not None:
            found[strike.kind].append(silent)
    return found


def stall_s(arrivals: Iterable[Times], share: float) -> float | None:
    """
    Return the longest time that a reader has been waiting in this share of all moments.

    In a silence of g seconds, a reader has been waiting longer than x for g - x seconds.
    """
    gaps = sorted(
        (after - before for times in arrivals for before, after in pairwise(times)), reverse=True
    )
    allowed, spent = (1 - share) * sum(gaps), 0.0
    for count, gap in enumerate(gaps, 1):
        spent += gap
        below = gaps[count] if count < len(gaps) else 0.0
        if spent - count * below >= allowed:
            return (spent - allowed) / count
    return None


def counters(events: Iterable[Heard]) -> dict[str, int]:
    """
    Sum the counters of the flow over all its drivers.

    A killed driver does not report its last second: the sums are lower bounds.
    """
    sums = dict.fromkeys(("records", "passed", "transactions", "incarnations", "fences"), 0)
    for heard in events:
        if heard.name == "flow.summary":
            for name in sums:
                sums[name] += int(heard.fields.get(name, 0))
    return sums


def first_repeated(seen: Iterable[Sequence[tuple[float, int]]]) -> float | None:
    """
    Return when a reader first saw a record for the second time; None if it never did.

    Args:
        seen: Time in seconds and number of every record, by partition.
    """
    moments = []
    for records in seen:
        numbers: set[int] = set()
        for at, number in records:
            if number in numbers:
                moments.append(at)
                break
            numbers.add(number)
    return min(moments, default=None)
