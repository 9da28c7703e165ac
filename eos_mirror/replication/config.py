"""Budgets and thresholds of a mirror task, and how it fences."""

from datetime import timedelta
from enum import Enum


class Fencing(Enum):
    """How ownership is made exclusive. Only `CLAIMS` is exactly once; the others exist so that
    tests can show the checker catching them."""

    CLAIMS = "claims"
    STABLE_ONLY = "stable-only"
    NAIVE = "naive"


FLUSH_BUDGET = timedelta(seconds=20)
"""Acknowledgement of one transaction's records. With the commit that follows it is shorter than the
lease of a loop that stands still: the task ends by itself, and says why."""

COMMIT_BUDGET = timedelta(seconds=6)
"""Shadow offsets and commit together. Short, because the client may block for ever; ending the
process costs a second, and its successor waits for the coordinator instead."""

ACQUIRE_BUDGET = timedelta(seconds=60)
"""Claim, read, fence: bounded by the deadlines of its parts."""

WATCH_MARGIN = timedelta(seconds=1)
"""A watched call gets its own time and this before the process is ended."""

MARKERS_LOST_AFTER = timedelta(seconds=30)
"""Still unstable this long after every earlier writer was fenced: the markers are lost."""
