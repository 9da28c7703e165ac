"""
The typed settings. The declaration of a field is also its row in the table of keys.

`Annotated[type, Key(name, default, text)]`: the type says how the text is parsed, the key says
where it comes from. There is no second list to keep in sync.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from eos_mirror.core.flow import Flow
from eos_mirror.settings.connector import ConnectorSettings, ConnectorType, ModeChange
from eos_mirror.settings.filters import FilterSettings, Transforms
from eos_mirror.settings.groups import GroupSettings
from eos_mirror.settings.heartbeats import HeartbeatSettings
from eos_mirror.settings.key import Key
from eos_mirror.settings.mask import Masked
from eos_mirror.settings.metrics import MetricSettings
from eos_mirror.settings.refusals import RefusalSettings, Tolerance
from eos_mirror.settings.rest import RestSettings
from eos_mirror.settings.values import (
    AclChoice,
    Boolean,
    BoundaryChoice,
    Bytes,
    Count,
    CountOrBrokerDefault,
    DefaultsChoice,
    DeletedChoice,
    Milliseconds,
    NameFormats,
    Patterns,
    Policy,
    Renames,
    RuntimeChoice,
    Seconds,
    Separator,
    Servers,
    StartPosition,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """One cluster of `clusters`."""

    alias: str
    bootstrap_servers: Annotated[
        Servers, Key("bootstrap.servers", None, "Bootstrap brokers; required for every cluster.")
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowClients:
    """
    The user's settings of each Kafka client of a flow, in librdkafka's names.

    They are incomplete: `clients.py` adds the defaults and the values that cannot be changed.
    """

    source_consumer: Masked
    source_admin: Masked
    target_producer: Masked
    target_admin: Masked


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowSettings:
    """
    One enabled flow. Durations are timedeltas, sizes are bytes, patterns match whole names.

    `queues` has quarantines of other flows on its source: they are never mirrored.
    """

    flow: Flow
    clients: FlowClients
    groups: GroupSettings
    filters: FilterSettings
    refusals: RefusalSettings
    connector: ConnectorSettings
    transforms: Transforms
    queues: frozenset[str] = frozenset()

    topics: Annotated[
        Patterns, Key("topics", ".*", "Source topics to mirror; whole names; empty means none.")
    ]
    topics_exclude: Annotated[
        Patterns,
        Key(
            "topics.exclude",
            r"mm2.*\.internal, .*\.replica, __.*",
            "Source topics to exclude; takes precedence over `topics`.",
        ),
    ]
    heartbeats_replicated: Annotated[
        Boolean,
        Key(
            "heartbeats.replication.enabled",
            "true",
            "Mirror the source's heartbeats topics even if `topics` does not match them.",
        ),
    ]
    replication_policy: Annotated[
        Policy,
        Key(
            "replication.policy.class",
            "DefaultReplicationPolicy",
            "Decides the names of remote topics: `A.topic` by default, `topic` unchanged with "
            "IdentityReplicationPolicy, or the answer of a Python class. MirrorMaker 2's full "
            "class names are accepted.",
        ),
    ]
    renames: Annotated[
        Renames,
        Key(
            "replication.policy.topics.map",
            "",
            "Custom names of remote topics: `orders:sales, raw-(.*):lake.$1`. Patterns match "
            "whole names; the first match counts.",
            shown_default="none",
        ),
    ]
    replication_policy_separator: Annotated[
        Separator, Key("replication.policy.separator", ".", "Separator between alias and topic.")
    ]
    internal_topic_separator_enabled: Annotated[
        Boolean,
        Key(
            "replication.policy.internal.topic.separator.enabled",
            "true",
            "Whether the separator also applies to MirrorMaker 2's internal topics.",
        ),
    ]
    replication_factor: Annotated[
        CountOrBrokerDefault,
        Key("replication.factor", "2", "Replicas of new remote topics; -1: broker's default."),
    ]
    tasks_max: Annotated[Count, Key("tasks.max", "1", "Maximum tasks (processes) of the flow.")]
    refresh_topics: Annotated[
        Boolean,
        Key("refresh.topics.enabled", "true", "Check for new topics and partitions while running."),
    ]
    refresh_topics_interval: Annotated[
        Seconds, Key("refresh.topics.interval.seconds", "600", "How often to check.")
    ]
    admin_timeout: Annotated[
        Milliseconds, Key("admin.timeout.ms", "60000", "Time limit of each administrative step.")
    ]
    when_deleted: Annotated[
        DeletedChoice,
        Key(
            "source.topic.deleted",
            "keep",
            "`stop`: the flow stops when a source topic is deleted. Its copy is always kept.",
        ),
    ]
    sync_configs: Annotated[
        Boolean,
        Key(
            "sync.topic.configs.enabled",
            "true",
            "Sync the configuration of source topics to their remote topics.",
        ),
    ]
    sync_configs_interval: Annotated[
        Seconds, Key("sync.topic.configs.interval.seconds", "600", "How often to sync it.")
    ]
    config_exclude: Annotated[
        Patterns,
        Key(
            "config.properties.exclude",
            "follower.replication.throttled.replicas, leader.replication.throttled.replicas, "
            "message.timestamp.difference.max.ms, log.message.timestamp.before.max.ms, "
            "log.message.timestamp.after.max.ms, message.timestamp.type, "
            "unclean.leader.election.enable, min.insync.replicas",
            "Never set on remote topics, not even limits and `cleanup.policy`; whole names.",
        ),
    ]
    defaults_from: Annotated[
        DefaultsChoice,
        Key(
            "use.defaults.from",
            "target",
            "`source`: defaults of the source are also set on the remote topic.",
        ),
    ]
    sync_acls: Annotated[
        Boolean,
        Key(
            "sync.topic.acls.enabled",
            "true",
            "Principals that may read a source topic may also read its remote topic.",
        ),
    ]
    sync_acls_interval: Annotated[
        Seconds, Key("sync.topic.acls.interval.seconds", "600", "How often to sync them.")
    ]
    acls_mode: Annotated[
        AclChoice, Key("sync.topic.acls.mode", "read", "`full`: copy the rights to write, too.")
    ]
    exactly_once: Annotated[
        Boolean,
        Key(
            "transaction.producer",
            "true",
            "`true`: exactly once. `false`: at least once; no transactions, positions are in the "
            "source group, a crash causes duplicates.",
        ),
    ]
    transaction_boundary: Annotated[
        BoundaryChoice,
        Key("transaction.boundary", "interval", "Commit by time and size, or after each `poll`."),
    ]
    transaction_interval: Annotated[
        Milliseconds,
        Key(
            "transaction.boundary.interval.ms",
            "100",
            "Commit at this age, or when no records wait. While lagging: at 128 times the commit "
            "latency, at most 20 times this value, 2 s and 1/4 of `transaction.timeout.ms`.",
        ),
    ]
    transaction_bytes: Annotated[
        Bytes,
        Key("transaction.boundary.bytes", "268435456", "Commit a transaction of this size."),
    ]
    transaction_records: Annotated[
        Count,
        Key("transaction.boundary.records", "1000000", "Commit a transaction of so many records."),
    ]
    transaction_timeout: Annotated[
        Milliseconds,
        Key(
            "transaction.timeout.ms",
            "60000",
            "The target aborts a transaction that stays open this long. "
            "At most the target's `transaction.max.timeout.ms`.",
        ),
    ]
    session_timeout: Annotated[
        Milliseconds,
        Key(
            "session.timeout.ms",
            "10000",
            "A task without heartbeats for this long loses its partitions to other tasks. "
            "The source's brokers allow `group.min.session.timeout.ms` (default 6000) to "
            "`group.max.session.timeout.ms`.",
        ),
    ]
    start_position: Annotated[
        StartPosition,
        Key(
            "start.position",
            "earliest",
            "Where to start a partition that was never mirrored: `earliest`, `latest`, "
            "`timestamp:2025-01-31T12:00:00Z`, `offset:N`, `last:N` (offsets before the end) or "
            "`group:ID` (the offset of this group on the source; Describe on it is needed). An "
            "offset that the log does not have becomes the nearest one. A list such as "
            "`logs[.].*=latest, orders=group:readers, earliest` is possible: the first pattern "
            "that matches the topic counts; without a match, `earliest`.",
        ),
    ]
    internal_topic_replication_factor: Annotated[
        CountOrBrokerDefault,
        Key(
            "internal.topic.replication.factor",
            "3",
            "Replicas of the claims, offset map and ledger topics on the target; "
            "-1: broker's default.",
            fallback="offset-syncs.topic.replication.factor",
            shown_default="`offset-syncs.topic.replication.factor`, else `3`",
        ),
    ]
    internal_topic_min_insync_replicas: Annotated[
        CountOrBrokerDefault,
        Key(
            "internal.topic.min.insync.replicas",
            None,
            "`min.insync.replicas` of the same topics; -1: broker's default.",
            shown_default="2, or the replication factor if that is less or -1",
        ),
    ]
    offsets_keepalive: Annotated[
        Seconds,
        Key(
            "offsets.keepalive.interval.seconds",
            "86400",
            "How often the positions of idle partitions are committed again; "
            "must be below the target's `offsets.retention.minutes`.",
        ),
    ]
    name_formats: Annotated[
        NameFormats,
        Key(
            "metric.names.formats",
            "legacy",
            "Names of MirrorMaker 2's metrics: `legacy`, `new`, or both: `legacy,new`.",
        ),
    ]

    @property
    def quarantine(self) -> str | None:
        """Return the topic for refused records; None if they stop their partitions."""
        if self.refusals.tolerance is Tolerance.NONE:
            return None
        return self.quarantine_topic

    @property
    def quarantine_topic(self) -> str:
        """Return the name of the quarantine, whether or not it is used."""
        return self.refusals.quarantine or self.flow.quarantine_topic

    @property
    def is_source_connector(self) -> bool:
        """Whether positions are where MirrorMaker 2 stores them, and the driver assigns."""
        return self.connector.type is ConnectorType.SOURCE

    @property
    def adopts_source(self) -> bool:
        """Whether a start takes over the positions of a source connector."""
        return self.exactly_once and self.connector.change is ModeChange.ADOPT

    @property
    def drops_records(self) -> bool:
        """Whether tasks write a ledger entry for each record that the target refuses."""
        drops = not self.exactly_once and not self.refusals.abort_on_send_failure
        return drops or self.quarantine is not None

    @property
    def min_in_sync(self) -> dict[str, str]:
        """Return the entry for new internal topics; none if the brokers' default counts."""
        least = self.internal_topic_min_insync_replicas
        return {} if least is None else {"min.insync.replicas": str(least)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """
    A whole configuration, checked.

    Attributes:
        path: The configuration file.
        clusters: Every cluster, in the order of `clusters`.
        flows: The enabled flows that were asked for, in the order of `clusters`.
        heartbeats: Every pair with heartbeats whose target was asked for.
        metrics: Where metrics are exported.
        rest: Where the HTTP server listens.
        spark: `spark.*` as written, for the Spark session.
        verify_spark: The same for audits, overridden by `verify.spark.*`; None: without Spark.
        notes: One line for each line of the configuration that has no effect.
        origins: Full key, such as `A->B.tasks.max`, to `file:line` or `default`.
    """

    path: Path
    clusters: tuple[ClusterSettings, ...]
    flows: tuple[FlowSettings, ...]
    heartbeats: tuple[HeartbeatSettings, ...]
    metrics: MetricSettings
    rest: RestSettings
    spark: Masked
    verify_spark: Masked | None
    notes: tuple[str, ...]
    origins: Mapping[str, str]

    runtime: Annotated[
        RuntimeChoice,
        Key("runtime", "spark", "Where tasks run: Spark executors or child processes."),
    ]
    standby: Annotated[
        Boolean,
        Key(
            "standby.enabled",
            "true",
            "If another run mirrors a flow already, wait until that run is gone. `false`: refuse "
            "to start.",
        ),
    ]
    connect_timeout: Annotated[
        Milliseconds,
        Key(
            "cluster.connect.timeout.ms",
            "8000",
            "How long a verb waits at its start for the first answer of each cluster.",
        ),
    ]
    summary_interval: Annotated[
        Seconds, Key("summary.interval.seconds", "60", "How often each flow logs a summary event.")
    ]
    shutdown_timeout: Annotated[
        Milliseconds,
        Key("shutdown.timeout.ms", "10000", "How long a stop waits for tasks before killing them."),
    ]
