"""How much there is to compare, and in how many pieces: said before it begins."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from eos_mirror.audit.extent import Standing, plan_extent
from eos_mirror.audit.proven import Proven

RANGE_BYTES = 128 * 2**20
SAMPLES = 16
"""Ranges of a sample are so many times shorter: more places are looked at."""

LEAST_OFFSETS, MOST_OFFSETS = 20_000, 1_000_000
"""A shorter range costs more to begin than to read; a longer one too much memory to examine."""

KEY_OFFSETS = 1_000_000
"""Of a compacted partition; what a task remembers of each takes some 300 bytes."""

BYTES_PER_SLOT_S = 50e6
"""A guess, for the minutes of a plan: fetched, decompressed, compared (docs/benchmarks.md)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPlan:
    """
    One topic.

    Attributes:
        offsets_count: Of the source, records or not, without what is proven.
        record_bytes: Of a sample, on the average.
        max_offsets: Of a range, or of a part of the keys.
        tasks_count: If nothing differs.
        sample: Part of it that is compared.
    """

    standings: Sequence[Standing]
    offsets_count: int
    record_bytes: float
    max_offsets: int
    tasks_count: int
    sample: float

    @property
    def is_compacted(self) -> bool:
        """Whether it is compared key by key."""
        return any(one.compaction is not None for one in self.standings)

    @property
    def size_bytes(self) -> float:
        """Of both sides, about: uncompressed, what is compared."""
        return 2 * self.record_bytes * self.offsets_count * self.sample


def plan_topic(
    standings: Sequence[Standing],
    *,
    record_bytes: float,
    sample: float = 1.0,
    proven: Proven | None = None,
) -> TopicPlan:
    """
    Cut a topic by size.

    Args:
        proven: Is not compared again; a compacted topic is.
        sample: Part of it to compare; a compacted topic is compared whole, because a record is
            explained by another one anywhere.

    Raises:
        ValueError: An offset map does not know what is left of its partition.
    """
    is_compacted = any(one.compaction is not None for one in standings)
    known = Proven() if proven is None or is_compacted else proven
    lengths = [
        piece.end - piece.start
        for one in standings
        for piece in known.rest(plan_extent(one).whole, one.topics)
    ]
    wanted = int(RANGE_BYTES / max(record_bytes, 1) / (SAMPLES if sample < 1 else 1))
    max_offsets = max(LEAST_OFFSETS, min(wanted, MOST_OFFSETS))
    if is_compacted:
        max_offsets, sample = KEY_OFFSETS, 1.0
    return TopicPlan(
        standings=standings,
        offsets_count=sum(lengths),
        record_bytes=record_bytes,
        max_offsets=max_offsets,
        tasks_count=sum(
            max(1, math.ceil(max(1, -(-length // max_offsets)) * sample)) for length in lengths
        ),
        sample=sample,
    )


def minutes_of(plans: Sequence[TopicPlan], *, slots: int) -> float:
    """How long it may take."""
    return sum(one.size_bytes for one in plans) / (BYTES_PER_SLOT_S * max(1, slots)) / 60
