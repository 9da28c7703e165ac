"""
Which checkpoints are worth writing, and which groups on the target are moved.

Source: Kafka's MirrorCheckpointTask (KIP-382, KIP-545); what differs is said where it does.
"""

from collections.abc import Mapping
from typing import NamedTuple

from eos_mirror.core.internal_records import Checkpoint
from eos_mirror.core.offset_map import OffsetMap, Untranslatable
from eos_mirror.core.offset_syncs import UNTRANSLATABLE, SyncStore
from eos_mirror.core.records import TopicPartition


class Pair(NamedTuple):
    """Offsets that belong together: nothing between them is skipped."""

    upstream: int
    downstream: int


def exact(offsets: OffsetMap, upstream: int) -> Pair | None:
    """
    Where a group goes on that would read `upstream` next on the source; None if nobody knows.

    A group that is ahead of the mirror gets the end of what is mirrored.
    """
    mirrored = min(upstream, offsets.upstream_end)
    downstream = offsets.translate(mirrored)
    return None if isinstance(downstream, Untranslatable) else Pair(mirrored, downstream)


def sparse(syncs: SyncStore, end: int, upstream: int) -> Pair | None:
    """
    The same from offset syncs: at most so far, and the coarser the farther behind.

    Args:
        end: Of the copy. A sync notes the offset before which everything is mirrored, so what
            it names may not be there yet.
    """
    downstream = syncs.translate(upstream)
    return None if downstream == UNTRANSLATABLE else Pair(upstream, min(downstream, end))


def is_more_recent(checkpoint: Checkpoint, previous: Checkpoint | None) -> bool:
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
