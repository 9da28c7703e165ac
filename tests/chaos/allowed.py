"""
Which events, reasons and exit codes the injected faults explain; anything else is a complaint.

The table names every event of docs/events.md, so that a new event must be judged here.
"""

import re
from collections.abc import Sequence

from eos_mirror.runtime.outcome import ExitCode
from tests.chaos.restarting_driver import Exit, Heard
from tests.chaos.site import DOOMED, LONELY, PICKY

ALWAYS = r".*"
NEVER = r"(?!)"
PASSING = {
    "RestartTask",
    "RetriableError",
    "SourceUnavailable",
    "TargetUnavailable",
    "CommitOutcomeUnknown",
    "ProducerFenced",
}
"""Causes that are over when the fault is."""

BY_CAUSE = r"(?!.)(?!)"
"""No reason is explained, only a passing cause."""

# "its loop stood still" is not here: no fault stops only the loop of a process for a whole lease.
DIED = (
    r"killed by signal \d+"
    r"|exit code \d+ \((ORPHAN|WATCHDOG|RESTART|REJECTED)\)"
    r"|watchdog: .* took longer than .* s"
    r"|no heartbeat for .* s"
    r"|no answer from the driver for .*"
    r"|the parent process is gone"
    r"|SIG(TERM|HUP)"
    r"|Spark job: .*"
    r"|cannot launch: .*"
)
AWAY = r"its coordinator does not answer|\w*(COORDINATOR|TIMED_OUT)\w* \(.*\)"

EVENTS = {
    "ready": ALWAYS,
    "degraded": ALWAYS,
    "flow.summary": ALWAYS,
    "flow.caught_up": NEVER,
    "flow.incomplete": NEVER,
    "flow.warning": (
        rf"A->B: A\.{PICKY} is compacted and {PICKY} is not: .*"
        r"|its tasks run eos_mirror\.testing\.entry:mirror, .*"
        r"|A->B: __(transaction_state|consumer_offsets) on [AB] has (no leader|only) .*"
    ),
    "config.note": ALWAYS,
    "cluster.unreachable": ALWAYS,
    "cluster.recovered": ALWAYS,
    "config.reloaded": ALWAYS,
    "config.repaired": NEVER,
    "rest.listening": NEVER,
    "rest.failed": NEVER,
    "config.pending": NEVER,
    "config.invalid": NEVER,
    "driver.waiting": ALWAYS,
    "driver.leading": ALWAYS,
    "flow.adopting": NEVER,
    "flow.adopted": NEVER,
    "driver.superseded": ALWAYS,
    "metrics.listening": ALWAYS,
    "flow.rejoining": ALWAYS,
    "topics.paused": ALWAYS,
    "topics.throttled": ALWAYS,
    "topics.resumed": ALWAYS,
    "topics.stopped": ALWAYS,
    "orders.failed": NEVER,
    "order.unreadable": NEVER,
    "topic.created": ALWAYS,
    "topic.grown": NEVER,
    "topic.altered": ALWAYS,
    "topic.alter-failed": NEVER,
    "acl.added": NEVER,
    "acls.skipped": NEVER,
    "topic.refused": rf"A->B {DOOMED} to A\.{DOOMED}: the copy was deleted on B; .*"
    rf"|A->B {PICKY} to A\.{PICKY}: A\.{PICKY} accepts messages of .*",
    "task.started": ALWAYS,
    "task.restarting": rf"({DIED}|)",
    "task.stopped": rf"(killed: it did not stop within .*|{DIED}|)",
    "task.failed": NEVER,
    "incarnation.started": ALWAYS,
    "incarnation.fenced": ALWAYS,
    "partitions.acquired": ALWAYS,
    "batch.refused": ALWAYS,
    "partition.waiting": r"\S+ has no leader on [AB]"
    r"|A\.\S+ has \d of \d replicas in sync on B, and min\.insync\.replicas is \d",
    "partition.stopped": rf"A->B {PICKY}-\d next_offset=\d+: the target refuses this record .*"
    rf"|A->B {DOOMED}-0: .*"
    rf"|A->B {LONELY}-0.*[ :][Tt]he target lost "
    r"(transaction markers|a part of a transaction)[.,] .*",
    "partition.resumed": ALWAYS,
    "partition.gap": ALWAYS,
    "commit.suspicious": r"(a connection broke|the commit took .* s): it may have been sent twice"
    r"|a connection broke: the commit may have been sent twice",
    "transaction.lost": ALWAYS,
    "data-path.client": NEVER,
    "commits.doubtful": r"(a connection broke|the commit took .* s): it may have been sent twice"
    r"|a connection broke: the commit may have been sent twice",
    "offsets.unexpected": ALWAYS,
    "records.dropped": NEVER,
    "records.quarantined": ALWAYS,
    "chore.failed": BY_CAUSE,
    "ledger.failed": BY_CAUSE,
    "failure.over": ALWAYS,
    "heartbeats.failed": BY_CAUSE,
    "checkpoints.emitted": ALWAYS,
    "group-commits.unreadable": NEVER,
    "topics.left_out": NEVER,
    "topic.deleted": NEVER,
    "flow.ended": NEVER,
    "groups.untranslated": r"list offsets of .*|its offset map is not whole; .*",
    "group.skipped": AWAY,
    "group.waiting": AWAY,
    "checkpoints.failed": BY_CAUSE,
    "checkpoints.unreadable": NEVER,
    "offset-syncs.failed": BY_CAUSE,
    "stopping": ALWAYS,
    "stopped": ALWAYS,
}
"""The reasons that the faults explain, by event; a pattern matches the whole text."""

