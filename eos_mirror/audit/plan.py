"""Plans how much there is to compare, and in how many ranges, before it begins."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from eos_mirror.audit.extent import PartitionSnapshot, plan_extent
from eos_mirror.audit.proven import Proven

RANGE_BYTES = 128 * 2**20
SAMPLES = 16
"""Ranges of a sample are this many times shorter, so that it covers more places."""

LEAST_OFFSETS, MOST_OFFSETS = 20_000, 1_000_000
"""A shorter range costs more to start than to read; a longer one takes too much memory."""

KEY_OFFSETS = 1_000_000
"""For a compacted partition. A task keeps about 300 bytes for each offset."""

BYTES_PER_SLOT_S = 50e6
"""An estimate for the minutes of a plan: fetch, decompress, compare (docs/benchmarks.md)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPlan:
    """
    The plan for one topic.

    Attributes:
        offsets_count: Unproven offsets of the source, whether or not they hold a record.
        record_bytes: Average size of some records.
        max_offsets: Maximum length of a range, or of a part of the keys.
        tasks_count: Number of tasks if nothing differs.
        sample: Share of the topic that is compared.
    """

    snapshots: Sequence[PartitionSnapshot]
    offsets_count: int
    record_bytes: float
    max_offsets: int
    tasks_count: int
    sample: float

    @property
    def is_compacted(self) -> bool:
        """Return whether the topic is compared key by key."""
        return any(one.compaction is not None for one in self.snapshots)

    @property
    def size_bytes(self) -> float:
        """Estimate the uncompressed size of what is compared, of both sides together."""
        return 2 * self.record_bytes * self.offsets_count * self.sample


def plan_topic(
    snapshots: Sequence[PartitionSnapshot],
    *,
    record_bytes: float,
    sample: float = 1.0,
    proven: Proven | None = None,
) -> TopicPlan:
    """
    Plan one topic: cut it into ranges by size.

    Args:
        proven: Ranges that are not compared again, unless the topic is compacted.
        sample: Share to compare. A compacted topic is always compared as a whole, because a record
            may be explained by another one anywhere.

    Raises:
        ValueError: An offset map does not know the remaining records of its partition.
    """
    is_compacted = any(one.compaction is not None for one in snapshots)
    known = Proven() if proven is None or is_compacted else proven
    lengths = [
        piece.end - piece.start
        for one in snapshots
        for piece in known.rest(plan_extent(one).whole, one.topics)
    ]
    wanted = int(RANGE_BYTES / max(record_bytes, 1) / (SAMPLES if sample < 1 else 1))
    max_offsets = max(LEAST_OFFSETS, min(wanted, MOST_OFFSETS))
    if is_compacted:
        max_offsets, sample = KEY_OFFSETS, 1.0
    return TopicPlan(
        snapshots=snapshots,
        offsets_count=sum(lengths),
        record_bytes=record_bytes,
        max_offsets=max_offsets,
        tasks_count=sum(
            max(1, math.ceil(max(1, -(-length // max_offsets)) * sample)) for length in lengths
        ),
        sample=sample,
    )


def minutes_of(plans: Sequence[TopicPlan], *, slots: int) -> float:
    """Estimate how long the proof takes."""
    return sum(one.size_bytes for one in plans) / (BYTES_PER_SLOT_S * max(1, slots)) / 60
