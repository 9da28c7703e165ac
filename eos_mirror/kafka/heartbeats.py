"""Writing heartbeats to the topic of a target cluster."""

from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaError, Message, Producer

from eos_mirror.core.internal_records import Heartbeat
from eos_mirror.core.policy import HEARTBEATS_TOPIC
from eos_mirror.kafka.errors import as_mirror_error, translated
from eos_mirror.kafka.topics import Topics, TopicSpec


class KafkaHeartbeats:
    """One cluster's. Connects with the first one; one thread uses it."""

    def __init__(
        self, admin: Mapping[str, Any], producer: Mapping[str, Any], *, replication_factor: int
    ) -> None:
        """
        Args:
            admin, producer: Complete client configurations.
            replication_factor: Of the topic, if there is none yet.
        """
        self._admin = dict(admin)
        self._producer_config = dict(producer)
        self._replication_factor = replication_factor
        self._producer: Producer | None = None
        self._error: KafkaError | None = None
        self._has_arrived = False

    def write(self, heartbeat: Heartbeat) -> bool:
        """
        Send one, and hear what became of the earlier ones. Waits for nothing but the topic.

        Returns:
            Whether one has arrived since the last call.

        Raises:
            NotAuthorized, RestartTask: By class; one that was sent earlier did not arrive.
        """
        if self._producer is None:
            self._create()
            self._producer = Producer(self._producer_config)
        what = f"write to {HEARTBEATS_TOPIC}"
        with translated(what):
            self._producer.produce(
                HEARTBEATS_TOPIC,
                heartbeat.value,
                heartbeat.key,
                partition=0,
                on_delivery=self._delivered,
                timestamp=heartbeat.timestamp_ms,
            )
            self._producer.poll(0)
        error, self._error = self._error, None
        has_arrived, self._has_arrived = self._has_arrived, False
        if error is not None:
            raise as_mirror_error(error, what, source=False)
        return has_arrived

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        if error is None:
            self._has_arrived = True
        else:
            self._error = error

    def _create(self) -> None:
        topics = Topics(self._admin, source=False)
        if HEARTBEATS_TOPIC in topics.list():
            return
        spec = TopicSpec(
            name=HEARTBEATS_TOPIC,
            partitions=1,
            replication_factor=self._replication_factor,
            config={"cleanup.policy": "compact"},
        )
        topics.create([spec])
        topics.wait_until_known({spec.name: spec.partitions})
