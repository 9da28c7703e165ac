"""
What a task measures of each partition: records, bytes, how old they are, how long they took.

A run of records at a time, with built-in functions over its timestamps: a record costs some tens
of nanoseconds.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from eos_mirror.core.records import RecordRun, TopicPartition
from eos_mirror.core.spread import Spread
from eos_mirror.ports import TaskContext

MEASURED = "partitions.measured"
"""An event for the driver, not for the log."""

CHECKPOINT_LATENCY = "checkpoint_latency_ms"
"""Likewise, a field of the event `groups.followed`."""

TELL_EVERY_S = 5.0
PARTITIONS_PER_EVENT = 500


@dataclass(slots=True)
class _Measured:
    """
    Of one remote partition, since it was last told.

    Attributes:
        sent, made: Of records that are not yet committed: how many, and when they were made.
    """

    records: int = 0
    bytes: int = 0
    age: Spread | None = None
    latency: Spread | None = None
    sent: int = 0
    made: Spread | None = None


class Measures:
    """
    Of one task; one thread.

    Invariant A: a record counts once it is committed; its age and its bytes count when it is
    read, as in MirrorMaker 2.

    Source: Kafka's MirrorSourceMetrics.
    """

    def __init__(
        self,
        context: TaskContext,
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
        self._context = context
        self._is_wanted = wanted
        self._wall_ms = wall_ms
        self._now = now
        self._tell_at = now() + TELL_EVERY_S
        self._news: dict[TopicPartition, _Measured] = {}
        self._open: dict[TopicPartition, _Measured] = {}

    def took(self, remote: TopicPartition, run: RecordRun) -> None:
        """These were read, and sent on."""
        if not self._is_wanted:
            return
        news = self._open.get(remote)
        if news is None:
            news = self._open[remote] = self._news.setdefault(remote, _Measured())
        news.bytes += run.size_bytes
        news.sent += len(run.timestamps)
        made = _known(run.timestamps)
        if made is not None:
            news.made = _after(news.made, made)
            news.age = _after(news.age, made.before(self._wall_ms()))

    def committed(self) -> None:
        """So was everything that was taken."""
        if not self._open:
            return
        now_ms = self._wall_ms()
        for news in self._open.values():
            news.records += news.sent
            if news.made is not None:
                news.latency = _after(news.latency, news.made.before(now_ms))
            news.sent, news.made = 0, None
        self._open.clear()

    def tell(self) -> None:
        """Send what is new to the driver, if it is time."""
        now = self._now()
        if now < self._tell_at:
            return
        self._tell_at = now + TELL_EVERY_S
        rows = [_row(remote, news) for remote, news in self._news.items()]
        self._news = dict(self._open)
        for news in self._open.values():
            news.records, news.bytes, news.age, news.latency = 0, 0, None, None
        for start in range(0, len(rows), PARTITIONS_PER_EVENT):
            part = rows[start : start + PARTITIONS_PER_EVENT]
            self._context.event(MEASURED, {"partitions": part})


def _known(timestamps: Sequence[int]) -> Spread | None:
    """Without the records that have no timestamp."""
    spread = Spread.of(timestamps)
    if spread.low >= 0:
        return spread
    timestamps = [timestamp for timestamp in timestamps if timestamp >= 0]
    return Spread.of(timestamps) if timestamps else None


def _after(earlier: Spread | None, later: Spread) -> Spread:
    return later if earlier is None else earlier.then(later)


def _row(remote: TopicPartition, news: _Measured) -> list[object]:
    """As `driver/partition_metrics.py` reads it."""
    return [
        remote.topic,
        remote.partition,
        news.records,
        news.bytes,
        None if news.age is None else news.age.encode(),
        None if news.latency is None else news.latency.encode(),
    ]
