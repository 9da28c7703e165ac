"""
MirrorMaker 2's internal topics, read by applications: with confluent-kafka and nothing else.
"""

import time
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError
from confluent_kafka import TopicPartition as ClientPartition

from eos_mirror.kafka.errors import as_mirror_error, translated

ANSWER_S = 10.0
POLL_S = 0.1
AT_THE_END_MS = 10
"""So long a broker waits for more, where there is none, before it says so; by default 500."""
READER = {
    "group.id": "eos-mirror-client",  # a consumer must have one; it is never joined
    "allow.auto.create.topics": False,  # whatever the application wants for its own topics
    "enable.auto.commit": False,
    "isolation.level": "read_committed",
    "enable.partition.eof": True,
    "auto.offset.reset": "earliest",
    "fetch.wait.max.ms": AT_THE_END_MS,
}

HARMLESS = frozenset({KafkaError.GROUP_AUTHORIZATION_FAILED})


def topic_names(config: Mapping[str, Any]) -> set[str]:
    """
    Of every topic that this principal may describe.

    Raises:
        RestartTask: By class.
    """
    consumer = Consumer({**config, **READER})
    try:
        with translated("list topics"):
            return set(consumer.list_topics(timeout=ANSWER_S).topics)
    finally:
        consumer.close()


def read_internal(
    config: Mapping[str, Any], topic: str, *, within: timedelta
) -> Iterator[tuple[bytes | None, bytes | None]]:
    """
    Key and value of every record of the one partition, read_committed, until its end or the time.

    Args:
        config: Connection and security.
        topic: May be missing: then there are none.

    Raises:
        RestartTask: By class.
    """
    deadline = time.monotonic() + within.total_seconds()
    consumer = Consumer({**config, **READER})
    try:
        with translated(f"read {topic}"):
            if topic not in consumer.list_topics(timeout=ANSWER_S).topics:
                return
            consumer.assign([ClientPartition(topic, 0, OFFSET_BEGINNING)])
            while time.monotonic() < deadline:
                # an event, such as the end, does not end a wait for more records
                for message in consumer.consume(1000, 0) or consumer.consume(1, POLL_S):
                    error = message.error()
                    if error is None:
                        yield message.key(), message.value()
                    elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 (public name)
                        return
                    elif error.code() not in HARMLESS:
                        raise as_mirror_error(error, f"read {topic}", source=False)
    finally:
        consumer.close()
