"""The checkpoints topic of a source cluster, on the target."""

from collections.abc import Iterable, Mapping
from typing import Any

from eos_mirror.core.internal_records import Checkpoint
from eos_mirror.core.records import TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.kafka.topic_reader import TopicReader
from eos_mirror.kafka.topic_writer import TopicWriter
from eos_mirror.kafka.topics import Topics, TopicSpec

Checkpoints = dict[tuple[str, TopicPartition], Checkpoint]
"""The newest checkpoint by group and partition."""


class KafkaCheckpoints:
    """
    Reads and writes checkpoints. It connects when it is first used; one thread uses it.

    Attributes:
        unreadable: How many records of the topic are no checkpoints.
    """

    def __init__(
        self,
        admin: Mapping[str, Any],
        producer: Mapping[str, Any],
        topic: str,
        *,
        group: str,
        replication_factor: int | None,
    ) -> None:
        """
        Args:
            group: One that this principal may describe; a reader needs one.
            admin, producer: Complete client configurations; acks=all, not transactional.
            replication_factor: Of the topic, if it has to be created.
        """
        self._admin = dict(admin)
        self._log = TopicWriter(producer, topic)
        self._topic = topic
        self._group = group
        self._replication_factor = replication_factor
        self.unreadable = 0

    def load(self) -> Checkpoints:
        """
        Read every checkpoint; create the topic if there is none.

        Raises:
            NotAuthorized: A right on the topic is missing.
            RestartTask: The target did not answer (TargetUnavailable).
        """
        spec = TopicSpec(
            name=self._topic,
            partitions=1,
            replication_factor=self._replication_factor,
            config={"cleanup.policy": "compact"},
        )
        Topics(self._admin, side=Side.TARGET).ensure(spec)
        found: Checkpoints = {}
        for key, value in TopicReader(self._admin, self._topic, group=self._group).updates():
            try:
                checkpoint = Checkpoint.decode(key, value)
            except ValueError:
                self.unreadable += 1
            else:
                found[checkpoint.group, checkpoint.partition] = checkpoint
        return found

    def write(self, checkpoints: Iterable[Checkpoint]) -> None:
        """
        Write these checkpoints and wait for the acknowledgement.

        Raises:
            NotAuthorized: Write on the topic is missing.
            RestartTask: The target did not answer (TargetUnavailable); which of them were written
                is unknown.
        """
        records = [(one.key, one.value) for one in checkpoints]
        if records:
            self._log.append(records)
