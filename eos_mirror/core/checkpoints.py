"""
Decides which checkpoints are emitted, and which group offsets are synced to the target.

Source: Kafka's MirrorCheckpointTask (KIP-382, KIP-545); differences are noted where they are.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from eos_mirror.core.internal_records import Checkpoint
from eos_mirror.core.offset_map import OffsetMap, Untranslatable
from eos_mirror.core.offset_syncs import UNTRANSLATABLE, SyncStore
from eos_mirror.core.records import TopicPartition

NAMED = 3
"""Partitions that a reason names; a group may have hundreds."""


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


class Beginning(NamedTuple):
    """
    Where the known part of a copy begins.

    Attributes:
        at: The lowest upstream offset that can be translated, and its downstream offset.
        is_first: True if nothing was mirrored before it.
    """

    at: Pair
    is_first: bool


def beginning_of_map(offsets: OffsetMap) -> Beginning:
    """Return where an offset map begins: after `adopt`, the copy may hold earlier records."""
    start = offsets.upstream_start
    return Beginning(Pair(start, offsets.copy_of(start)), is_first=offsets.downstream_start == 0)


def beginning_of_syncs(syncs: SyncStore, end: int) -> Beginning:
    """Return where the known offset syncs begin; `end` is the end of the copy."""
    oldest = syncs.slots[-1]
    return Beginning(
        Pair(oldest.upstream, min(oldest.downstream, end)), is_first=oldest.downstream == 0
    )


def from_beginning(beginning: Beginning, log_start: int | None) -> Pair | None:
    """
    Return where a group resumes whose offset lies before the known part of the copy.

    That is the beginning of the copy, if the source has no earlier record either. Otherwise it
    is None: the group would skip records that it can still read on the source.

    Args:
        log_start: First offset of the source partition; None if unknown.
    """
    is_complete = log_start is not None and log_start >= beginning.at.upstream
    return beginning.at if beginning.is_first and is_complete else None


def why_untranslated(
    source: TopicPartition, upstream: int, beginning: Beginning, log_start: int | None
) -> str:
    """Return why a group at this offset, before the known part of the copy, has no translation."""
    first = beginning.at.upstream
    if not beginning.is_first or log_start is None:
        return f"{source}: offsets before {first} cannot be translated; the group is at {upstream}"
    count = first - max(upstream, log_start)
    return (
        f"{source}: records before offset {first} were not mirrored (up to {count}); "
        f"the group is at {upstream}"
    )


def joined(reasons: Sequence[str]) -> str:
    """Return the first reasons as one text, and the number of the others."""
    more = len(reasons) - NAMED
    return "; ".join([*reasons[:NAMED], *([f"and {more} more partitions"] if more > 0 else [])])


def is_more_recent(checkpoint: Checkpoint, previous: Checkpoint | None) -> bool:
    """
    Return True if a checkpoint from offset syncs must replace the previous one.

    If a group rewinds on the source, its checkpoint rewinds, too. Otherwise it never goes back.
    """
    return (
        previous is None
        or checkpoint.upstream < previous.upstream
        or checkpoint.downstream > previous.downstream
    )


def differs(checkpoint: Checkpoint, previous: Checkpoint | None) -> bool:
    """
    Return True if an exact checkpoint must replace the previous one.

    Its offsets belong together, whatever the previous one says: that one may be of an earlier copy
    of the topic, in which the same record had a higher offset.
    """
    return previous is None or (checkpoint.upstream, checkpoint.downstream) != (
        previous.upstream,
        previous.downstream,
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
