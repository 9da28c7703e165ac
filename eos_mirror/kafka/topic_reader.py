"""Reading a small topic whole, from the beginning to the end as of now."""

import time
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError
from confluent_kafka import TopicPartition as ClientPartition

from eos_mirror.errors import TargetUnavailable
from eos_mirror.kafka.errors import as_mirror_error, translated

DEADLINE = timedelta(seconds=60)


def read_compacted(config: Mapping[str, Any], topic: str, *, group: str) -> dict[str, bytes]:
    """
    Newest value by key, read_committed.

    Args and errors: see `read_log`.
    """
    values: dict[str, bytes] = {}
    for key, value in read_log(config, topic, group=group):
        if value is None:
            values.pop(key, None)
        else:
            values[key] = value
    return values


def read_log(
    config: Mapping[str, Any], topic: str, *, group: str
) -> list[tuple[str, bytes | None]]:
    """
    Every record with a key of UTF-8, read_committed, as (key, value), in the order of its
    partition. Others are none of ours.

    Args:
        config: Connection and security.
        topic: May be missing: then the answer is empty.
        group: One that this principal may describe. It is never joined, nor committed to.

    Raises:
        TargetUnavailable: Not read in time.
    """
    consumer = Consumer(
        {
            **config,
            "group.id": group,
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "fetch.wait.max.ms": 50,
        }
    )
    try:
        with translated(f"read {topic}"):
            known = consumer.list_topics(topic, timeout=10).topics[topic]
            if known.error is not None:
                return []
            consumer.assign([ClientPartition(topic, p, OFFSET_BEGINNING) for p in known.partitions])
            return list(_records(consumer, topic, set(known.partitions)))
    finally:
        consumer.close()


def _records(
    consumer: Consumer, topic: str, unread: set[int]
) -> Iterator[tuple[str, bytes | None]]:
    deadline = time.monotonic() + DEADLINE.total_seconds()
    while unread:
        if time.monotonic() > deadline:
            raise TargetUnavailable(f"{topic}: not read to its end in {DEADLINE}")
        for message in consumer.consume(1000, 0) or consumer.consume(1, 0.2):
            error = message.error()
            if error is not None:
                if error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 (public name)
                    raise as_mirror_error(error, f"read {topic}", source=False)
                unread.discard(message.partition())
                continue
            key, raw_value = _text(message.key()), message.value()
            if key is not None:
                yield key, None if raw_value is None else bytes(raw_value)


def _text(key: object) -> str | None:
    try:
        return key.decode() if isinstance(key, bytes) else None
    except UnicodeDecodeError:
        return None
