"""Positions of a flow in the topic in which Kafka Connect stores those of MirrorMaker 2."""

import threading
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from confluent_kafka import Producer

from eos_mirror.core.connect_offsets import (
    AS_JAVA,
    Identity,
    Owner,
    identities,
    identity_records,
    next_offsets,
    records_of,
)
from eos_mirror.core.messages import OffsetsTopic
from eos_mirror.core.records import Position, TopicPartition
from eos_mirror.kafka.client import new_producer
from eos_mirror.kafka.deadline import Deadline
from eos_mirror.kafka.topic_reader import WITHIN, TopicReader, Update
from eos_mirror.kafka.topic_writer import BY_KEY, append_records
from eos_mirror.kafka.topics import TopicSpec
from eos_mirror.ports import GroupOffset

PARTITIONS: Final = 25
"""What Kafka Connect gives the topic."""


def offsets_topic_spec(name: str, *, replication_factor: int | None) -> TopicSpec:
    """Return the topic as Kafka Connect creates it."""
    return TopicSpec(
        name=name,
        partitions=PARTITIONS,
        replication_factor=replication_factor,
        config={"cleanup.policy": "compact"},
    )


class ConnectOffsets:
    """
    Implements `ports.SourceOffsets`. Reading sees every record up to the end of the topic.

    Any thread may call it. It connects on first use.
    """

    def __init__(
        self,
        topic: OffsetsTopic,
        *,
        client_config: Mapping[str, Any],
        producer_config: Mapping[str, Any],
        group: str,
    ) -> None:
        """
        Args:
            client_config: Connection and security of the target.
            producer_config: acks=all, not transactional.
            group: One that this principal may describe; it is never joined.
        """
        self.absent = (
            f"{topic.topic} on the target has no position. Delete the remote topic to mirror it "
            f"again, or exclude the topic."
        )
        self._topic = topic.topic
        self._owner = Owner(topic.connector, topic.cluster)
        self._reader = TopicReader(client_config, topic.topic, group=group)
        self._producer_config = {**producer_config, **AS_JAVA}
        self._producer: Producer | None = None
        self._lock = threading.Lock()
        self._known: dict[TopicPartition, int] = {}
        self._identities: dict[TopicPartition, Identity] = {}

    def read(
        self, partitions: Sequence[TopicPartition], deadline: Deadline | None = None
    ) -> dict[TopicPartition, GroupOffset]:
        """
        Return positions by source partition; partitions without one are skipped.

        Args:
            deadline: Of the operation that reads them.

        Raises:
            TargetUnavailable: The target did not answer.
        """
        left = WITHIN if deadline is None else timedelta(seconds=deadline.left_s(at_most=WITHIN))
        with self._lock:
            self._read(left)
            return {
                one: GroupOffset(position=Position(at), metadata=self._metadata(one, at))
                for one in partitions
                if (at := self._known.get(one)) is not None
            }

    def _read(self, within: timedelta) -> None:
        """Read what is new; what was read before an error counts."""
        updates: list[Update] = []
        try:
            updates.extend(self._reader.updates(within=within))
        finally:
            self._known = next_offsets(updates, self._owner, known=self._known)
            self._identities = identities(updates, self._owner, known=self._identities)

    def _metadata(self, partition: TopicPartition, next_offset: int) -> str:
        """Return which topic a position belongs to; empty if only MirrorMaker 2 stored it."""
        identity = self._identities.get(partition)
        is_ours = identity is not None and identity.next_offset <= next_offset
        return identity.metadata if identity is not None and is_ours else ""

    def committed(
        self, partitions: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, GroupOffset | None]:
        """See `ports.SourceOffsets`."""
        found = self.read(partitions)
        return {one: found.get(one) for one in partitions}

    def commit(self, offsets: Mapping[TopicPartition, GroupOffset], *, within: timedelta) -> None:
        """See `ports.SourceOffsets`."""
        if not offsets:
            return
        positions = {one: offset.position.next_offset for one, offset in offsets.items()}
        records = records_of(positions, self._owner)
        with self._lock:
            new = {
                one: Identity(positions[one], offset.metadata)
                for one, offset in offsets.items()
                if offset.metadata != self._metadata(one, positions[one])
            }
            records += identity_records(new, self._owner)
            if self._producer is None:
                self._producer = new_producer(self._producer_config)
            append_records(self._producer, self._topic, records, partition=BY_KEY, within=within)
            self._identities.update(new)
