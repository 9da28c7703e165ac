"""A topic of one partition, read again and again: each time only what is new."""

import time
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, cast

from confluent_kafka import Consumer, KafkaError
from confluent_kafka import TopicPartition as ClientPartition

from eos_mirror.errors import TargetUnavailable
from eos_mirror.kafka.errors import as_mirror_error, translated
from eos_mirror.kafka.internal_topics import AT_THE_END_MS

ANSWER_S = 10.0
WITHIN = timedelta(seconds=60)


class FollowedTopic:
    """One thread uses it. It connects anew each time."""

    def __init__(self, config: Mapping[str, Any], topic: str, *, group: str) -> None:
        """
        Args:
            config: Connection and security.
            topic: May be missing: then there is nothing new.
            group: One that this principal may describe. It is never joined.
        """
        self._topic = topic
        self._config = {
            **config,
            "group.id": group,
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",  # what is gone was compacted
            "fetch.wait.max.ms": AT_THE_END_MS,
        }
        self._next = 0

    def rewind(self) -> None:
        """Everything is new again."""
        self._next = 0

    def news(self) -> Iterator[tuple[Any, Any]]:
        """
        Key and value of what was written since the last time, until the end as of now.

        Raises:
            RestartTask: By class.
        """
        deadline = time.monotonic() + WITHIN.total_seconds()
        what = f"read {self._topic}"
        consumer = Consumer(self._config)
        try:
            with translated(what):
                if consumer.list_topics(self._topic, ANSWER_S).topics[self._topic].error:
                    return
                consumer.assign([ClientPartition(self._topic, 0, self._next)])
            while time.monotonic() < deadline:
                # an event, such as the end, does not end a wait for more records
                for message in consumer.consume(1000, 0) or consumer.consume(1, 0.2):
                    error = message.error()
                    if error is None:
                        self._next = cast("int", message.offset()) + 1
                        yield message.key(), message.value()
                    elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 (public name)
                        self._next = cast("int", message.offset())
                        return
                    else:
                        raise as_mirror_error(error, what, source=False)
            raise TargetUnavailable(f"{what}: not to its end in {WITHIN}")
        finally:
            consumer.close()
