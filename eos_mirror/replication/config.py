"""Budgets and thresholds of a mirror task, and how it fences."""

from datetime import timedelta
from enum import Enum


class Fencing(Enum):
    """How ownership is made exclusive. Only `CLAIMS` is exactly once; the others exist so that
    tests can show that the checker catches them."""

    CLAIMS = "claims"
    STABLE_ONLY = "stable-only"
    NAIVE = "naive"


FLUSH_BUDGET = timedelta(seconds=20)
"""Time for the acknowledgement of one transaction's records. Together with the commit it is shorter
than the lease of a stalled loop, so the task exits by itself and reports why."""

COMMIT_BUDGET = timedelta(seconds=6)
"""Time for shadow offsets and commit together. It is short: the client may block indefinitely.
Exiting the process costs a second, and its successor waits for the coordinator instead."""

ACQUIRE_BUDGET = timedelta(seconds=60)
"""Time for claiming, reading and fencing; bounded by the deadlines of its parts."""

WATCH_MARGIN = timedelta(seconds=1)
"""A watched call may exceed its own budget by this much before the process exits."""

MARKERS_LOST_AFTER = timedelta(seconds=30)
"""If offsets are unstable this long after every earlier writer was fenced, markers are lost."""
