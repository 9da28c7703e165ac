"""
Reads no faster than the limits of an operator allow.

The engine sees a slower source. A throttled partition stays owned, with its claim: what was read
beyond a limit waits here, in order, and reading is paused meanwhile. Nothing here touches a
transaction.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import islice
from typing import Final, Protocol

from eos_mirror.core.messages import TaskThrottle, Throttle
from eos_mirror.core.records import DecodedRun, Position, RecordRun, TopicPartition
from eos_mirror.core.throttles import Bucket, Limit
from eos_mirror.errors import PartitionStopped
from eos_mirror.ports import Polled, RebalanceListener, Source
from eos_mirror.replication.unreadable import readable_part

FULL_S: Final = 1.0
"""Reading pauses when as much waits as a limit allows in this time."""

LOW_S: Final = 0.5
"""Reading resumes, some partitions at a time, when less than this waits."""

RESUMED_TOGETHER: Final = 4

WAITS_S: Final = 0.25
"""Less than this may wait for the next portion only: the share is enough."""

NO_WAIT: Final = timedelta(0)


@dataclass(slots=True)
class _Waiting:
    """
    What was read of one partition and not handed over.

    Attributes:
        runs: In offset order.
        end: End of the partition, reached after the runs; None if it was not.
        fault: Why nothing can be read after the runs; None if it can.
        resumes_at: Where reading resumes; None while the partition is read.
    """

    runs: deque[RecordRun] = field(default_factory=deque)
    end: int | None = None
    fault: PartitionStopped | None = None
    resumes_at: Position | None = None

    @property
    def is_empty(self) -> bool:
        """True if nothing waits."""
        return not self.runs and self.end is None and self.fault is None


class _Meter:
    """A bucket, with what was handed over and what waits for it."""

    def __init__(self, share: Limit, *, now: float) -> None:
        self.bucket = Bucket(share, now=now)
        self.records = self.bytes = 0
        self.waiting_records = self.waiting_bytes = 0

    @property
    def waiting_s(self) -> float:
        """How long the share needs for what waits."""
        return self.bucket.seconds_of(self.waiting_records, self.waiting_bytes)

    def wait(self, run: RecordRun, sign: int = 1) -> None:
        """Count a run that waits, or with -1, does not wait any more."""
        self.waiting_records += sign * run.count
        self.waiting_bytes += sign * run.size_bytes

    def handed_over(self, run: RecordRun) -> None:
        """Count a run that was handed over."""
        self.bucket.take(run.count, run.size_bytes)
        self.records += run.count
        self.bytes += run.size_bytes


class Poll(Protocol):
    """The method of a source that reads."""

    def __call__(self, *, wait: timedelta) -> Polled:
        """See `ports.Source`."""


class ThrottledSource:
    """
    Implements `ports.Source` over another source. Used by one thread.

    Attributes:
        poll: See `ports.Source`. Without limits it is the source's own method, and costs nothing.

    Invariants:
        A: The records of a partition are handed over in order, from where `assign` began, and an
           end or a fault after all records before it.
        B: `assign`, `unassign`, and a rebalance drop what waits of a partition.
        C: Without limits, every call goes to the source unchanged.
    """

    def __init__(
        self,
        open_source: Callable[[RebalanceListener], Source],
        listener: RebalanceListener,
        *,
        slot: int,
        now: Callable[[], float],
    ) -> None:
        """
        Args:
            open_source: Opens the source below, as `ports.Lane` does.
            listener: Called on each rebalance.
            slot: Number of the task, for its share.
            now: Monotonic seconds.
        """
        self._listener = listener
        self._slot = slot
        self._now = now
        self._meters: dict[str | None, _Meter] = {}
        self._waiting: dict[TopicPartition, _Waiting] = {}
        self._epochs: dict[TopicPartition, int | None] = {}  # of the last record handed over
        self._source: Source = open_source(self)  # connects while the task opens its writer
        self.poll: Poll = self._source.poll

    # ------------------------------------------------------------------ limits

    def follow(self, throttles: Sequence[Throttle]) -> None:
        """Apply the task's shares of these limits from now on."""
        now, before = self._now(), self._meters
        self._meters = {}
        for throttle in throttles:
            share = throttle.shares[self._slot]
            meter = before.get(throttle.topic)
            if meter is None:
                meter = _Meter(share, now=now)
                for partition, waiting in self._waiting.items():
                    if throttle.topic in (None, partition.topic):
                        for run in waiting.runs:
                            meter.wait(run)
            meter.bucket.share = share
            self._meters[throttle.topic] = meter
        if self._meters:
            self.poll = self._limited_poll

    def used(self) -> tuple[TaskThrottle, ...]:
        """Return each limit that is applied, with what was handed over under it."""
        return tuple(
            TaskThrottle(
                topic=topic,
                share=meter.bucket.share,
                records=meter.records,
                bytes=meter.bytes,
                waits=meter.waiting_s > WAITS_S,
            )
            for topic, meter in self._meters.items()
        )

    # ------------------------------------------------------------------ the port

    def subscribe(self, topics: Sequence[str]) -> None:
        """See `ports.Source`."""
        self._source.subscribe(topics)

    def _limited_poll(self, *, wait: timedelta) -> Polled:
        now = self._now()
        for meter in self._meters.values():
            meter.bucket.fill(now=now)
        handed = self._next(Polled())
        polled = self._source.poll(wait=NO_WAIT if handed.runs else wait)
        self._put_aside(polled)
        if not handed.runs:
            self._next(handed)
        handed.runs += polled.runs
        handed.ends |= polled.ends
        handed.faults |= polled.faults
        handed.more_pending = polled.more_pending and not handed.runs
        self._pause()
        self._resume()
        if not (self._meters or self._waiting):
            self.poll = self._source.poll
        return handed

    def assign(self, positions: Mapping[TopicPartition, Position]) -> None:
        """See `ports.Source`."""
        for partition, at in positions.items():
            self._forget(partition)
            self._epochs[partition] = at.leader_epoch
        self._source.assign(positions)

    def unassign(self, partitions: Sequence[TopicPartition]) -> None:
        """See `ports.Source`."""
        reading = [p for p in partitions if not self._is_paused(p)]
        for partition in partitions:
            self._forget(partition)
        self._source.unassign(reading)

    def commit(self, positions: Mapping[TopicPartition, Position]) -> None:
        """See `ports.Source`."""
        self._source.commit(positions)

    def close(self) -> None:
        """See `ports.Source`."""
        self._source.close()

    # ------------------------------------------------------------------ rebalances

    def on_granted(self, partitions: Sequence[TopicPartition]) -> None:
        """See `ports.RebalanceListener`."""
        self._listener.on_granted(partitions)

    def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        """See `ports.RebalanceListener`."""
        for partition in partitions:
            self._forget(partition)
        self._listener.on_revoked(partitions)

    def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
        """See `ports.RebalanceListener`."""
        for partition in partitions:
            self._forget(partition)
        self._listener.on_lost(partitions)

    # ------------------------------------------------------------------ what waits

    def _meters_of(self, partition: TopicPartition) -> list[_Meter]:
        found = (self._meters.get(None), self._meters.get(partition.topic))
        return [meter for meter in found if meter is not None]

    def _is_paused(self, partition: TopicPartition) -> bool:
        waiting = self._waiting.get(partition)
        return waiting is not None and waiting.resumes_at is not None

    def _forget(self, partition: TopicPartition) -> None:
        waiting = self._waiting.pop(partition, None)
        if waiting is not None:
            for run in waiting.runs:
                self._count(run, sign=-1)

    def _count(self, run: RecordRun, *, sign: int) -> None:
        for meter in self._meters_of(run.partition):
            meter.wait(run, sign)

    def _put_aside(self, polled: Polled) -> None:
        """Let what was read of limited partitions wait, and remove it from `polled`."""
        aside = {run.partition for run in polled.runs}.union(polled.ends, polled.faults)
        aside = {p for p in aside if p in self._waiting or self._meters_of(p)}
        for run in polled.runs:
            if run.partition in aside:
                self._of(run.partition).runs.append(run)
                self._count(run, sign=1)
        polled.runs = [run for run in polled.runs if run.partition not in aside]
        for partition in aside & polled.ends.keys():
            self._of(partition).end = polled.ends.pop(partition)
        for partition in aside & polled.faults.keys():
            self._of(partition).fault = polled.faults.pop(partition)

    def _of(self, partition: TopicPartition) -> _Waiting:
        return self._waiting.setdefault(partition, _Waiting())

    def _next(self, handed: Polled) -> Polled:
        """Hand over what the limits allow now; the partitions take turns."""
        for partition, waiting in list(self._waiting.items()):
            allowed = list(self._allowed(partition, waiting))
            handed.runs.extend(allowed)
            if not waiting.runs:
                self._end(partition, waiting, handed)
            if waiting.is_empty and waiting.resumes_at is None:
                del self._waiting[partition]
            elif allowed:
                self._waiting[partition] = self._waiting.pop(partition)  # the last one next time
        return handed

    def _end(self, partition: TopicPartition, waiting: _Waiting, handed: Polled) -> None:
        """Hand over what follows the last record that waited."""
        if waiting.end is not None:
            handed.ends[partition] = waiting.end
        if waiting.fault is not None:
            handed.faults[partition] = waiting.fault
        waiting.end = waiting.fault = None

    def _allowed(self, partition: TopicPartition, waiting: _Waiting) -> Iterator[RecordRun]:
        meters = self._meters_of(partition)
        while waiting.runs:
            run = waiting.runs[0]
            room = min(
                (meter.bucket.room(run.count, run.size_bytes) for meter in meters),
                default=run.count,
            )
            if not room:
                return
            waiting.runs.popleft()
            self._count(run, sign=-1)
            if room < run.count:
                whole, fault = readable_part(run)
                if fault is not None:
                    self._drop_after(waiting, fault)
                if whole is None:
                    return
                room = min(room, whole.count)
                run = self._divided(partition, whole, whole.whole(room))
            self._epochs[partition] = run.leader_epoch
            for meter in meters:
                meter.handed_over(run)
            yield run

    def _drop_after(self, waiting: _Waiting, fault: PartitionStopped) -> None:
        """Nothing that waits can be read: a batch before it is corrupt."""
        for later in waiting.runs:
            self._count(later, sign=-1)
        waiting.runs.clear()
        waiting.end, waiting.fault = None, fault

    def _divided(self, partition: TopicPartition, whole: DecodedRun, count: int) -> DecodedRun:
        """Return the first records of a run; the others wait."""
        if count == whole.count:
            return whole
        rest = whole.part(count, whole.count)
        self._of(partition).runs.appendleft(rest)
        self._count(rest, sign=1)
        return whole.head(count, after=self._epochs.get(partition))

    # ------------------------------------------------------------------ reading

    def _pause(self) -> None:
        """Pause reading the partitions of which records wait, where enough waits for a limit."""
        full = [
            partition
            for partition, waiting in self._waiting.items()
            if waiting.runs
            and waiting.resumes_at is None
            and waiting.fault is None
            and any(meter.waiting_s >= FULL_S for meter in self._meters_of(partition))
        ]
        if not full:
            return
        self._source.unassign(full)
        for partition in full:
            waiting = self._waiting[partition]
            last = waiting.runs[-1]
            waiting.resumes_at = Position(last.next_offset, last.leader_epoch)
            waiting.end = None  # it is reported again

    def _resume(self) -> None:
        """Resume reading partitions before a limit could hand over more than what waits."""
        due = {
            partition: waiting.resumes_at
            for partition, waiting in self._waiting.items()
            if waiting.resumes_at is not None
            and all(meter.waiting_s < LOW_S for meter in self._meters_of(partition))
        }
        positions = dict(islice(due.items(), RESUMED_TOGETHER))
        if positions:
            self._source.assign(positions)
        for partition in positions:
            waiting = self._waiting[partition]
            waiting.resumes_at = None
            if waiting.is_empty:
                del self._waiting[partition]
