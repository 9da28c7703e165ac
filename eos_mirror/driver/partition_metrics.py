"""
The metrics of each partition of a flow: what its tasks measured, and its lag.

The lag comes from the clusters, not from the tasks: it matters most when no task runs.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Final

from eos_mirror.core.lag import begin_at_the_start, of_an_earlier_topic
from eos_mirror.core.messages import PartitionMetrics
from eos_mirror.core.metadata import topic_id_of
from eos_mirror.core.records import TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.core.spread import Window
from eos_mirror.driver.flow_clusters import offsets_by_source
from eos_mirror.errors import SourceUnavailable, TargetUnavailable
from eos_mirror.kafka.deadline import Deadline
from eos_mirror.kafka.groups import CommittedOffsets
from eos_mirror.kafka.metadata import ClusterMetadata
from eos_mirror.ports import GroupOffset
from eos_mirror.settings import clients
from eos_mirror.settings.model import FlowSettings

LOOK_EVERY: Final = timedelta(seconds=5)
ANSWERS_WITHIN: Final = timedelta(seconds=2)
"""After this, the last known positions count, so that the lag keeps growing in an outage."""

ENDS_KEPT: Final = 240
"""Per partition: twenty minutes of checks. For a longer lag every second end is dropped."""


class Behind:
    """
    The lag of a partition in records and in time. Pure: time is passed in.

    Attributes:
        position: The position of the copy.
        records: Offsets from the position to the high watermark.
        hidden: How many of them lie behind an open transaction of the source.
    """

    def __init__(self) -> None:
        self._unreached: deque[tuple[float, int]] = deque()
        self.position = 0
        self.records = 0
        self.hidden = 0

    def look(self, now_s: float, *, end: int, position: int, stable: int | None = None) -> None:
        """
        Record the current end of the source and the position of the copy.

        Args:
            end: High watermark.
            stable: Last stable offset; None if it is not known.
        """
        self.position = position
        self.records = max(0, end - position)
        self.hidden = 0 if stable is None else max(0, end - stable)
        if not self._unreached or end > self._unreached[-1][1]:
            self._unreached.append((now_s, end))
        while self._unreached and self._unreached[0][1] <= position:
            self._unreached.popleft()
        if len(self._unreached) > ENDS_KEPT:
            self._unreached = deque(list(self._unreached)[::2])

    def since(self, now_s: float) -> float:
        """Return the seconds since the source had an end that is not reached yet; 0 if none."""
        return now_s - self._unreached[0][0] if self._unreached else 0.0


class _Partition:
    """The measurements of one remote partition."""

    def __init__(self, now_s: float) -> None:
        self.records = 0
        self.bytes = 0
        self.counted = Window(now_s)  # records, and their latency
        self.sized = Window(now_s)  # bytes, and the age of records
        self.behind: Behind | None = None
        self.task: int | None = None

    def add(self, now_s: float, measured: PartitionMetrics, *, task: int) -> None:
        self.task = task
        self.records += measured.records
        self.bytes += measured.bytes
        self.counted.add(now_s, amount=measured.records, spread=measured.latency)
        self.sized.add(now_s, amount=measured.bytes, spread=measured.age)

    def values(self, now_s: float) -> Iterator[tuple[str, float]]:
        if self.behind is not None:
            yield "lag.records", self.behind.records
            yield "lag.hidden", self.behind.hidden
            yield "lag.time", self.behind.since(now_s)
            if self.records:
                yield "lag.bytes", self.behind.records * self.bytes // self.records
        if self.task is None:
            return
        yield "record-count", self.records
        yield "record-rate", self.counted.rate(now_s)
        yield "byte-count", self.bytes
        yield "byte-rate", self.sized.rate(now_s)
        yield from metric_rows("record-age-ms", self.sized, now_s)
        yield from metric_rows("replication-latency-ms", self.counted, now_s)


class FlowPartitionMetrics:
    """Measures one flow. One thread at a time calls `look`; any thread calls the others."""

    def __init__(
        self,
        settings: FlowSettings,
        source: ClusterMetadata,
        mirrored: Callable[[], Mapping[TopicPartition, TopicPartition]],
        *,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """
        Args:
            mirrored: Returns the current remote partition of each source partition.
            now: Monotonic seconds.
        """
        self._flow = settings.flow
        self._source = source
        self._mirrored = mirrored
        self._now = now
        self._is_exact = settings.exactly_once
        self._start_position = settings.start_position
        # unlike the clients of the tasks, these do not wait for open transactions
        self._positions = (
            CommittedOffsets(
                clients.target_admin(settings), self._flow.shadow_group, side=Side.TARGET
            )
            if self._is_exact
            else offsets_by_source(settings)
        )
        self._offsets: dict[TopicPartition, GroupOffset] | None = None
        self._lock = threading.Lock()
        self._partitions: dict[TopicPartition, _Partition] = {}

    def add(self, measured: Iterable[PartitionMetrics], *, task: int) -> None:
        """Add what a task measured since its last report."""
        with self._lock:
            for one in measured:
                self._of(one.partition).add(self._now(), one, task=task)

    def look(self) -> None:
        """
        Ask the clusters for the lag of each partition.

        A partition without an answer keeps its last values, so one without a leader does not hide
        the others. While the cluster with the positions does not answer, the last ones count: the
        lag grows with the source. Where nothing is mirrored, the lag is the whole log.
        """
        mirrored = dict(self._mirrored())
        with suppress(SourceUnavailable, TargetUnavailable):
            # positions first, or a copy could seem ahead of its source
            keys = {source: self._key(source, remote) for source, remote in mirrored.items()}
            offsets = self._last_offsets(list(keys.values()))
            ends, _ = self._source.high_watermarks_or_reasons(list(mirrored))
            reached = {
                source: offsets[key].position.next_offset
                for source, key in keys.items()
                if key in offsets
            }
            unmirrored = begin_at_the_start(
                reached,
                ends,
                start_position=self._start_position,
                replaced=self._replaced({s: offsets[k] for s, k in keys.items() if k in offsets}),
            )
            starts, unknown = self._source.starts_or_reasons(unmirrored)
            reached = {source: at for source, at in reached.items() if source not in unknown}
            stable, _ = self._source.ends_or_reasons(list(ends))
            self._note(
                {
                    mirrored[source]: (ends[source], at, stable.get(source))
                    for source, at in {**reached, **starts}.items()
                    if source in ends
                }
            )
        with self._lock:
            for remote in self._partitions.keys() - set(mirrored.values()):
                del self._partitions[remote]

    def _last_offsets(
        self, partitions: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, GroupOffset]:
        """Return the committed offsets, or the last known ones during an outage."""
        try:
            self._offsets = self._positions.read(partitions, Deadline(ANSWERS_WITHIN))
        except (SourceUnavailable, TargetUnavailable):
            if self._offsets is None:
                raise
        return self._offsets

    def _replaced(self, offsets: Mapping[TopicPartition, GroupOffset]) -> set[TopicPartition]:
        topics = self._source.topics(sorted({partition.topic for partition in offsets}))
        return of_an_earlier_topic(
            {partition: topic_id_of(one.metadata) for partition, one in offsets.items()},
            {name: topic.topic_id for name, topic in topics.items()},
        )

    def _key(self, source: TopicPartition, remote: TopicPartition) -> TopicPartition:
        """Return the partition under which the position is committed."""
        return remote if self._is_exact else source

    def _note(self, seen: Mapping[TopicPartition, tuple[int, int, int | None]]) -> None:
        now = self._now()
        with self._lock:
            for remote, (end, position, stable) in seen.items():
                one = self._of(remote)
                one.behind = one.behind or Behind()
                one.behind.look(now, end=end, position=position, stable=stable)

    def read(self) -> list[tuple[dict[str, str], dict[str, float]]]:
        """Return the attributes and values of every partition."""
        now = self._now()
        with self._lock:
            return [
                (self._attributes(remote), dict(one.values(now)))
                for remote, one in self._partitions.items()
            ]

    def read_with_task(self) -> list[tuple[dict[str, str], dict[str, float]]]:
        """Return the same with `task`, the last that measured it; only where one has measured."""
        now = self._now()
        with self._lock:
            return [
                ({**self._attributes(remote), "task": str(one.task)}, dict(one.values(now)))
                for remote, one in self._partitions.items()
                if one.task is not None
            ]

    def _attributes(self, remote: TopicPartition) -> dict[str, str]:
        return {
            "source": self._flow.source,
            "target": self._flow.target,
            "topic": remote.topic,
            "partition": str(remote.partition),
        }

    def lags(self) -> dict[TopicPartition, int]:
        """Return the lag of each remote partition in records, as far as it was measured."""
        with self._lock:
            found = self._partitions.items()
            return {p: one.behind.records for p, one in found if one.behind is not None}

    def stretches(self) -> dict[TopicPartition, tuple[int, int]]:
        """
        Return the position of each remote partition, and how far it can be mirrored now.

        Both are upstream offsets. A partition that was not measured yet is missing.
        """
        with self._lock:
            found = [(p, one.behind) for p, one in self._partitions.items() if one.behind]
            return {
                p: (one.position, one.position + max(0, one.records - one.hidden))
                for p, one in found
            }

    def _of(self, remote: TopicPartition) -> _Partition:
        found = self._partitions.get(remote)
        if found is None:
            found = self._partitions[remote] = _Partition(self._now())
        return found


def metric_rows(name: str, window: Window, now_s: float) -> Iterator[tuple[str, float]]:
    """
    Yield MirrorMaker 2's four values of a stream of numbers: the last one, and those of a minute.

    Source: Kafka's Value, Min, Max and Avg. A stream that rests keeps only its last value.
    """
    if window.last is not None:
        yield name, window.last
    spread = window.spread(now_s)
    if spread is not None:
        yield f"{name}-min", spread.low
        yield f"{name}-max", spread.high
        yield f"{name}-avg", spread.mean
