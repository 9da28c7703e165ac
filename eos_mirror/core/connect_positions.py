"""Positions of a source connector as records of a transaction."""

from collections.abc import Mapping

from eos_mirror.core.connect_offsets import Owner, records_of
from eos_mirror.core.messages import OffsetsTopic
from eos_mirror.core.records import TopicPartition, TopicRecord


def position_records(
    topic: OffsetsTopic, positions: Mapping[TopicPartition, int]
) -> list[TopicRecord]:
    """
    Return what is stored so that MirrorMaker 2 continues at these positions.

    Args:
        positions: Next offset by source partition.
    """
    found = records_of(positions, Owner(topic.connector, topic.cluster))
    return [TopicRecord(key.encode(), value.encode()) for key, value in found]
