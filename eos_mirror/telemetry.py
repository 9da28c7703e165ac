"""
Every log event and every metric, in two tables; nothing else may name one.

Events are lines of JSON when stdout is not a terminal, and short lines on one. Healthy mirroring
is quiet: `ready`, one `flow.summary` per interval, and what a person should know.
"""

import json
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Final, TextIO

from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation


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
_LEVELS: Final = {event.name: event.level for event in EVENTS}


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


class EventLog:
    """Writes events; any thread may call it."""

    def __init__(self, stream: TextIO | None = None, *, verbose: bool = False) -> None:
        """
        Args:
            stream: Where to; stdout if None.
            verbose: Details, too.
        """
        self._stream = stream or sys.stdout
        self._verbose = verbose
        self._lock = threading.Lock()

    def __call__(self, name: str, fields: Mapping[str, Any]) -> None:
        """Write one event of the table."""
        level = _LEVELS[name]
        if level is Level.DETAIL and not self._verbose:
            return
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        if self._stream.isatty():
            line = f"{now[11:23]} {name:<20} {_pretty(fields)}"
        else:
            line = json.dumps({"time": now, "event": name, "level": level.value, **fields})
        with self._lock:
            self._stream.write(line + "\n")
            self._stream.flush()


def _pretty(fields: Mapping[str, Any]) -> str:
    return " ".join(f"{key}={value}" for key, value in fields.items() if value not in ("", None))


class Totals:
    """Counters of a task slot over all its processes, which count from zero. Any thread may ask."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._before: dict[int, dict[str, int]] = {}
        self._last: dict[int, tuple[object, dict[str, int]]] = {}

    def add(self, slot: int, submission: object, status: Mapping[str, Any]) -> dict[str, int]:
        """Take the newest status of a slot; return its totals."""
        now = {name: int(status.get(name, 0)) for name in COUNTERS}
        with self._lock:
            return self._add(slot, submission, now)

    def _add(self, slot: int, submission: object, now: dict[str, int]) -> dict[str, int]:
        known, last = self._last.get(slot, (submission, dict.fromkeys(COUNTERS, 0)))
        before = self._before.setdefault(slot, dict.fromkeys(COUNTERS, 0))
        if known != submission:
            for name in COUNTERS:
                before[name] += last[name]
        self._last[slot] = (submission, now)
        return {name: before[name] + now[name] for name in COUNTERS}


Reader = Callable[[], Iterable[tuple[Mapping[str, str], Mapping[str, Any]]]]
"""Attributes and values by `Metric.key`, as of now; a value that is not there is not shown."""


def register_metrics(provider: MeterProvider, readers: Mapping[Of, Reader]) -> None:
    """Create the instruments that have a reader; values are read when an exporter asks."""
    meter = provider.get_meter("eos_mirror")
    for metric in METRICS:
        if metric.of not in readers:
            continue

        def observe(
            _: CallbackOptions, key: str = metric.key, read: Reader = readers[metric.of]
        ) -> Iterable[Observation]:
            return [
                Observation(values[key], dict(attributes))
                for attributes, values in read()
                if key in values
            ]

        create = (
            meter.create_observable_counter
            if metric.kind is Kind.COUNTER
            else meter.create_observable_gauge
        )
        create(metric.name, callbacks=[observe], unit=metric.unit, description=metric.text)
