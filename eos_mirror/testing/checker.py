"""
Checks that a mirrored topic equals the source topic: per partition, in order, all fields.

Counts alone prove nothing: one lost record and one duplicated record would balance.
"""

import uuid
from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from time import monotonic
from typing import cast

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition

from eos_mirror.testing.errors import ClusterFailed

FETCH_RECORDS = 1000
POLL_S = 0.05
SHOWN_CHARACTERS = 60
READ_WITHIN = timedelta(seconds=60)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """
    Everything a reader sees of a record, and its offset, which is not compared.

    Attributes:
        timestamp: Type (Kafka's number) and milliseconds.
    """

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp: tuple[int, int] = (0, 0)
    offset: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionComparison:
    """
    How a target partition differs from its source partition.

    Attributes:
        matched: Records on both sides, in the source's order.
        missing: Records on the source only.
        duplicates: Records that are on the target more often than on the source.
        reordered: Records on both sides, but after a record that they precede on the source.
        altered: Source records that are missing, with an unknown record on the target instead.
        foreign: Records on the target only, without the altered ones.
        first_difference: The first difference as text; None if there is none.
    """

    matched: int
    missing: int = 0
    duplicates: int = 0
    reordered: int = 0
    altered: int = 0
    foreign: int = 0
    first_difference: str | None = None

    @property
    def exact(self) -> bool:
        """Return whether both sequences are equal."""
        return self.first_difference is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """How a target topic differs from its source topic, by partition."""

    partitions: Mapping[int, PartitionComparison]

    @property
    def exact(self) -> bool:
        """Return whether every partition is equal to its source."""
        return all(partition.exact for partition in self.partitions.values())

    @property
    def matched(self) -> int:
        """Return the number of records on both sides, in order."""
        return sum(partition.matched for partition in self.partitions.values())

    @property
    def missing(self) -> int:
        """Return the number of records that the target lacks."""
        return sum(partition.missing for partition in self.partitions.values())

    @property
    def duplicates(self) -> int:
        """Return the number of surplus copies on the target."""
        return sum(partition.duplicates for partition in self.partitions.values())

    @property
    def reordered(self) -> int:
        """Return the number of records out of order."""
        return sum(partition.reordered for partition in self.partitions.values())

    @property
    def altered(self) -> int:
        """Return the number of records that differ in a field."""
        return sum(partition.altered for partition in self.partitions.values())

    def __str__(self) -> str:
        counts = (
            f"{self.matched} matched, {self.missing} missing, {self.duplicates} duplicated, "
            f"{self.reordered} reordered, {self.altered} altered"
        )
        differences = [
            f"partition {number}: {partition.first_difference}"
            for number, partition in sorted(self.partitions.items())
            if not partition.exact
        ]
        return "\n".join([counts, *differences])


def compare_topics(
    source: str | Mapping[str, str],
    source_topic: str,
    target: str | Mapping[str, str],
    remote_topic: str,
    partitions: int,
    *,
    within: timedelta = READ_WITHIN,
) -> Comparison:
    """
    Read both topics to their ends, read_committed, and compare them.

    Args:
        source: Bootstrap servers or a librdkafka configuration; `target` has the target's.
        within: Time limit for reading each of the two topics.

    Raises:
        ClusterFailed: A topic could not be read to its end in time.
    """
    before = read_topic(source, source_topic, partitions=partitions, within=within)
    after = read_topic(target, remote_topic, partitions=partitions, within=within)
    return Comparison(
        partitions={
            number: compare_partition(before[number], after[number]) for number in range(partitions)
        }
    )


def compare_partition(source: Sequence[Record], target: Sequence[Record]) -> PartitionComparison:
    """
    Compare two sequences.

    Equal records are paired in order: the n-th on the target with the n-th on the source.
    """
    if source == target:
        return PartitionComparison(matched=len(source))
    missing = Counter(source) - Counter(target)
    extra = Counter(target) - Counter(source)
    known = set(source)
    strangers = sum(count for record, count in extra.items() if record not in known)
    altered = min(strangers, missing.total())
    common = (Counter(source) & Counter(target)).total()
    reordered = _count_reordered(source, target)
    return PartitionComparison(
        matched=common - reordered,
        missing=missing.total() - altered,
        duplicates=extra.total() - strangers,
        reordered=reordered,
        altered=altered,
        foreign=strangers - altered,
        first_difference=_first_difference(source, target),
    )


def read_topic(
    cluster: str | Mapping[str, str],
    topic: str,
    *,
    partitions: int = 1,
    within: timedelta = READ_WITHIN,
) -> list[list[Record]]:
    """
    Return all committed records of a topic, by partition.

    Raises:
        ClusterFailed: The topic could not be read to its end in time.
    """
    config = {"bootstrap.servers": cluster} if isinstance(cluster, str) else dict(cluster)
    consumer = Consumer(
        {
            **config,
            "group.id": f"eos-mirror-checker-{uuid.uuid4()}",  # never joined, never committed
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "fetch.wait.max.ms": 10,  # an empty fetch signals the end of a partition
            "check.crcs": True,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, n, OFFSET_BEGINNING) for n in range(partitions)])
        return _drain(consumer, topic, partitions=partitions, within=within)
    finally:
        consumer.close()


def _drain(
    consumer: Consumer, topic: str, *, partitions: int, within: timedelta
) -> list[list[Record]]:
    records: list[list[Record]] = [[] for _ in range(partitions)]
    open_partitions = set(range(partitions))
    deadline = monotonic() + within.total_seconds()
    while open_partitions:
        if monotonic() > deadline:
            raise ClusterFailed(f"{topic}: partitions {sorted(open_partitions)} not read in time")
        for message in consumer.consume(FETCH_RECORDS, POLL_S):
            number, error = message.partition(), message.error()
            if error is None and number in open_partitions:
                records[number].append(_record(message))
            elif error is not None and error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name
                open_partitions.discard(number)
            elif error is not None and not error.retriable():
                raise ClusterFailed(f"{topic} partition {number}: {error.str()}")
    return records


def _record(message: Message) -> Record:
    headers = cast("list[tuple[str, bytes | None]]", message.headers() or [])
    return Record(
        key=message.key(),
        value=message.value(),
        headers=tuple(headers),
        timestamp=message.timestamp(),
        offset=message.offset() or 0,
    )


def _count_reordered(source: Sequence[Record], target: Sequence[Record]) -> int:
    places: defaultdict[Record, deque[int]] = defaultdict(deque)
    for place, record in enumerate(source):
        places[record].append(place)
    furthest, reordered = -1, 0
    for record in target:
        if places[record]:
            place = places[record].popleft()
            reordered += place < furthest
            furthest = max(furthest, place)
    return reordered


def _first_difference(source: Sequence[Record], target: Sequence[Record]) -> str:
    place = next(
        (n for n, (ours, theirs) in enumerate(zip(source, target, strict=False)) if ours != theirs),
        min(len(source), len(target)),
    )
    if place == len(target):
        return f"the target ends before record {place}, {_show(source[place])} on the source"
    if place == len(source):
        return f"the source ends before record {place}, {_show(target[place])} on the target"
    ours, theirs = source[place], target[place]
    fields = [
        f"{name} {_short(getattr(ours, name))} became {_short(getattr(theirs, name))}"
        for name in ("key", "value", "headers", "timestamp")
        if getattr(ours, name) != getattr(theirs, name)
    ]
    return f"record {place}, {_show(ours)} on the source, {_show(theirs)} on the target: " + (
        "; ".join(fields)
    )


def _show(record: Record) -> str:
    return f"offset {record.offset} (key {_short(record.key)})"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}..."
