"""Reads and writes the desired-state topic of a flow, on the target."""

from collections.abc import Mapping, Sequence
from typing import Any

from eos_mirror.core.flow import Flow
from eos_mirror.core.records import TopicPartition
from eos_mirror.errors import NotAuthorized
from eos_mirror.kafka.client import new_producer
from eos_mirror.kafka.target import KafkaTarget
from eos_mirror.kafka.topic_reader import TopicReader
from eos_mirror.kafka.topic_writer import append_records
from eos_mirror.kafka.topics import Topics, TopicSpec

KeyValue = tuple[str, bytes | None]


class DesiredTopic:
    """
    The desired-state topic as one process reads it. Used by one thread at a time.

    It asks for the end of the topic, which costs little, and reads only if that has moved.
    """

    def __init__(
        self, flow: Flow, topics: Topics, target: KafkaTarget, *, config: Mapping[str, Any]
    ) -> None:
        """
        Args:
            topics, target: Clients of the target.
            config: Client settings of the target for connection and security.
        """
        self._topic = flow.desired_topic
        self._topics, self._target = topics, target
        self._reader = TopicReader(config, self._topic, group=flow.shadow_group)
        self._exists = False
        self.end = 0

    def updates(self) -> list[KeyValue]:
        """
        Return the records since the last call; none if the topic does not exist.

        `end` is where they end: everything before it was read.

        Raises:
            TargetUnavailable: The target did not answer in time.
            NotAuthorized: Describe or Read on the topic is missing.
        """
        self._exists = self._exists or self._is_there()
        if not self._exists:
            return []
        partition = TopicPartition(self._topic, 0)
        ends, _ = self._target.stable_ends([partition])
        end = ends.get(partition, self.end)
        if end <= self.end:
            return []
        found = [
            (update.key.decode(errors="replace"), update.value)
            for update in self._reader.updates()
            if update.key is not None
        ]
        self.end = max(end, self._reader.read_to(0))  # more may have been written meanwhile
        return found

    def _is_there(self) -> bool:
        found = self._topics.existing([self._topic])
        if self._topic in found and found[self._topic] is None:
            raise NotAuthorized(f"DESCRIBE and READ on topic {self._topic} are not granted")
        return bool(found)


def write_desired(
    topics: Topics,
    producer_config: Mapping[str, Any],
    spec: TopicSpec,
    records: Sequence[tuple[str, str | None]],
) -> int:
    """
    Append records to a desired-state topic; create it if it does not exist.

    Args:
        topics: Topics of the target.
        producer_config: acks=all, not transactional.
        spec: The topic.

    Returns:
        The offset of the last record. All in-sync replicas have it.

    Raises:
        TargetUnavailable: The target did not answer, or not acknowledge.
        NotAuthorized: Create or Write on the topic is missing.
    """
    topics.ensure(spec)
    return append_records(new_producer(dict(producer_config)), spec.name, records)[-1]
