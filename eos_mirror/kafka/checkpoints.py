"""The checkpoints topic of a source cluster, on the target."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from eos_mirror.core.internal_records import Checkpoint
from eos_mirror.core.records import TopicPartition
from eos_mirror.kafka.internal_topics import read_internal
from eos_mirror.kafka.topic_writer import Appender
from eos_mirror.kafka.topics import Topics, TopicSpec

READ_WITHIN = timedelta(seconds=60)

Checkpoints = dict[tuple[str, TopicPartition], Checkpoint]
"""The newest one by group and partition."""


class KafkaCheckpoints:
    """
    Connects when it is first used; one thread uses it.

    Attributes:
        unreadable: Records of others in the topic.
    """

    def __init__(
        self,
        admin: Mapping[str, Any],
        producer: Mapping[str, Any],
        topic: str,
        *,
        replication_factor: int,
    ) -> None:
        """
        Args:
            admin, producer: Complete client configurations; acks=all, not transactional.
            replication_factor: Of the topic, if there is none yet.
        """
        self._admin = dict(admin)
        self._log = Appender(producer, topic)
        self._topic = topic
        self._replication_factor = replication_factor
        self.unreadable = 0

    def load(self) -> Checkpoints:
        """
        What was written until now; the topic is made if there is none.

        Raises:
            NotAuthorized, RestartTask: By class.
        """
        spec = TopicSpec(
            name=self._topic,
            partitions=1,
            replication_factor=self._replication_factor,
            config={"cleanup.policy": "compact"},
        )
        Topics(self._admin, source=False).ensure(spec)
        found: Checkpoints = {}
        for key, value in read_internal(self._admin, self._topic, within=READ_WITHIN):
            try:
                checkpoint = Checkpoint.decode(key, value)
            except ValueError:
                self.unreadable += 1
            else:
                found[checkpoint.group, checkpoint.partition] = checkpoint
        return found

    def write(self, checkpoints: Iterable[Checkpoint]) -> None:
        """
        Returns when they are there.

        Raises:
            NotAuthorized, RestartTask: By class; which of them are there is unknown.
        """
        records = [(one.key, one.value) for one in checkpoints]
        if records:
            self._log.append(records)
