"""
What a task measures of each partition: records, bytes, age and latency.

It measures a run of records at a time, with built-in functions over its timestamps. A record costs
some tens of nanoseconds.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from eos_mirror.core.messages import PartitionMetrics
from eos_mirror.core.records import RecordRun, TopicPartition
from eos_mirror.core.spread import Spread

REPORT_EVERY_S = 5.0
PARTITIONS_PER_REPORT = 500
"""More partitions need several reports: one report is one line of the control channel."""


@dataclass(slots=True)
class _Measured:
    """
    What was measured of one remote partition since it was last reported.

    Attributes:
        sent, made: Count and timestamps of records that are not committed yet.
    """

    records: int = 0
    bytes: int = 0
    age: Spread | None = None
    latency: Spread | None = None
    sent: int = 0
    made: Spread | None = None


class PartitionMeter:
    """
    Measures the partitions of one task. One thread uses it.

    Invariant A: a record counts once it is committed; its age and its bytes count when it is
    read, as in MirrorMaker 2.

    Source: Kafka's MirrorSourceMetrics.
    """

    def __init__(
        self,
        *,
        wanted: bool,
        wall_ms: Callable[[], int],
        now: Callable[[], float],
    ) -> None:
        """
        Args:
            wanted: False: nothing is measured.
            wall_ms: Milliseconds since the epoch.
            now: Monotonic seconds.
        """
        self._is_wanted = wanted
        self._wall_ms = wall_ms
        self._now = now
        self._due_at = now() + REPORT_EVERY_S
        self._unreported: dict[TopicPartition, _Measured] = {}
        self._open: dict[TopicPartition, _Measured] = {}

    def took(self, remote: TopicPartition, run: RecordRun) -> None:
        """Count records that were read and handed to the producer."""
        if not self._is_wanted:
            return
        one = self._open.get(remote)
        if one is None:
            one = self._open[remote] = self._unreported.setdefault(remote, _Measured())
        one.bytes += run.size_bytes
        one.sent += run.count
        made = _known(run.timestamps)
        if made is not None:
            one.made = _after(one.made, made)
            one.age = _after(one.age, made.before(self._wall_ms()))

    def committed(self) -> None:
        """Count everything that was sent as committed."""
        if not self._open:
            return
        now_ms = self._wall_ms()
        for one in self._open.values():
            one.records += one.sent
            if one.made is not None:
                one.latency = _after(one.latency, one.made.before(now_ms))
            one.sent, one.made = 0, None
        self._open.clear()

    def due(self) -> list[tuple[PartitionMetrics, ...]]:
        """Return what was measured since the last time, every 5 s, in parts for one report each."""
        now = self._now()
        if now < self._due_at:
            return []
        self._due_at = now + REPORT_EVERY_S
        rows = tuple(_metrics(remote, one) for remote, one in self._unreported.items())
        self._unreported = dict(self._open)
        for one in self._open.values():
            one.records, one.bytes, one.age, one.latency = 0, 0, None, None
        starts = range(0, len(rows), PARTITIONS_PER_REPORT)
        return [rows[start : start + PARTITIONS_PER_REPORT] for start in starts]


def _known(timestamps: Sequence[int]) -> Spread | None:
    """Return the spread without records that have no timestamp; None if none has one."""
    spread = Spread.of(timestamps)
    if spread.low >= 0:
        return spread
    timestamps = [timestamp for timestamp in timestamps if timestamp >= 0]
    return Spread.of(timestamps) if timestamps else None


def _after(earlier: Spread | None, later: Spread) -> Spread:
    return later if earlier is None else earlier.then(later)


def _metrics(remote: TopicPartition, one: _Measured) -> PartitionMetrics:
    return PartitionMetrics(
        partition=remote,
        records=one.records,
        bytes=one.bytes,
        age=one.age,
        latency=one.latency,
    )
