"""The size and duration of a plan depend on the bytes and keys that it covers."""

from dataclasses import replace

import pytest

from eos_mirror.audit.compacted import Compaction
from eos_mirror.audit.extent import PartitionSnapshot
from eos_mirror.audit.plan import (
    KEY_OFFSETS,
    LEAST_OFFSETS,
    MOST_OFFSETS,
    RANGE_BYTES,
    minutes_of,
    plan_topic,
)
from eos_mirror.core.offset_map import MapTail, OffsetMap
from eos_mirror.core.records import TopicPartition


def snapshot(partition: int, count: int) -> PartitionSnapshot:
    """Return a partition with this many records, all mirrored."""
    tail = MapTail.empty(0, downstream=0)
    if count:
        tail.add([(0, count)], 0)
    return PartitionSnapshot(
        source=TopicPartition("orders", partition),
        source_start=0,
        target=TopicPartition("A.orders", partition),
        target_start=0,
        target_end=count,
        source_log_end=count,
        target_log_end=count,
        offsets=OffsetMap([], tail),
    )


@pytest.mark.parametrize(
    ("record_bytes", "max_offsets"),
    [(1, MOST_OFFSETS), (1_000, RANGE_BYTES // 1_000), (1_000_000, LEAST_OFFSETS)],
)
def test_ranges_are_sized_by_bytes(record_bytes: float, max_offsets: int) -> None:
    """
    Ranges are sized by bytes, within bounds.

    Starting a tiny range costs more than reading it, and a huge one needs too much memory.
    """
    plan = plan_topic([snapshot(0, 5_000_000), snapshot(1, 0)], record_bytes=record_bytes)
    assert plan.max_offsets == max_offsets
    assert plan.tasks_count == -(-5_000_000 // max_offsets) + 1
    assert plan.size_bytes == 2 * 5_000_000 * record_bytes


def test_a_compacted_topic_is_cut_by_keys() -> None:
    """A compacted topic is split by keys, whatever the size of its records."""
    compacted = replace(snapshot(0, 2_500_000), compaction=Compaction(source=True, target=True))
    plan = plan_topic([compacted], record_bytes=10)
    assert plan.is_compacted
    assert (plan.max_offsets, plan.tasks_count) == (KEY_OFFSETS, 3)


def test_minutes_shrink_with_slots() -> None:
    """Twice the slots need half the time; no slots count as one."""
    plans = [plan_topic([snapshot(0, 1_000_000)], record_bytes=3_000)]
    assert (
        minutes_of(plans, slots=1) == 2 * minutes_of(plans, slots=2) == minutes_of(plans, slots=0)
    )
    assert minutes_of(plans, slots=1) == pytest.approx(2)


def test_a_sample_is_planned_in_many_short_ranges() -> None:
    """
    A sample covers its share of the offsets, in many short ranges.

    A compacted topic is always compared completely.
    """
    whole = plan_topic([snapshot(0, 5_000_000)], record_bytes=1_000)
    plan = plan_topic([snapshot(0, 5_000_000)], record_bytes=1_000, sample=0.1)
    assert plan.max_offsets <= whole.max_offsets / 6
    assert plan.size_bytes == pytest.approx(whole.size_bytes / 10)
    ranges = -(-5_000_000 // plan.max_offsets)
    assert plan.tasks_count == -(-ranges // 10)

    compacted = replace(snapshot(0, 2_500_000), compaction=Compaction(source=True, target=True))
    assert plan_topic([compacted], record_bytes=10, sample=0.1).tasks_count == 3
