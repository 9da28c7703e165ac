"""Figures of a run, from when records became visible to a reader."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from tests.chaos.nemesis import Strike
from tests.chaos.restarting_driver import Heard

AFTERMATH_S = 1.0
"""A silence that begins this soon after a fault is put down to it."""

Times = Sequence[float]
"""Increasing monotonic seconds."""


def percentile(values: Iterable[float], share: float) -> float | None:
    """The smallest value that at least this share of them does not exceed; None of nothing."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else None


def recovery_s(strike: Strike, arrivals: Iterable[Times]) -> float | None:
    """
    From the fault to the next record, on the partition that waited longest.

    The longest silence that touches the fault counts, from the fault on; with faults that
    overlap, each is charged the whole. None if no record came afterwards.
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
    """`recovery_s` of every fault, by kind."""
    found: defaultdict[str, list[float]] = defaultdict(list)
    for strike in strikes:
        silent = recovery_s(strike, arrivals)
        if silent is not None:
            found[strike.kind].append(silent)
    return found


def stall_s(arrivals: Iterable[Times], share: float) -> float | None:
    """
    How long a reader has been waiting at a random moment, at most, in this share of the time.

    Of a silence of g seconds, g - x are spent waiting longer than x.
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
    What the flow did, over all its drivers.

    A driver that is killed takes its last second with it: the sums are lower bounds.
    """
    sums = dict.fromkeys(("records", "transactions", "incarnations", "fences"), 0)
    for heard in events:
        if heard.name == "flow.summary":
            for name in sums:
                sums[name] += int(heard.fields[name])
    return sums


def first_repeated(seen: Iterable[Sequence[tuple[float, int]]]) -> float | None:
    """
    When a reader first saw something that it had seen before; None if it never did.

    Args:
        seen: Second and number of every record, by partition.
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
