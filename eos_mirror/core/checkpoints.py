"""
Decides which checkpoints are emitted, and which group offsets are synced to the target.

Source: Kafka's MirrorCheckpointTask (KIP-382, KIP-545); differences are noted where they are.
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
    Return where a group resumes that would read `upstream` next on the source; None if unknown.

    A group that is ahead of the mirror gets the end of what is mirrored.
    """
    mirrored = min(upstream, offsets.upstream_end)
    downstream = offsets.translate(mirrored)
    return None if isinstance(downstream, Untranslatable) else Pair(mirrored, downstream)


def sparse(syncs: SyncStore, end: int, upstream: int) -> Pair | None:
    """
    Return the same from offset syncs.

    It is never too far ahead, and coarser the more the group lags.

    Args:
        end: End of the copy. A sync holds the offset before which everything is mirrored, so the
            record at that offset may not exist yet.
    """
    downstream = syncs.translate(upstream)
    return None if downstream == UNTRANSLATABLE else Pair(upstream, min(downstream, end))


def is_more_recent(checkpoint: Checkpoint, previous: Checkpoint | None) -> bool:
    """
    Return True if the checkpoint must replace the previous one.

    If a group rewinds on the source, its checkpoint rewinds, too. Otherwise it never goes back.
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
    Return the checkpoints that advance a group's offsets on the target.

    Args:
        checkpoints: Checkpoints of one group, by target partition.
        there: The group's offsets on the target; partitions without one are missing.
    """
    return {
        partition: checkpoint
        for partition, checkpoint in checkpoints.items()
        if there.get(partition, -1) < checkpoint.downstream
    }
