"""Every metric, in one table. No other module names one."""

from dataclasses import dataclass
from enum import Enum
from typing import Final


class Kind(Enum):
    """How a metric behaves."""

    COUNTER = "counter"
    GAUGE = "gauge"


class Of(Enum):
    """What a metric is of: the attribute next to `source` and `target`."""

    FLOW = "flow"
    """No further attribute."""
    TASK = "task"
    PARTITION = "partition"
    """And `topic`: of the remote topic."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric; `key` names its value for a `Reader`, such as a field of a task's status."""

    name: str
    unit: str
    kind: Kind
    text: str
    key: str
    of: Of = Of.TASK


def _mm2(attribute: str, text: str) -> Metric:
    """As MirrorMaker 2's bean has it; without a unit, which exporters would add to the name."""
    name = f"kafka.connect.mirror.mirrorsourceconnector.{attribute}"
    return Metric(name, "", Kind.GAUGE, text, attribute, Of.PARTITION)


def _mm2_checkpoints(attribute: str, text: str) -> Metric:
    """Of a flow: MirrorMaker 2 shows the same number, of all groups, for each of them."""
    name = f"kafka.connect.mirror.mirrorcheckpointconnector.{attribute}"
    return Metric(name, "", Kind.GAUGE, text, attribute, Of.FLOW)


METRICS: Final = (
    Metric("eos_mirror.records", "{record}", Kind.COUNTER, "Records committed.", "records"),
    Metric("eos_mirror.bytes", "By", Kind.COUNTER, "Bytes of values handed on.", "bytes"),
    Metric("eos_mirror.transactions", "{transaction}", Kind.COUNTER, "Commits.", "transactions"),
    Metric(
        "eos_mirror.commit.time",
        "ms",
        Kind.COUNTER,
        "Spent in commits, with the acknowledgements they wait for.",
        "commit_ms",
    ),
    Metric(
        "eos_mirror.incarnations",
        "{incarnation}",
        Kind.COUNTER,
        "Transactional ids taken; more than one per start means suspicious commits.",
        "incarnations",
    ),
    Metric("eos_mirror.fences", "{fence}", Kind.COUNTER, "Earlier writers fenced.", "fences"),
    Metric("eos_mirror.dropped", "{record}", Kind.COUNTER, "Refused by the target.", "dropped"),
    Metric("eos_mirror.restarts", "{process}", Kind.COUNTER, "Processes replaced.", "restarts"),
    Metric("eos_mirror.partitions.owned", "{partition}", Kind.GAUGE, "Being mirrored.", "owned"),
    Metric(
        "eos_mirror.partitions.pending", "{partition}", Kind.GAUGE, "Being acquired.", "pending"
    ),
    Metric(
        "eos_mirror.partitions.stopped",
        "{partition}",
        Kind.GAUGE,
        "That cannot go on; `partition.stopped` says why.",
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
        "Since the last round over the groups that succeeded.",
        "groups.age",
        Of.FLOW,
    ),
    Metric(
        "eos_mirror.groups.moved",
        "{move}",
        Kind.COUNTER,
        "Groups moved on the target, each time.",
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
    _mm2_checkpoints("checkpoint-latency-ms", "From the look at a group to its checkpoint."),
    _mm2_checkpoints("checkpoint-latency-ms-min", "The shortest of the last minute."),
    _mm2_checkpoints("checkpoint-latency-ms-max", "The longest of the last minute."),
    _mm2_checkpoints("checkpoint-latency-ms-avg", "Their mean."),
    Metric(
        "eos_mirror.lag.records",
        "{record}",
        Kind.GAUGE,
        "Offsets from the committed position to the last stable offset of the source.",
        "lag.records",
        Of.PARTITION,
    ),
    Metric(
        "eos_mirror.lag.bytes",
        "By",
        Kind.GAUGE,
        "The same in bytes of values: an estimate, from the mean of what was mirrored.",
        "lag.bytes",
        Of.PARTITION,
    ),
    Metric(
        "eos_mirror.lag.time",
        "s",
        Kind.GAUGE,
        "Since the source had an end that is not reached yet.",
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
)
COUNTERS: Final = tuple(
    metric.key
    for metric in METRICS
    if metric.of is Of.TASK and metric.kind is Kind.COUNTER and metric.key != "restarts"
)
"""What each process of a task counts from zero; the driver counts its processes."""
