"""Every log event, in one table; nothing else may name one."""

from dataclasses import dataclass
from enum import Enum
from typing import Final


class Level(Enum):
    """Who wants to read an event."""

    DETAIL = "detail"
    """Only with `--verbose`."""
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Event:
    """A log event; `text` says what it means."""

    name: str
    level: Level
    text: str


EVENTS: Final = (
    Event(
        "ready",
        Level.INFO,
        "Everything that the configuration selects is mirrored; logged again after `degraded`.",
    ),
    Event(
        "degraded",
        Level.WARNING,
        "Something is not mirrored; what and why. While it lasts, a changed list is logged at most "
        "once a minute.",
    ),
    Event("flow.summary", Level.INFO, "What a flow did since the last summary."),
    Event(
        "flow.caught_up",
        Level.INFO,
        "`--once`, `--until`: every end found at the start is reached.",
    ),
    Event(
        "flow.incomplete",
        Level.WARNING,
        "`--once`, `--until`: not everything that was asked for could be mirrored.",
    ),
    Event(
        "flow.warning",
        Level.WARNING,
        "The flow starts, but something needs attention; `reason` says what.",
    ),
    Event(
        "driver.waiting",
        Level.INFO,
        "Another run mirrors the flow; this one is on standby.",
    ),
    Event(
        "flow.adopting",
        Level.INFO,
        "`mode.change = adopt`: the source connector did not stop its tasks, so the copies have to "
        "stand still first.",
    ),
    Event(
        "flow.adopted",
        Level.INFO,
        "`mode.change = adopt`: the positions of the source connector were taken over.",
    ),
    Event("driver.leading", Level.INFO, "The run that was on standby mirrors now."),
    Event(
        "driver.superseded",
        Level.WARNING,
        "This run lost its session, and another one mirrors. Its tasks stop; it is on standby.",
    ),
    Event("metrics.listening", Level.INFO, "Where Prometheus finds the metrics."),
    Event("rest.listening", Level.INFO, "Where the HTTP server listens."),
    Event("rest.failed", Level.WARNING, "The HTTP server could not start; the flows are mirrored."),
    Event(
        "config.note",
        Level.INFO,
        "A line of the configuration without effect, or not as it is written.",
    ),
    Event(
        "cluster.unreachable",
        Level.WARNING,
        "A cluster does not answer; address and reason. Logged once until it answers again, and "
        "once more if it then refuses the login or the certificate.",
    ),
    Event(
        "cluster.recovered", Level.INFO, "The cluster answers again; how long the outage lasted."
    ),
    Event("config.reloaded", Level.INFO, "The configuration changed; these keys were applied."),
    Event("config.repaired", Level.INFO, "The configuration is valid again."),
    Event("config.pending", Level.INFO, "These keys changed; they apply at the next start."),
    Event(
        "config.invalid",
        Level.WARNING,
        "The configuration changed and is invalid; the previous one stays in effect.",
    ),
    Event(
        "flow.rejoining", Level.INFO, "Partitions had no owner: the tasks rejoin the source group."
    ),
    Event("topic.created", Level.INFO, "A remote topic was created on the target."),
    Event("topic.grown", Level.INFO, "A remote topic got more partitions."),
    Event(
        "topic.altered",
        Level.INFO,
        "The configuration of a remote topic was synced: entries set, entries deleted.",
    ),
    Event(
        "topic.alter-failed",
        Level.WARNING,
        "The target refused to sync the configuration of a remote topic; the reason.",
    ),
    Event("acl.added", Level.INFO, "An ACL of a source topic was copied to its remote topic."),
    Event(
        "acls.skipped",
        Level.INFO,
        "ACLs are not copied, and why; logged once until the reason changes.",
    ),
    Event(
        "topic.refused",
        Level.WARNING,
        "A source topic is not mirrored, and why; logged again if the reason changes.",
    ),
    Event(
        "topics.left_out",
        Level.INFO,
        "Selected source topics that came from the target are not mirrored back.",
    ),
    Event("topics.paused", Level.INFO, "An operator paused topics; who, when, and why."),
    Event("topics.stopped", Level.INFO, "An operator stopped topics; who, when, and why."),
    Event(
        "topics.resumed",
        Level.INFO,
        "An operator resumed topics, or took an order back; who, when, and why.",
    ),
    Event(
        "topics.throttled",
        Level.INFO,
        "An operator limited how fast topics are mirrored, or lifted a limit; who, when, and why.",
    ),
    Event(
        "orders.failed",
        Level.WARNING,
        "What operators want cannot be read, or reported as done, and why; logged once until it "
        "changes.",
    ),
    Event(
        "order.unreadable",
        Level.WARNING,
        "A record of the desired-state topic is damaged, or was not written by us; it is ignored.",
    ),
    Event(
        "topic.deleted",
        Level.WARNING,
        "A source topic was deleted while it was mirrored; its copy is kept.",
    ),
    Event("flow.ended", Level.ERROR, "A flow stopped as a whole, and why; other flows continue."),
    Event("task.started", Level.DETAIL, "The process of a task has connected to the driver."),
    Event(
        "task.restarting",
        Level.WARNING,
        "The process of a task exited and is restarted; the reason.",
    ),
    Event("task.stopped", Level.DETAIL, "A task stopped because the driver asked it to."),
    Event("task.failed", Level.ERROR, "A task failed and is not restarted; the reason."),
    Event("incarnation.started", Level.DETAIL, "A task has a new transactional id."),
    Event("incarnation.fenced", Level.INFO, "A task fenced an earlier writer."),
    Event("partitions.acquired", Level.DETAIL, "A task acquired this many partitions."),
    Event(
        "records.dropped",
        Level.WARNING,
        "At least once: the target refuses these records, and the configuration says to drop them.",
    ),
    Event(
        "records.quarantined",
        Level.WARNING,
        "The target refuses these records: they are in the quarantine, and not in the copy.",
    ),
    Event(
        "batch.refused",
        Level.WARNING,
        "The target refused a batch; its records are sent again in smaller ones.",
    ),
    Event(
        "partition.waiting",
        Level.WARNING,
        "One partition has no leader, or too few replicas in sync, and waits alone.",
    ),
    Event(
        "partition.stopped",
        Level.ERROR,
        "One partition is not mirrored; cause and reason. It is tried again, unless another client "
        "wrote into its copy.",
    ),
    Event("partition.resumed", Level.INFO, "A partition that stopped is mirrored again."),
    Event(
        "partition.gap",
        Level.DETAIL,
        "Unexpected offsets before our transaction: `offsets` more than one commit marker needs; "
        "negative: the marker is missing.",
    ),
    Event(
        "commit.suspicious",
        Level.DETAIL,
        "A commit may have been sent twice; the task switched to a new transactional id.",
    ),
    Event(
        "data-path.client",
        Level.INFO,
        "`data.path = auto`, but a setting needs what our own lane does not do; the task uses "
        "librdkafka.",
    ),
    Event(
        "transaction.lost",
        Level.WARNING,
        "The open transaction failed, or a request of it got no answer; the task continues with a "
        "new producer.",
    ),
    Event(
        "commits.doubtful",
        Level.WARNING,
        "Commits may have been sent twice; the task switched to new transactional ids. Logged at "
        "most every 10 minutes, with the number since the last time.",
    ),
    Event(
        "offsets.unexpected",
        Level.WARNING,
        "Another client may write a remote partition, or a commit marker is missing. Logged at "
        "most every 10 minutes, with the number since the last time.",
    ),
    Event(
        "chore.failed",
        Level.WARNING,
        "A periodic chore of the driver failed; it is repeated at its next interval.",
    ),
    Event(
        "ledger.failed",
        Level.WARNING,
        "An entry of the ledger cannot be written now; it is tried again.",
    ),
    Event(
        "failure.over",
        Level.INFO,
        "What could not be done is done again; the field `what` names the event that reported it.",
    ),
    Event(
        "heartbeats.failed",
        Level.WARNING,
        "Heartbeats of a pair of clusters cannot be written now; logged once until they can.",
    ),
    Event(
        "offset-syncs.failed",
        Level.WARNING,
        "At least once: offset syncs cannot be written now; logged once until they can.",
    ),
    Event(
        "checkpoints.emitted",
        Level.DETAIL,
        "One round over the groups: groups with offsets; checkpoints emitted, groups synced on the "
        "target and requests sent since the last round.",
    ),
    Event(
        "group-commits.unreadable",
        Level.WARNING,
        "`__consumer_offsets` of the source may not be read; group offsets are synced at the "
        "interval only.",
    ),
    Event(
        "groups.untranslated",
        Level.WARNING,
        "Group offsets are not translated on one partition, and why; logged once for each reason. "
        "On the other partitions they are.",
    ),
    Event(
        "group.skipped",
        Level.WARNING,
        "A group of the source cannot be read, and why; logged once for each reason. The others "
        "are synced, and this one is tried again.",
    ),
    Event(
        "group.waiting",
        Level.INFO,
        "The offsets of a group are not translated or not synced, and why; logged when that "
        "changes.",
    ),
    Event(
        "checkpoints.failed",
        Level.WARNING,
        "Checkpoints cannot be emitted now; logged once until they can. Mirroring continues.",
    ),
    Event(
        "checkpoints.unreadable",
        Level.WARNING,
        "Records in the checkpoints topic that are not checkpoints; they are skipped.",
    ),
    Event("stopping", Level.INFO, "A signal was received; tasks finish and release."),
    Event("stopped", Level.INFO, "Every task has stopped."),
)
LEVELS: Final = {event.name: event.level for event in EVENTS}
