"""Every metric, in one table. No other module defines one."""

from dataclasses import dataclass, replace
from enum import Enum
from typing import Final


class Kind(Enum):
    """The instrument of a metric."""

    COUNTER = "counter"
    GAUGE = "gauge"


class Of(Enum):
    """What a metric belongs to: its attribute besides `source` and `target`."""

    FLOW = "flow"
    """No further attribute."""
    TASK = "task"
    PARTITION = "partition"
    """Also `topic`: the remote topic."""
    STATE = "state"
    """Also `topic` and `partition`, and `cause`: the class of the error, empty without one."""
    PATH = "path"
    """Also `task`, and `path`: `passed`, or why records were decoded."""
    SOURCE_CONNECTOR = "source connector"
    """MirrorMaker 2's new names: those of a partition, and `connector` and `task`."""
    CHECKPOINT_CONNECTOR = "checkpoint connector"
    """MirrorMaker 2's new names: `connector` and `task`."""


@dataclass(frozen=True, slots=True)
class Metric:
    """
    A metric; `key` names its value for a `Reader`, such as a field of a task's status.

    The two names of one metric of MirrorMaker 2 have the same key.
    """

    name: str
    unit: str
    kind: Kind
    text: str
    key: str
    of: Of = Of.TASK


LEGACY: Final = "kafka.connect.mirror."
"""Begins the names of MirrorMaker 2's metrics that have always been; then comes the connector."""
NEW: Final = "kafka.connect.plugins."
"""Begins their names since Kafka 4.3, for every connector. Source: KIP-1280, KIP-877."""
NEW_OF: Final = {Of.PARTITION: Of.SOURCE_CONNECTOR, Of.FLOW: Of.CHECKPOINT_CONNECTOR}
"""What a metric of MirrorMaker 2 belongs to under its new name."""


def _mm2(attribute: str, text: str) -> Metric:
    """Return a metric of MirrorMaker 2's bean. No unit: exporters would add it to the name."""
    name = f"{LEGACY}mirrorsourceconnector.{attribute}"
    return Metric(name, "", Kind.GAUGE, text, attribute, Of.PARTITION)


def _mm2_checkpoints(attribute: str, text: str) -> Metric:
    """Return one metric per flow: MirrorMaker 2 shows the same number for each group."""
    name = f"{LEGACY}mirrorcheckpointconnector.{attribute}"
    return Metric(name, "", Kind.GAUGE, text, attribute, Of.FLOW)


def _renamed(metric: Metric) -> Metric:
    """Return a metric of MirrorMaker 2 under its new name."""
    return replace(metric, name=f"{NEW}{metric.key}", of=NEW_OF[metric.of])


