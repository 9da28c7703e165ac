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
    Event("ready", Level.INFO, "Every task runs and every partition of every flow is owned."),
    Event("flow.summary", Level.INFO, "What a flow did since the last summary."),
    Event("flow.caught_up", Level.INFO, "`--once`: every end seen at the start is reached."),
    Event("flow.warning", Level.WARNING, "The flow starts, but something is not as it should be."),
    Event("driver.waiting", Level.INFO, "Another run of the file mirrors; this one stands by."),
    Event("driver.leading", Level.INFO, "This run mirrors now; others stand by."),
    Event(
        "driver.superseded",
        Level.WARNING,
        "This run was silent for too long: another one mirrors. Its tasks stop; it stands by.",
    ),
    Event("metrics.listening", Level.INFO, "Where Prometheus finds the metrics."),
    Event("config.note", Level.DETAIL, "A line of the configuration that has no effect here."),
    Event("config.taken", Level.INFO, "The file was changed: these keys count from now on."),
    Event(
        "config.refused",
        Level.WARNING,
        "The file was changed and is wrong: nothing of it counts until it is mended.",
    ),
    Event("flow.rejoining", Level.INFO, "Partitions had no owner: the tasks join the group anew."),
    Event("topic.created", Level.INFO, "A remote topic was created on the target."),
    Event("topic.grown", Level.INFO, "A remote topic got more partitions."),
    Event(
        "topic.altered",
        Level.INFO,
        "A remote topic was configured as its source topic is; values set, names deleted.",
    ),
    Event(
        "topic.unaltered",
        Level.WARNING,
        "The target refused to configure a remote topic as its source topic is; the reason.",
    ),
    Event("acl.added", Level.INFO, "A right on a source topic was given for its remote topic."),
    Event(
        "acls.skipped",
        Level.INFO,
        "Rights are not copied, and why; said once until that changes.",
    ),
    Event(
        "topic.refused",
        Level.WARNING,
        "A source topic is not mirrored, and why; again only if the reason changes.",
    ),
    Event(
        "topic.deleted",
        Level.WARNING,
        "A source topic was deleted while it was mirrored; its copy is kept.",
    ),
    Event("flow.ended", Level.ERROR, "A flow was ended as a whole, and why; others go on."),
    Event("task.started", Level.DETAIL, "The process of a task has called the driver."),
    Event("task.restarting", Level.WARNING, "A task ended and is started again; the reason."),
    Event("task.stopped", Level.DETAIL, "A task ended because it was told to."),
    Event("task.failed", Level.ERROR, "A task ended for good; the reason."),
    Event("incarnation.started", Level.DETAIL, "A task has a new transactional id."),
    Event("incarnation.fenced", Level.INFO, "A task fenced an earlier writer."),
    Event("partitions.acquired", Level.DETAIL, "A task owns these many more partitions."),
    Event(
        "records.dropped",
        Level.WARNING,
        "At least once: the target refuses these records, and the configuration says to drop them.",
    ),
    Event(
        "batch.refused",
        Level.WARNING,
        "The target refused a batch; its records are sent again in smaller ones.",
    ),
    Event(
        "partition.waiting",
        Level.WARNING,
        "One partition cannot be mirrored now, as long as it has no leader; the others are.",
    ),
    Event("partition.stopped", Level.ERROR, "One partition cannot be mirrored; cause and reason."),
    Event("partition.resumed", Level.INFO, "A partition that stopped is mirrored again."),
    Event(
        "partition.gap",
        Level.DETAIL,
        "Not one commit marker lies between two transactions: `offsets` more, or one too few.",
    ),
    Event(
        "commit.suspicious",
        Level.DETAIL,
        "A commit may have been sent twice: the task took a new one.",
    ),
    Event("chore.failed", Level.WARNING, "A periodic chore of the driver failed; it goes on."),
    Event(
        "ledger.failed",
        Level.WARNING,
        "An entry of the ledger cannot be written now; it is tried again.",
    ),
    Event(
        "heartbeats.failed",
        Level.WARNING,
        "Heartbeats of a pair of clusters cannot be written now; said once until they can.",
    ),
    Event(
        "offset-syncs.failed",
        Level.WARNING,
        "At least once: pairs of offsets cannot be written now; said once until they can.",
    ),
    Event(
        "groups.followed",
        Level.DETAIL,
        "One round: groups with offsets; checkpoints written, groups moved on the target and "
        "requests sent since the last one.",
    ),
    Event(
        "groups.unheard",
        Level.WARNING,
        "`__consumer_offsets` of the source may not be read; groups move at the interval only.",
    ),
    Event(
        "groups.untranslated",
        Level.WARNING,
        "Groups are not translated on one partition, and why; reported once for each reason. On "
        "other partitions they are.",
    ),
    Event(
        "group.skipped",
        Level.WARNING,
        "A group of the source cannot be read, and why; reported once for each reason. The others "
        "are synced, and this one is tried again.",
    ),
    Event(
        "group.waiting",
        Level.INFO,
        "A group on the target is not moved to its checkpoints, and why; said when that changes.",
    ),
    Event(
        "groups.failed",
        Level.WARNING,
        "Groups cannot be followed now; said once until they can. Mirroring goes on.",
    ),
    Event(
        "checkpoints.unreadable",
        Level.WARNING,
        "Records in the checkpoints topic that are not checkpoints; they are passed over.",
    ),
    Event("stopping", Level.INFO, "A signal was received; tasks finish and release."),
    Event("stopped", Level.INFO, "Every task has ended."),
)
LEVELS: Final = {event.name: event.level for event in EVENTS}
