"""Audits read every visible record of a range of a real log, and nothing else."""

import uuid
from collections.abc import Iterator
from itertools import chain

import pytest
from confluent_kafka import Producer
from confluent_kafka import TopicPartition as ClientPartition

from eos_mirror.core.records import TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.errors import RangeUnreadable
from eos_mirror.kafka.ranges import RangeReader
from eos_mirror.testing.external import Cluster

pytestmark = pytest.mark.brokers


@pytest.fixture
def reader(source_cluster: Cluster) -> Iterator[RangeReader]:
    """Return a reader of the source."""
    reader = RangeReader(source_cluster.client_config(), side=Side.SOURCE)
    yield reader
    reader.close()


@pytest.fixture
def log(source_cluster: Cluster, ns: str) -> TopicPartition:
    """
    Write a log of three transactions, each with a marker after it, and return its partition.

    Offsets 0-4 are committed, 6-8 aborted, and 10-1209 committed; the log ends at 1211.
    """
    topic = f"{ns}.log"
    source_cluster.create_topic(topic, 1)
    transact(source_cluster, topic, 5, commit=True)
    transact(source_cluster, topic, 3, commit=False)
    transact(source_cluster, topic, 1_200, commit=True)
    return TopicPartition(topic, 0)


def transact(cluster: Cluster, topic: str, count: int, *, commit: bool) -> None:
    """Write one transaction with this many records."""
    producer = Producer({**cluster.client_config(), "transactional.id": uuid.uuid4().hex})
    producer.init_transactions(60)
    producer.begin_transaction()
    for i in range(count):
        producer.produce(topic, b"%d" % i, b"k", 0, timestamp=1_000 + i, headers=[("h", b"1")])
    assert producer.flush(60) == 0, "an abort would drop what is not written yet"
    if commit:
        producer.commit_transaction(60)
    else:
        producer.abort_transaction(60)


def offsets(reader: RangeReader, log: TopicPartition, start: int, end: int) -> list[int]:
    """Return the offsets of the records that are read."""
    return list(chain.from_iterable(chunk.offsets for chunk in reader.read(log, start, end)))


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (0, 1_211, [*range(5), *range(10, 1_210)]),
        (0, 5, [*range(5)]),
        (0, 10, [*range(5)]),
        (2, 12, [2, 3, 4, 10, 11]),
        (5, 10, []),
        (600, 601, [600]),
        (7, 7, []),
        (1_210, 1_211, []),
    ],
)
def test_a_range_is_read_from_its_start_to_its_end(
    reader: RangeReader, log: TopicPartition, start: int, end: int, expected: list[int]
) -> None:
    """A range may start and end at records, markers, aborted records or the end of the log."""
    assert offsets(reader, log, start, end) == expected


def test_each_range_is_read_from_its_own_start(reader: RangeReader, log: TopicPartition) -> None:
    """Records that the client prefetched for one range do not appear in the next."""
    for start, end in ((0, 3), (1_000, 1_002), (1, 4)):
        assert offsets(reader, log, start, end) == list(range(start, end))


def test_all_fields_are_read(reader: RangeReader, log: TopicPartition) -> None:
    """All fields are read as columns, timestamps with their type."""
    (chunk,) = reader.read(log, 3, 5)
    assert chunk.keys == [b"k", b"k"]
    assert chunk.values == [b"3", b"4"]
    assert chunk.timestamps == [(1, 1_003), (1, 1_004)]
    assert chunk.headers == [[("h", b"1")], [("h", b"1")]]


def test_records_that_are_gone_are_not_taken_for_none(
    reader: RangeReader, log: TopicPartition, source_cluster: Cluster
) -> None:
    """A range that starts before the log start is an error, not an empty range."""
    cut = [ClientPartition(log.topic, log.partition, 100)]
    for answer in source_cluster.admin().delete_records(cut).values():
        answer.result(10)
    with pytest.raises(RangeUnreadable, match="no longer in the log"):
        offsets(reader, log, 50, 200)
    assert offsets(reader, log, 100, 102) == [100, 101]