_ALWAYS: Final = (
    Metric("eos_mirror.records", "{record}", Kind.COUNTER, "Records committed.", "records"),
    Metric(
        "eos_mirror.bytes", "By", Kind.COUNTER, "Bytes of values handed to the producer.", "bytes"
    ),
    Metric(
        "eos_mirror.transactions",
        "{transaction}",
        Kind.COUNTER,
        "Transactions committed.",
        "transactions",
    ),
    Metric(
        "eos_mirror.commit.time",
        "ms",
        Kind.COUNTER,
        "Time spent in commits, with the acknowledgements they wait for.",
        "commit_ms",
    ),
    Metric(
        "eos_mirror.incarnations",
        "{incarnation}",
        Kind.COUNTER,
        "Transactional ids used; more than one per start means suspicious commits.",
        "incarnations",
    ),
    Metric("eos_mirror.fences", "{fence}", Kind.COUNTER, "Earlier writers fenced.", "fences"),
    Metric(
        "eos_mirror.dropped",
        "{record}",
        Kind.COUNTER,
        "Records refused by the target and dropped.",
        "dropped",
    ),
    Metric(
        "eos_mirror.quarantined",
        "{record}",
        Kind.COUNTER,
        "Records refused by the target and moved to the quarantine.",
        "quarantined",
    ),
    Metric(
        "eos_mirror.restarts", "{process}", Kind.COUNTER, "Task processes replaced.", "restarts"
    ),
    Metric(
        "eos_mirror.partitions.owned",
        "{partition}",
        Kind.GAUGE,
        "Partitions being mirrored.",
        "owned",
    ),
    Metric(
        "eos_mirror.partitions.pending",
        "{partition}",
        Kind.GAUGE,
        "Partitions being acquired.",
        "pending",
    ),
    Metric(
        "eos_mirror.throttles.waiting",
        "{limit}",
        Kind.GAUGE,
        "Limits of `eos-mirror throttle` for which records wait.",
        "throttled",
    ),
    Metric(
        "eos_mirror.written",
        "{record}",
        Kind.COUNTER,
        "Records sent by our own lane: in batches of the source (`passed`), or decoded, and why.",
        "written",
        Of.PATH,
    ),
    Metric(
        "eos_mirror.partitions.stopped",
        "{partition}",
        Kind.GAUGE,
        "Partitions that stopped; `partition.stopped` says why.",
        "stopped",
        Of.FLOW,
    ),
    Metric(
        "eos_mirror.groups.followed",
        "{group}",
        Kind.GAUGE,
        "Groups of the source with offsets on mirrored topics.",
        "groups",
        Of.FLOW,
    ),
    Metric(
        "eos_mirror.groups.age",
        "s",
        Kind.GAUGE,
        "Time since the last successful round over the groups.",
        "groups.age",
        Of.FLOW,
    ),
    Metric(
        "eos_mirror.groups.moved",
        "{move}",
        Kind.COUNTER,
        "Groups whose offsets were synced on the target, counted each time.",
        "moved",
        Of.FLOW,
    ),
    Metric(
        "eos_mirror.checkpoints",
        "{checkpoint}",
        Kind.COUNTER,
        "Checkpoints written.",
        "checkpoints",
        Of.FLOW,
    ),
    _mm2_checkpoints(
        "checkpoint-latency-ms", "Time from the offset request of a group to its checkpoint."
    ),
    _mm2_checkpoints("checkpoint-latency-ms-min", "Shortest time of the last minute."),
    _mm2_checkpoints("checkpoint-latency-ms-max", "Longest time of the last minute."),
    _mm2_checkpoints("checkpoint-latency-ms-avg", "Mean time of the last minute."),
    Metric(
        "eos_mirror.lag.records",
        "{record}",
        Kind.GAUGE,
        "Offsets from the committed position to the high watermark of the source.",
        "lag.records",
        Of.PARTITION,
    ),
    Metric(
        "eos_mirror.lag.hidden",
        "{record}",
        Kind.GAUGE,
        "Offsets of this lag behind an open transaction of the source; nothing can read them.",
        "lag.hidden",
        Of.PARTITION,
    ),
    Metric(
        "eos_mirror.lag.bytes",
        "By",
        Kind.GAUGE,
        "Lag in bytes of values: an estimate from the mean size of mirrored records.",
        "lag.bytes",
        Of.PARTITION,
    ),
    Metric(
        "eos_mirror.lag.time",
        "s",
        Kind.GAUGE,
        "Time since the source first had an end that is not mirrored yet.",
        "lag.time",
        Of.PARTITION,
    ),
    _mm2("record-count", "Records committed."),
    _mm2("record-rate", "Records committed per second."),
    _mm2("byte-count", "Bytes of values read."),
    _mm2("byte-rate", "Bytes of values read per second."),
    _mm2("record-age-ms", "Age of the last record when it was read."),
    _mm2("record-age-ms-min", "Least age of a record when it was read."),
    _mm2("record-age-ms-max", "Greatest age of a record when it was read."),
    _mm2("record-age-ms-avg", "Mean age of the records when they were read."),
    _mm2("replication-latency-ms", "Age of the last record when it was committed."),
    _mm2("replication-latency-ms-min", "Least age of a record when it was committed."),
    _mm2("replication-latency-ms-max", "Greatest age of a record when it was committed."),
    _mm2("replication-latency-ms-avg", "Mean age of the records when they were committed."),
    Metric(
        "eos_mirror.partition.state",
        "",
        Kind.GAUGE,
        "1, with the state in the attribute `state`, and in `cause` the error that stopped it.",
        "state",
        Of.STATE,
    ),
)
_LEGACY: Final = tuple(metric for metric in _ALWAYS if metric.name.startswith(LEGACY))
METRICS: Final = (
    *_ALWAYS,
    *(_renamed(metric) for metric in _LEGACY if metric.of is Of.PARTITION),
    *(_renamed(metric) for metric in _LEGACY if metric.of is Of.FLOW),
)
MM2_KEYS: Final = frozenset(metric.key for metric in _LEGACY)
"""Keys of the metrics that have a legacy name and a new one."""
COUNTERS: Final = tuple(
    metric.key
    for metric in METRICS
    if metric.of is Of.TASK and metric.kind is Kind.COUNTER and metric.key != "restarts"
)
"""Counters that each process of a task starts at zero. The driver counts the processes."""
