"""
Messages between the driver and its task processes, as values.

driver -> task: a configuration when the task starts, then orders whenever they change.
task -> driver: reports; each one arrives, in order. `tasks/messages.py` has the JSON form.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from eos_mirror.core.boundary import Boundary
from eos_mirror.core.flow import Flow
from eos_mirror.core.handlers import HandlerSpec
from eos_mirror.core.rebalance_listener import ListenerSpec
from eos_mirror.core.records import TopicPartition
from eos_mirror.core.spread import Spread
from eos_mirror.core.suspects import Suspect
from eos_mirror.core.throttles import Limit
from eos_mirror.core.topic_limits import SenderLimits
from eos_mirror.core.transforms import Transform

ClientConfig = Mapping[str, str]
"""Complete configuration of one librdkafka client, secrets included."""


# ---------------------------------------------------------------------- the mirror task


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetsTopic:
    """
    A topic of the target in which Kafka Connect stores positions.

    Attributes:
        connector: Name of the connector whose positions they are.
        cluster: Alias that the connector has for the source.
    """

    topic: str
    connector: str
    cluster: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorConfig:
    """
    What the engine of a mirror task needs to know.

    Attributes:
        start_position: Rules for partitions never mirrored, as `core.start_positions` writes them.
        claims_topic_id: Topic id of the claims topic when the flow started. A commit under another
            id means that the claims log was lost.
        keepalive: Idle positions are committed at least this often; the target expires others.
        exactly_once: False is at least once: no claims, no transactions.
        abort_on_send_failure: At least once: stop at a record that the target refuses.
        quarantine: Topic of the target for records that it refuses; None: stop at such a record.
        provenance: At least once: note the clusters that a record passed, and skip records that
            would come back. Remote topics have other writers.
        measured: Report the metrics of each partition.
        sender: What the producer does with records of every topic.
        transforms: What changes or drops records, in order.
        handler: What makes copies of what they leave; None: one of each record.
        listener: A user's class that is notified when a task gets or loses partitions.
        assigned: The driver assigns partitions to tasks; False: the source group does.
        positions: Where a source connector has its positions: at least once instead of the
            source group, exactly once beside the shadow group, in the same transaction.
    """

    flow: Flow
    boundary: Boundary
    start_position: str
    claims_topic_id: str
    keepalive: timedelta
    exactly_once: bool = True
    abort_on_send_failure: bool = True
    quarantine: str | None = None
    provenance: bool = False
    measured: bool = False
    sender: SenderLimits = field(default_factory=SenderLimits)
    transforms: tuple[Transform, ...] = ()
    handler: HandlerSpec | None = None
    listener: ListenerSpec | None = None
    assigned: bool = False
    positions: OffsetsTopic | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorClients:
    """Complete client configurations by role."""

    source_consumer: ClientConfig = field(repr=False)
    source_admin: ClientConfig = field(repr=False)
    target_producer: ClientConfig = field(repr=False)
    plain_producer: ClientConfig = field(repr=False)
    target_admin: ClientConfig = field(repr=False)
    claims_producer: ClientConfig = field(repr=False)
    claims_consumer: ClientConfig = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncsTopic:
    """Where offset syncs are written, and its replication factor if it has to be created."""

    topic: str
    replication_factor: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskConfig:
    """
    Configuration of one mirror task.

    Attributes:
        syncs: At least once only; None: no offset syncs are written.
        own_lane: Records take connections of our own, not those of the client library.
    """

    mirror: MirrorConfig
    clients: MirrorClients
    syncs: SyncsTopic | None = None
    own_lane: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttle:
    """
    A limit that the tasks of a flow share.

    Attributes:
        topic: The source topic that it limits; None: all topics together.
        shares: By slot.
    """

    topic: str | None
    shares: tuple[Limit, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """
    What every mirror task of a flow has to do now.

    Attributes:
        topics: Remote topic by source topic.
        stopped: Source partitions that a task stopped, with the reason.
        suspects: State of the search for refused records, by source partition.
        paused: Source topics that are not read for now.
        stopped_topics: Source topics whose partitions no task may hold for now.
        retries: How often an operator asked to try stopped partitions again, by source topic.
        throttles: Limits on how fast records are mirrored.
        rejoin: Grows when the tasks have to join the source group again.
        assigned: Slot of the task that mirrors a source partition, if the driver assigns them.
    """

    topics: Mapping[str, str] = field(default_factory=dict)
    stopped: Mapping[TopicPartition, str] = field(default_factory=dict)
    suspects: Mapping[TopicPartition, Suspect] = field(default_factory=dict)
    paused: tuple[str, ...] = ()
    stopped_topics: tuple[str, ...] = ()
    retries: Mapping[str, int] = field(default_factory=dict)
    throttles: tuple[Throttle, ...] = ()
    rejoin: int = 0
    assigned: Mapping[TopicPartition, int] = field(default_factory=dict)

    def after(self, report: "TaskReport") -> "Orders":
        """
        Return the orders after a report of a task, for every task and its successors.

        A successor must not meet the same record again, and continues a search where it stopped.
        """
        stopped = {p: reason for p, reason in self.stopped.items() if p not in report.resumed}
        return replace(
            self,
            stopped={**stopped, **report.stopped},
            suspects={**self.suspects, **report.suspects},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionMetrics:
    """
    What a task measured of one remote partition since its last report of it.

    Attributes:
        records: Records committed.
        bytes: Bytes of values that were read.
        age: Milliseconds between a record's timestamp and its reading; None if nothing was read.
        latency: Milliseconds between a record's timestamp and its commit.
    """

    partition: TopicPartition
    records: int
    bytes: int
    age: Spread | None
    latency: Spread | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskThrottle:
    """
    A limit that a task applies.

    Attributes:
        topic: The source topic that it limits; None: all topics together.
        share: Of this task.
        records, bytes: What was mirrored under it, since it was ordered.
        waits: True if records wait for it.
    """

    topic: str | None
    share: Limit
    records: int
    bytes: int
    waits: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskReport:
    """
    What a mirror task does now, and what it did.

    Attributes:
        records, bytes, transactions, commit_ms, incarnations, fences, dropped, quarantined: Since
            its process started.
        owned: Number of partitions that it owns; it does not read the paused ones.
        holds: Which they are; None if they are those of its last report.
        paused: Topics of which it reads nothing, as ordered, sorted.
        stopped_topics: Topics of which it holds nothing, as ordered, sorted.
        pending: Partitions that it is acquiring.
        stopped: Partitions that it does not mirror now, with the reason.
        waiting: Partitions of `pending` that cannot be acquired now, with the reason.
        resumed: Partitions that are mirrored again, since the last report.
        suspects: State of the search for refused records, if it changed since the last report.
        throttles: The limits that it applies.
        measured: Metrics since the last report.
        written: Records handed to the target since its process started: `passed` in batches of the
            source, or decoded for the reason that the key names. Empty with the client library.
    """

    records: int = 0
    bytes: int = 0
    transactions: int = 0
    commit_ms: float = 0.0
    incarnations: int = 0
    fences: int = 0
    dropped: int = 0
    quarantined: int = 0
    owned: int = 0
    holds: tuple[TopicPartition, ...] | None = None
    paused: tuple[str, ...] = ()
    stopped_topics: tuple[str, ...] = ()
    pending: int = 0
    stopped: Mapping[TopicPartition, str] = field(default_factory=dict)
    waiting: Mapping[TopicPartition, str] = field(default_factory=dict)
    resumed: tuple[TopicPartition, ...] = ()
    suspects: Mapping[TopicPartition, Suspect] = field(default_factory=dict)
    throttles: tuple[TaskThrottle, ...] = ()
    measured: tuple[PartitionMetrics, ...] = ()
    written: Mapping[str, int] = field(default_factory=dict)


# ---------------------------------------------------------------------- the checkpoint task


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointClients:
    """Complete client configurations by role."""

    source_admin: ClientConfig = field(repr=False)
    target_admin: ClientConfig = field(repr=False)
    claims_producer: ClientConfig = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointConfig:
    """
    Configuration of the checkpoint task of a flow.

    Attributes:
        topic: Where checkpoints are written.
        syncs_topic: Where offset syncs are read, at least once; None: exactly once, the offset
            map is read.
        replication_factor: Replication factor of `topic`, if it has to be created.
        refresh_s: Seconds between two listings of the source's groups; None: one listing.
        emit_s: Seconds between two rounds over all groups.
        sync_s: Seconds between two syncs of group offsets; None: groups are not synced.
        on_commit: Sync a group as soon as it commits.
    """

    flow: Flow
    topic: str
    syncs_topic: str | None
    replication_factor: int | None
    refresh_s: float | None
    emit_s: float
    sync_s: float | None
    on_commit: bool
    clients: CheckpointClients


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSelection:
    """
    Which groups of the source are synced.

    Attributes:
        include, exclude: Regular expressions.
        filter_class: A plugin that decides instead; None: the expressions decide.
        filter_config: Configuration of the plugin.
    """

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    filter_class: str | None = None
    filter_config: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointOrders:
    """
    What the checkpoint task has to do now.

    Attributes:
        topics: Remote topic by source topic.
        groups: The groups to sync; None until the driver has sent them.
    """

    topics: Mapping[str, str] = field(default_factory=dict)
    groups: GroupSelection | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointReport:
    """
    What the checkpoint task did since its last report.

    Attributes:
        groups: Groups with offsets on mirrored topics, after a round over all of them; None if
            there was no round.
        checkpoints: Checkpoints written.
        moved: How often the offsets of a group were synced to the target.
        latency: Milliseconds from the request for a group's offsets to its checkpoint.
    """

    groups: int | None = None
    checkpoints: int = 0
    moved: int = 0
    latency: Spread | None = None
