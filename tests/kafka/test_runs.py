"""How a chunk of records is sorted into runs."""

from confluent_kafka import Message

from eos_mirror.core.records import TopicPartition
from eos_mirror.errors import RecordRefused
from eos_mirror.kafka.source import _polled

A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)
AT_MS = 1_000


def record(of: TopicPartition, offset: int, *, at_ms: int = AT_MS) -> Message:
    """Return a message as a consumer returns it."""
    return Message(
        topic=of.topic, partition=of.partition, offset=offset, value=b"", timestamp=(1, at_ms)
    )


def test_partitions_that_alternate_are_a_run_each() -> None:
    """Partitions that alternate record by record, as under a light load, become one run each."""
    polled = _polled(
        [record(A, 5), record(B, 7), record(A, 6), record(B, 9), record(A, 8)], harmless=()
    )
    assert [(run.partition, run.decoded().offsets) for run in polled.runs] == [
        (A, [5, 6, 8]),
        (B, [7, 9]),
    ]
    assert not polled.faults


def test_nothing_is_taken_behind_a_record_that_cannot_be_carried() -> None:
    """Later records of the partition are not accepted either; the other partition continues."""
    chunk = [record(A, 5), record(A, 6, at_ms=0), record(B, 7), record(A, 8), record(B, 8)]
    polled = _polled(chunk, harmless=())
    assert [(run.partition, run.decoded().offsets) for run in polled.runs] == [
        (A, [5]),
        (B, [7, 8]),
    ]
    assert list(polled.faults) == [A]
    assert isinstance(polled.faults[A], RecordRefused)
    assert "orders-0 next_offset=6: timestamp 0" in str(polled.faults[A])
