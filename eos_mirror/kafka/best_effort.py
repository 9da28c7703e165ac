"""A topic that is written without waiting: what is lost is told, and nothing stands still."""

from collections.abc import Mapping
from typing import Any

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, KafkaError, Message

from eos_mirror.kafka.errors import as_mirror_error, translated
from eos_mirror.kafka.reconnecting import ReconnectingProducer
from eos_mirror.kafka.topics import Topics, TopicSpec


class BestEffortTopic:
    """One partition, compacted, on a target. Connects with the first record; one thread uses it."""

    def __init__(
        self,
        name: str,
        admin: Mapping[str, Any],
        producer: Mapping[str, Any],
        *,
        replication_factor: int,
        outlives_clients: bool = False,
    ) -> None:
        """
        Args:
            admin, producer: Complete client configurations.
            replication_factor: Of the topic, if there is none yet.
            outlives_clients: When a record found no broker in its time, drop those behind it with
                the client, which may never find one again. A task ends itself when that happens.
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
        Send one, and hear what became of the earlier ones. Waits for nothing but the topic.

        Returns:
            Whether one has arrived since the last call.

        Raises:
            NotAuthorized, RestartTask: By class; one that was sent earlier did not arrive.
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
            raise as_mirror_error(error, what, source=False)
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
        Topics(self._admin, source=False).ensure(spec)
