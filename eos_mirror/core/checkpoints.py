"""
Which checkpoints are worth writing, and which groups on the target are moved.

Source: Kafka's MirrorCheckpointTask (KIP-382, KIP-545); what differs is said where it does.
"""

from collections.abc import Mapping

from eos_mirror.core.internal_records import Checkpoint
from eos_mirror.core.offset_map import OffsetMap, Untranslatable
from eos_mirror.core.records import TopicPartition


def translated(
    group: str, remote: TopicPartition, upstream: int, metadata: str, offsets: OffsetMap
) -> Checkpoint | Untranslatable:
    """
    The checkpoint of a group that would read `upstream` next on the source.

    A group that is ahead of the mirror gets the end of what is mirrored: the offsets of a
    checkpoint always belong together, so nothing between them is skipped.

    Args:
        remote: The partition on the target.
        offsets: Its map.
    """
    mirrored = min(upstream, offsets.upstream_end)
    downstream = offsets.translate(mirrored)
    if isinstance(downstream, Untranslatable):
        return downstream
    return Checkpoint(
        group=group,
        partition=remote,
        upstream=mirrored,
        downstream=downstream,
        metadata=metadata,
    )


def is_news(checkpoint: Checkpoint, previous: Checkpoint | None) -> bool:
    """
    Whether it says more than the one before.

    A group that went back on the source goes back; one that did not never does.
    """
    return (
        previous is None
        or checkpoint.upstream < previous.upstream
        or checkpoint.downstream > previous.downstream
    )


def forward(
    checkpoints: Mapping[TopicPartition, Checkpoint], there: Mapping[TopicPartition, int]
) -> dict[TopicPartition, Checkpoint]:
    """
    Those that move a group on the target forward.

    Args:
        checkpoints: Of one group, by partition of the target.
        there: The group's offsets on the target; partitions without one are missing.
    """
    return {
        partition: checkpoint
        for partition, checkpoint in checkpoints.items()
        if there.get(partition, -1) < checkpoint.downstream
    }
