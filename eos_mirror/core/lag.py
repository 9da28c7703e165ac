"""How much of a source partition is not mirrored yet. Pure functions."""

from collections.abc import Collection, Mapping

from eos_mirror.core.records import TopicPartition
from eos_mirror.core.start_positions import FROM_THE_START, start_of_topic


def begin_at_the_start(
    positions: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    *,
    start_position: str,
    replaced: Collection[TopicPartition] = (),
) -> list[TopicPartition]:
    """
    Return the partitions of which nothing is mirrored: their lag is the whole log.

    They have no position yet, or one of a log that is gone: the topic was deleted and created
    again, or lost its end. A lag of 0 would say the opposite.

    Args:
        positions: Committed source offsets.
        ends: High watermarks.
        start_position: The flow's. Where it is not `earliest`, the lag of a partition without a
            position is not known before the first commit.
        replaced: Partitions whose position is of an earlier topic.
    """
    return [
        one
        for one, end in ends.items()
        if (
            positions[one] > end or one in replaced
            if one in positions
            else start_of_topic(start_position, one.topic) == FROM_THE_START
        )
    ]


def of_an_earlier_topic(
    committed: Mapping[TopicPartition, str], topic_ids: Mapping[str, str]
) -> set[TopicPartition]:
    """
    Return the partitions whose position is of an earlier topic with the same name.

    Args:
        committed: Topic id with which each position was committed; empty if it says none.
        topic_ids: Present topic id by topic; empty if the cluster has none.
    """
    return {
        partition
        for partition, topic_id in committed.items()
        if topic_id and topic_ids.get(partition.topic, "") not in {"", topic_id}
    }
