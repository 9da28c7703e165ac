"""Which checkpoints are emitted, and which group offsets are synced."""

import pytest

from eos_mirror.core.checkpoints import Pair, exact, forward, is_more_recent, sparse
from eos_mirror.core.internal_records import Checkpoint
from eos_mirror.core.offset_map import MapTail, OffsetMap
from eos_mirror.core.offset_syncs import Sync, SyncStore
from eos_mirror.core.records import TopicPartition

HERE, THERE = TopicPartition("A.orders", 0), TopicPartition("A.orders", 1)


def made(upstream: int, downstream: int, partition: TopicPartition = HERE) -> Checkpoint:
    return Checkpoint(
        group="readers", partition=partition, upstream=upstream, downstream=downstream
    )


def test_translation_agrees_with_the_records_for_every_offset() -> None:
    """Translation is exact for 100,000 upstream offsets with gaps and transaction markers."""
    tail, upstreams, downstream = MapTail.empty(0), [], 0
    images: dict[int, int] = {}
    segments = []
    for first in range(0, 100_000, 100):
        kept = [u for u in range(first, first + 99) if u % 7 and (u // 1_000) % 3 != 2]
        for u in kept:
            images[u] = downstream
            tail.add([(u, 1)], downstream)
            downstream += 1
        tail.advance(first + 100)
        downstream += 1
        upstreams += kept
        if tail.needs_spill():
            before = tail.freeze()
            tail.spill()
            segments.append(before)
    offsets = OffsetMap(segments, tail)
    expected = downstream - 1
    for upstream in reversed(range(100_001)):
        expected = images.get(upstream, expected)
        assert exact(offsets, upstream) == Pair(upstream, expected)


def test_a_group_ahead_of_the_mirror_gets_its_end() -> None:
    """A group ahead of the mirror gets a checkpoint at the end of the map, on both sides."""
    tail = MapTail.empty(0)
    tail.add([(0, 10)], 100)
    assert exact(OffsetMap([], tail), 25) == Pair(10, 110)


def test_what_the_map_does_not_know_has_no_checkpoint() -> None:
    """An offset before the start, or of a partition without mirrored records, has no checkpoint."""
    tail = MapTail.empty(5)
    assert exact(OffsetMap([], tail), 7) is None
    tail.add([(5, 10)], 0)
    assert exact(OffsetMap([], tail), 4) is None


def test_syncs_are_never_ahead_of_the_copy() -> None:
    """A checkpoint never exceeds the end of the copy, although a sync may name a later record."""
    store = SyncStore(Sync(10, 100))
    assert sparse(store, 100, 10) == Pair(10, 100)
    assert sparse(store, 100, 15) == Pair(15, 100)
    assert sparse(store, 130, 15) == Pair(15, 101)
    assert sparse(store, 130, 9) is None


@pytest.mark.parametrize(
    ("upstream", "downstream", "news"),
    [(10, 10, False), (11, 10, False), (11, 11, True), (9, 9, True), (9, 10, True), (10, 9, False)],
)
def test_news_is_forward_on_the_target_or_back_on_the_source(
    upstream: int, downstream: int, news: bool
) -> None:
    """As in MirrorMaker 2, a checkpoint is newer if the target advances or the source rewinds."""
    assert is_more_recent(made(upstream, downstream), made(10, 10)) is news
    assert is_more_recent(made(upstream, downstream), None)


def test_groups_move_forward_only() -> None:
    """Group offsets only advance on the target; a partition without one gets the checkpoint."""
    checkpoints = {HERE: made(10, 10), THERE: made(10, 10, THERE)}
    assert forward(checkpoints, {}) == checkpoints
    assert forward(checkpoints, {HERE: 10, THERE: 9}) == {THERE: checkpoints[THERE]}
    assert forward(checkpoints, {HERE: 11, THERE: 12}) == {}
