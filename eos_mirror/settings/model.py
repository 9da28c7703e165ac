"""
The settings as values; the declaration of a field is also its row in the table of keys.

`Annotated[type, Key(name, default, text)]`: the type says how text is read, the key says where
the text comes from. There is no second list to keep in step.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from eos_mirror.core.flow import Flow
from eos_mirror.settings.filters import FilterSettings
from eos_mirror.settings.groups import GroupSettings
from eos_mirror.settings.key import Key
from eos_mirror.settings.mask import Masked
from eos_mirror.settings.metrics import MetricSettings
from eos_mirror.settings.values import (
    AclChoice,
    Aliases,
    Boolean,
    BoundaryChoice,
    Bytes,
    ConnectorChoice,
    Count,
    CountOrBrokerDefault,
    DefaultsChoice,
    DeletedChoice,
    Kind,
    Milliseconds,
    PathChoice,
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
        Servers, Key("bootstrap.servers", None, "Brokers to ask first; every cluster needs them.")
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowClients:
    """
    What the file says about each Kafka client of a flow, in librdkafka's names.

    Incomplete on purpose: `clients.py` adds the defaults and what is never negotiable.
    """

    source_consumer: Masked
    source_admin: Masked
    target_producer: Masked
    target_admin: Masked


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowSettings:
    """One enabled flow. Durations are timedeltas, sizes are bytes, patterns match whole names."""

    flow: Flow
    clients: FlowClients
    groups: GroupSettings
    filters: FilterSettings

    topics: Annotated[
        Patterns, Key("topics", ".*", "Source topics to mirror; whole names; empty is none.")
    ]
    topics_exclude: Annotated[
        Patterns,
        Key(
            "topics.exclude",
            r"mm2.*\.internal, .*\.replica, __.*",
            "Source topics not to mirror; beats `topics`.",
        ),
    ]
    heartbeats_replicated: Annotated[
        Boolean,
        Key(
            "heartbeats.replication.enabled",
            "true",
            "Heartbeats topics of the source are mirrored whatever `topics` says.",
        ),
    ]
    replication_policy: Annotated[
        Policy,
        Key(
            "replication.policy.class",
            "DefaultReplicationPolicy",
            "Names of remote topics: `A.topic`, with IdentityReplicationPolicy `topic` "
            "unchanged, or what a Python class says. MirrorMaker 2's full class names are "
            "accepted.",
        ),
    ]
    renames: Annotated[
        Renames,
        Key(
            "replication.policy.topics.map",
            "",
            "Remote topics with names of their own: `orders:sales, raw-(.*):lake.$1`; whole "
            "names, the first match counts.",
            shown_default="none",
        ),
    ]
    replication_policy_separator: Annotated[
        Separator, Key("replication.policy.separator", ".", "Between alias and topic.")
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
        Key("replication.factor", "2", "Of new remote topics; -1 is the broker's default."),
    ]
    tasks_max: Annotated[Count, Key("tasks.max", "1", "Tasks (processes) of the flow, at most.")]
    refresh_topics: Annotated[
        Boolean,
        Key("refresh.topics.enabled", "true", "Look for new topics and partitions while running."),
    ]
    refresh_topics_interval: Annotated[
        Seconds, Key("refresh.topics.interval.seconds", "600", "How often to look.")
    ]
    admin_timeout: Annotated[
        Milliseconds, Key("admin.timeout.ms", "60000", "Budget of each administrative step.")
    ]
    when_deleted: Annotated[
        DeletedChoice,
        Key(
            "source.topic.deleted",
            "keep",
            "`stop`: the flow ends when a source topic is deleted. Its copy is kept in any case.",
        ),
    ]
    sync_configs: Annotated[
        Boolean,
        Key(
            "sync.topic.configs.enabled",
            "true",
            "Remote topics follow the configuration of their source topics.",
        ),
    ]
    sync_configs_interval: Annotated[
        Seconds, Key("sync.topic.configs.interval.seconds", "600", "How often.")
    ]
    config_exclude: Annotated[
        Patterns,
        Key(
            "config.properties.exclude",
            "follower.replication.throttled.replicas, leader.replication.throttled.replicas, "
            "message.timestamp.difference.max.ms, log.message.timestamp.before.max.ms, "
            "log.message.timestamp.after.max.ms, message.timestamp.type, "
            "unclean.leader.election.enable, min.insync.replicas",
            "Never set on remote topics, limits and `cleanup.policy` included; whole names.",
        ),
    ]
    defaults_from: Annotated[
        DefaultsChoice,
        Key(
            "use.defaults.from",
            "target",
            "`source`: what is default there is set on the remote topic, too.",
        ),
    ]
    sync_acls: Annotated[
        Boolean,
        Key(
            "sync.topic.acls.enabled",
            "true",
            "Who may read a source topic may read its remote topic.",
        ),
    ]
    sync_acls_interval: Annotated[
        Seconds, Key("sync.topic.acls.interval.seconds", "600", "How often.")
    ]
    acls_mode: Annotated[
        AclChoice,
        Key("sync.topic.acls.mode", "read", "`full`: who may write the one may write the other."),
    ]
    connector_type: Annotated[
        ConnectorChoice, Key("connector.type", "sink", "Commit on the target, with the data.")
    ]
    exactly_once: Annotated[
        Boolean,
        Key(
            "transaction.producer",
            "true",
            "Exactly once; `false` is at least once: no transactions, positions in the source "
            "group, duplicates after a crash.",
        ),
    ]
    abort_on_send_failure: Annotated[
        Boolean,
        Key(
            "abort.on.send.failure",
            "true",
            "At least once: stop a partition at a record that the target refuses; "
            "`false` drops this record, and notes it in the ledger.",
        ),
    ]
    transaction_boundary: Annotated[
        BoundaryChoice,
        Key(
            "transaction.boundary", "interval", "What ends a transaction: time and size, or a poll."
        ),
    ]
    transaction_interval: Annotated[
        Milliseconds,
        Key(
            "transaction.boundary.interval.ms",
            "100",
            "A transaction ends at this age, or when nothing is waiting. If records wait, it gets "
            "128 times as old as commits take: to 20 times this, 2 s, 1/4 of its timeout at most.",
        ),
    ]
    transaction_bytes: Annotated[
        Bytes,
        Key("transaction.boundary.bytes", "268435456", "A transaction of this size is committed."),
    ]
    transaction_records: Annotated[
        Count,
        Key("transaction.boundary.records", "1000000", "So is one of this many records."),
    ]
    transaction_timeout: Annotated[
        Milliseconds,
        Key(
            "transaction.timeout.ms",
            "60000",
            "The target aborts a transaction left open this long; "
            "at most its `transaction.max.timeout.ms`.",
        ),
    ]
    session_timeout: Annotated[
        Milliseconds,
        Key(
            "session.timeout.ms",
            "10000",
            "Silence after which the source group gives a task's partitions to others.",
        ),
    ]
    start_position: Annotated[
        StartPosition,
        Key(
            "start.position",
            "earliest",
            "Where a partition that was never mirrored begins: "
            "`earliest`, `latest` or `timestamp:2025-01-31T12:00:00Z`.",
        ),
    ]
    data_path: Annotated[
        PathChoice, Key("data.path", "auto", "`record` decodes every record; `auto` may not.")
    ]
    internal_topic_replication_factor: Annotated[
        Count,
        Key(
            "internal.topic.replication.factor",
            "3",
            "Of the claims and offset map topics on the target.",
            fallback="offset-syncs.topic.replication.factor",
            shown_default="`offset-syncs.topic.replication.factor`, else `3`",
        ),
    ]
    internal_topic_min_insync_replicas: Annotated[
        Count,
        Key(
            "internal.topic.min.insync.replicas",
            None,
            "Of the same topics.",
            shown_default="2, or the replication factor if that is less",
        ),
    ]
    offsets_keepalive: Annotated[
        Seconds,
        Key(
            "offsets.keepalive.interval.seconds",
            "86400",
            "Idle partitions are committed again this often; "
            "must be below the target's `offsets.retention.minutes`.",
        ),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatSettings:
    """
    Heartbeats of one pair of clusters.

    Attributes:
        flow: The pair; whether it is enabled does not matter: what is written to the source of a
            flow comes back with its copies, and that is how its way is known.
        client: What the file says about clients of the target, as `FlowClients` has it.
    """

    flow: Flow
    client: Masked

    enabled: Annotated[
        Boolean,
        Key(
            "emit.heartbeats.enabled",
            "true",
            "Heartbeats are written to the target, also of flows that are not enabled.",
        ),
    ]
    interval: Annotated[Seconds, Key("emit.heartbeats.interval.seconds", "1", "How often.")]
    replication_factor: Annotated[
        Count, Key("heartbeats.topic.replication.factor", "3", "Of the topic `heartbeats`.")
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """
    A whole file, checked.

    Attributes:
        path: The file.
        clusters: Every cluster, in the order of `clusters`.
        flows: The enabled flows that were asked for, in the order of `clusters`.
        heartbeats: Every pair that has them and whose target was asked for.
        metrics: Where they go.
        spark: `spark.*` as written, for the Spark session.
        verify_spark: The same for audits: with what `verify.spark.*` says otherwise; None if they
            need no Spark.
        notes: One line each, for people: lines of the file that do nothing.
        origins: Full key, such as `A->B.tasks.max`, to `file:line` or `default`.
    """

    path: Path
    clusters: tuple[ClusterSettings, ...]
    flows: tuple[FlowSettings, ...]
    heartbeats: tuple[HeartbeatSettings, ...]
    metrics: MetricSettings
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
            "false",
            "Of several runs of this file one mirrors, and the others wait until it is gone.",
        ),
    ]
    summary_interval: Annotated[
        Seconds, Key("summary.interval.seconds", "60", "One summary event per flow this often.")
    ]
    shutdown_timeout: Annotated[
        Milliseconds,
        Key("shutdown.timeout.ms", "10000", "How long a stop waits for tasks before it ends them."),
    ]


CLUSTERS = Annotated[
    Aliases, Key("clusters", None, "The aliases of all clusters, separated by commas.")
]
ENABLED = Annotated[
    Boolean, Key("enabled", "false", "Whether the flow runs. Only `A->B.enabled` counts.")
]
SPARK = Annotated[
    str,
    Kind("string"),
    Key(
        "spark.*",
        None,
        "Passed on to the Spark session.",
        shown_default="without `spark.master`: this machine, with a slot for every task",
    ),
]
VERIFY_SPARK = Annotated[
    str,
    Kind("string"),
    Key(
        "verify.spark.*",
        None,
        "Passed on to the Spark session of `verify`.",
        shown_default="what `spark.*` says; with `runtime = local` no Spark",
    ),
]
