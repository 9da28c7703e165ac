"""Finds the first records that readers of the target see, from given offsets on."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as ClientPartition

from eos_mirror.core.records import TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.errors import TargetUnavailable
from eos_mirror.kafka.client import new_consumer
from eos_mirror.kafka.deadline import Deadline
from eos_mirror.kafka.errors import as_mirror_error, translated
from eos_mirror.kafka.source import TRANSIENT
from eos_mirror.kafka.topic_reader import is_end

ENOUGH: Final = 2
"""Offsets that are asked for of each partition."""

READER: Final = {
    "enable.auto.commit": "false",
    "enable.partition.eof": "true",
    "allow.auto.create.topics": "false",
    "auto.offset.reset": "earliest",  # what retention deleted cannot be checked
    "fetch.wait.max.ms": "10",
    "fetch.queue.backoff.ms": "5",
    "queued.min.messages": "1",  # one batch is enough
}


def first_offsets(
    config: Mapping[str, Any],
    starts: Mapping[TopicPartition, int],
    *,
    committed: bool,
    group: str,
    within: timedelta,
) -> dict[TopicPartition, list[int]]:
    """
    Find the first two offsets at or after each of these that hold a record.

    Args:
        config: Connection to the target and security.
        starts: Offset by partition, none of them after the end of its partition.
        committed: As a read_committed reader sees it, which stops at the first open transaction;
            otherwise with the records of aborted transactions.
        group: One that this principal may describe. It is never joined, nor committed to.

    Raises:
        TargetUnavailable: The cluster did not answer, or it was not read in time.
        NotAuthorized: Read on a topic is missing.
    """
    isolation = "read_committed" if committed else "read_uncommitted"
    consumer = new_consumer({**config, **READER, "group.id": group, "isolation.level": isolation})
    try:
        with translated("read the last records"):
            consumer.assign([ClientPartition(*remote, start) for remote, start in starts.items()])
            return _first_offsets(consumer, starts, Deadline(within))
    finally:
        consumer.close()


def _first_offsets(
    consumer: Consumer, starts: Mapping[TopicPartition, int], deadline: Deadline
) -> dict[TopicPartition, list[int]]:
    found: dict[TopicPartition, list[int]] = {remote: [] for remote in starts}
    unread = set(starts)
    while unread:
        if deadline.is_over:
            raise TargetUnavailable(f"{min(unread)}: not read to its end")
        for message in consumer.consume(1000, 0.02):
            error, offset = message.error(), message.offset()
            if error is not None and error.code() in TRANSIENT:
                continue
            remote = TopicPartition(message.topic() or "", message.partition() or 0)
            if error is None and offset is not None:
                found[remote].append(offset)
            elif error is not None and not is_end(message):
                raise as_mirror_error(error, f"read {remote}", side=Side.TARGET)
            if error is not None or len(found[remote]) == ENOUGH:
                unread.discard(remote)
    return {remote: offsets[:ENOUGH] for remote, offsets in found.items()}
