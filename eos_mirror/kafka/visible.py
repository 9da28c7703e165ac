"""Which records readers of the target see first, from given offsets on."""

import time
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError
from confluent_kafka import TopicPartition as ClientPartition

from eos_mirror.core.records import TopicPartition
from eos_mirror.errors import TargetUnavailable
from eos_mirror.kafka.errors import as_mirror_error, translated
from eos_mirror.kafka.source import TRANSIENT

ENOUGH: Final = 2
"""Offsets of one partition."""

READER: Final = {
    "enable.auto.commit": "false",
    "enable.partition.eof": "true",
    "allow.auto.create.topics": "false",
    "auto.offset.reset": "earliest",  # what retention took cannot be looked at
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
    The first two offsets at or after each of these that hold a record.

    Args:
        config: Connection to the target and security.
        starts: None behind the end of its partition.
        committed: As a read_committed reader sees it, which stops at the first open transaction;
            otherwise with what was aborted.
        group: One that this principal may describe. It is never joined, nor committed to.

    Raises:
        RestartTask: By class; `TargetUnavailable` if it was not read in time.
        NotAuthorized: Read on a topic is missing.
    """
    isolation = "read_committed" if committed else "read_uncommitted"
    consumer = Consumer({**config, **READER, "group.id": group, "isolation.level": isolation})
    try:
        with translated("look at the last records"):
            consumer.assign([ClientPartition(*remote, start) for remote, start in starts.items()])
            return _look(consumer, starts, time.monotonic() + within.total_seconds())
    finally:
        consumer.close()


def _look(
    consumer: Consumer, starts: Mapping[TopicPartition, int], deadline: float
) -> dict[TopicPartition, list[int]]:
    found: dict[TopicPartition, list[int]] = {remote: [] for remote in starts}
    unread = set(starts)
    while unread:
        if time.monotonic() > deadline:
            raise TargetUnavailable(f"{min(unread)}: not read to its end")
        for message in consumer.consume(1000, 0.02):
            error, offset = message.error(), message.offset()
            if error is not None and error.code() in TRANSIENT:
                continue
            remote = TopicPartition(message.topic() or "", message.partition() or 0)
            if error is None and offset is not None:
                found[remote].append(offset)
            elif error is not None and error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001
                raise as_mirror_error(error, f"read {remote}", source=False)
            if error is not None or len(found[remote]) == ENOUGH:
                unread.discard(remote)
    return {remote: offsets[:ENOUGH] for remote, offsets in found.items()}
