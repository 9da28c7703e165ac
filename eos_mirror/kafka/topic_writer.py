"""Writes internal topics: either a record must be there before anything else happens, or not."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, KafkaError, Message, Producer

from eos_mirror.core.side import Side
from eos_mirror.errors import RestartTask, TargetUnavailable
from eos_mirror.kafka.errors import as_mirror_error, translated
from eos_mirror.kafka.reconnecting import ReconnectingProducer
from eos_mirror.kafka.topics import Topics, TopicSpec

WITHIN = timedelta(seconds=20)
"""For the acknowledgement of what was appended."""

BY_KEY = -1
"""Stands for the partition that the client chooses by the key, as its `partitioner` says."""


def append_records(
    producer: Producer,
    topic: str,
    records: Sequence[tuple[str | bytes, str | bytes | None]],
    *,
    partition: int = 0,
    within: timedelta = WITHIN,
) -> list[int]:
    """
    Write keys and values to one partition of a topic, and wait for all acknowledgements.

    Args:
        producer: acks=all, not transactional.
        partition: Number of the partition, or `BY_KEY`.
        within: How long to wait.

    Returns:
        Their offsets.

    Raises:
        RestartTask: The target did not acknowledge all of them (TargetUnavailable); which of them
            were written is unknown.
        NotAuthorized: Write on the topic is missing.
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
            on_delivery = partial(delivered, index)
            producer.produce(topic, value, key, partition=partition, on_delivery=on_delivery)
        left = producer.flush(within.total_seconds())
    if failed:
        raise as_mirror_error(failed[0], f"write to {topic}", side=Side.TARGET)
    known = [offset for offset in offsets if offset is not None and offset >= 0]
    if left or len(known) < len(records):
        raise TargetUnavailable(f"{topic}: {left} records not acknowledged in {within}")
    return known


class TopicWriter:
    """
    Appends to a topic and waits. It connects when there is something to write.

    After a failure it uses a new client, because the old one may never find a broker again.
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
        """Write these records and wait; see `append_records`."""
        if self._producer is None:
            self._producer = ReconnectingProducer(self._producer_config)
        try:
            append_records(self._producer.client, self._topic, records)
        except RestartTask:
            self._producer.replace()
            raise


class BestEffortWriter:
    """
    Writes a compacted topic of one partition and never waits for an acknowledgement.

    Losses are reported by the next write. It creates the topic with the first record. One thread
    uses it.
    """

    def __init__(
        self,
        name: str,
        admin: Mapping[str, Any],
        producer: Mapping[str, Any],
        *,
        replication_factor: int | None,
        outlives_clients: bool = False,
    ) -> None:
        """
        Args:
            admin, producer: Complete client configurations.
            replication_factor: Of the topic, if it has to be created.
            outlives_clients: When a record found no broker in its time, use a new client, because
                the old one may never find a broker again; what it has not sent is dropped. A task
                does not need that: it exits when that happens.
        """
        self._name = name
        self._admin = dict(admin)
        self._producer_config = dict(producer)
        self._replication_factor = replication_factor
        self._outlives_clients = outlives_clients
        self._producer: ReconnectingProducer | None = None
        self._error: KafkaError | None = None
        self._has_arrived = False

    def write(
        self, key: bytes, value: bytes, *, timestamp_ms: int = TIMESTAMP_NOT_AVAILABLE
    ) -> bool:
        """
        Send one record, and report what became of the earlier ones.

        Returns:
            Whether one has arrived since the last call.

        Raises:
            RestartTask: An earlier record did not arrive, or the topic could not be created: the
                target did not answer (TargetUnavailable).
            NotAuthorized: Create or Write on the topic is missing.
        """
        if self._producer is None:
            self._create()
            self._producer = ReconnectingProducer(self._producer_config)
        what = f"write to {self._name}"
        with translated(what):
            self._producer.client.produce(
                self._name,
                value,
                key,
                partition=0,
                on_delivery=self._delivered,
                timestamp=timestamp_ms,
            )
            self._producer.client.poll(0)
        error, self._error = self._error, None
        has_arrived, self._has_arrived = self._has_arrived, False
        if error is not None:
            has_timed_out = error.code() == KafkaError._MSG_TIMED_OUT  # noqa: SLF001 (public name)
            if has_timed_out and self._outlives_clients:
                self._producer.replace()
            raise as_mirror_error(error, what, side=Side.TARGET)
        return has_arrived

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        if error is None:
            self._has_arrived = True
        else:
            self._error = error

    def _create(self) -> None:
        spec = TopicSpec(
            name=self._name,
            partitions=1,
            replication_factor=self._replication_factor,
            config={"cleanup.policy": "compact"},
        )
        Topics(self._admin, side=Side.TARGET).ensure(spec)
