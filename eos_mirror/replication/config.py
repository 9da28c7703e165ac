"""What a mirror task is told once, at its start."""

from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum

from eos_mirror.core.boundary import Boundary
from eos_mirror.core.flow import Flow
from eos_mirror.core.topic_limits import SenderLimits


class Fencing(Enum):
    """How ownership is made exclusive. Only `CLAIMS` is exactly once; the others exist so that
    tests can show the checker catching them."""

    CLAIMS = "claims"
    STABLE_ONLY = "stable-only"
    NAIVE = "naive"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskConfig:
    """
    Attributes:
        start_position: `earliest`, `latest` or `timestamp:ISO`, for partitions never mirrored.
        claims_topic_id: Identity of the claims topic at start; a commit under another one
            means that the log of claims was lost.
        keepalive: Commit idle positions at least this often, or the target forgets them.
        fencing: `CLAIMS`, but in tests of the checker.
        exactly_once: Or at least once: no claims, no transactions.
        abort_on_send_failure: At least once: stop at a record that the target refuses.
        provenance: At least once: note the clusters that a record passed, and leave out what
            would come back; remote topics have other writers.
        measured: Tell the driver what each partition did.
        sender: What the producer does with records, whatever the topic.
    """

    flow: Flow
    boundary: Boundary
    start_position: str
    claims_topic_id: str
    keepalive: timedelta
    fencing: Fencing = Fencing.CLAIMS
    exactly_once: bool = True
    abort_on_send_failure: bool = True
    provenance: bool = False
    measured: bool = False
    sender: SenderLimits = field(default_factory=SenderLimits)


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

SUSPICION_THRESHOLD = timedelta(milliseconds=250)
"""A commit slower than this may have been sent twice inside librdkafka after a request timed out,
and the late duplicate would commit the *next* transaction (KAFKA-17754). A resend after a broken
connection is much faster; `Committed.was_cut` tells of those."""

MARKERS_LOST_AFTER = timedelta(seconds=30)
"""Still unstable this long after every earlier writer was fenced: the markers are lost."""