MARKERS_LOST = "MarkersLost"
REFUSED, UNANSWERED = 2, "does not answer"
"""Exit code and message of a start that fails because a cluster does not answer."""

UNBORN, NO_SPARK = 1, "Spark did not start"
"""Exit code and message of a start whose JVM was killed before it answered."""
SAID_WITHIN_S = 10.0

SHOWN_LINES = 5


def check_events(events: Sequence[Heard], *, single_node: bool) -> list[str]:
    """
    Return a complaint for each event that no injected fault explains.

    Args:
        single_node: Whether the target has no replicas: it may lose transaction markers.
    """
    complaints = []
    for heard in events:
        if single_node and heard.fields.get("cause") == MARKERS_LOST:
            continue
        pattern = EVENTS.get(heard.name, NEVER)
        if pattern != NEVER and heard.fields.get("cause") in PASSING:
            continue
        reason = str(heard.fields.get("reason", ""))
        if not re.fullmatch(pattern, reason, re.DOTALL):
            complaints.append(f"run {heard.run}: {dict(heard.fields)}")
    return complaints


def check_exits(
    exits: Sequence[Exit], errors: Sequence[tuple[int, str]], *, jvm_kills: Sequence[float] = ()
) -> list[str]:
    """
    Return a complaint for each exit of a driver that has no allowed cause.

    A driver may exit on a signal of the nemesis, when its JVM dies, and at its start when a cluster
    does not answer.

    Args:
        jvm_kills: When JVMs were killed, on the clock of the exits.
    """
    complaints = []
    for end in exits:
        said = [line for run, line in errors if run == end.run]
        if end.wanted is not None:
            continue
        refused = end.code == REFUSED and any(UNANSWERED in line for line in said)
        unborn = end.code == UNBORN and any(NO_SPARK in line for line in said)
        if unborn and any(0 <= end.at - killed_at <= SAID_WITHIN_S for killed_at in jvm_kills):
            continue
        if not refused and end.code != ExitCode.ORPHAN:
            complaints.append(f"run {end.run} exited with {end.code}: {said[-SHOWN_LINES:]}")
    return complaints


def check_errors(errors: Sequence[tuple[int, str]]) -> list[str]:
    """Return a complaint for each stack trace on stderr."""
    return [f"run {run}: {line}" for run, line in errors if line.startswith("Traceback")]
