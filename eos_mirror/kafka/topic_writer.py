"""Writing a few records that must be there before anything else happens."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, Message, Producer

from eos_mirror.errors import RestartTask, TargetUnavailable
from eos_mirror.kafka.errors import as_mirror_error, translated
from eos_mirror.kafka.reconnecting import ReconnectingProducer

WITHIN = timedelta(seconds=20)


def append_records(
    producer: Producer, topic: str, records: Sequence[tuple[str | bytes, str | bytes | None]]
) -> list[int]:
    """
    Write keys and values to the first partition of a topic of the target, and wait for all.

    Args:
        producer: acks=all, not transactional.

    Returns:
        Their offsets.

    Raises:
        RestartTask: By class; what was written of them is unknown.
    """
    offsets: list[int | None] = [None] * len(records)
    failed: list[KafkaError] = []

    def delivered(index: int, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            failed.append(error)
        else:
            offsets[index] = message.offset()

    with translated(f"write to {topic}"):
        for index, (key, value) in enumerate(records):
            producer.produce(topic, value, key, partition=0, on_delivery=partial(delivered, index))
        left = producer.flush(WITHIN.total_seconds())
    if failed:
        raise as_mirror_error(failed[0], f"write to {topic}", source=False)
    known = [offset for offset in offsets if offset is not None and offset >= 0]
    if left or len(known) < len(records):
        raise TargetUnavailable(f"{topic}: {left} records not acknowledged in {WITHIN}")
    return known


class Appender:
    """
    Appends to a topic now and then: connects when there is something to write.

    After a failure it connects again; the client may never find a broker any more.
    """

    def __init__(self, producer_config: Mapping[str, Any], topic: str) -> None:
        """
        Args:
            producer_config: acks=all, not transactional.
            topic: On the target; its first partition is written.
        """
        self._producer_config = dict(producer_config)
        self._topic = topic
        self._producer: ReconnectingProducer | None = None

    def append(self, records: Sequence[tuple[str | bytes, str | bytes | None]]) -> None:
        """See `append_records`."""
        if self._producer is None:
            self._producer = ReconnectingProducer(self._producer_config)
        try:
            append_records(self._producer.client, self._topic, records)
        except RestartTask:
            self._producer.replace()
            raise
