"""Which checkpoints are written, and which groups are moved."""

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
    """100,000 upstream offsets with gaps: a hole now and then, a marker behind each transaction."""
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
    """Both offsets belong together."""
    tail = MapTail.empty(0)
    tail.add([(0, 10)], 100)
    assert exact(OffsetMap([], tail), 25) == Pair(10, 110)


def test_what_the_map_does_not_know_has_no_checkpoint() -> None:
    """Nothing mirrored yet, or before the start."""
    tail = MapTail.empty(5)
    assert exact(OffsetMap([], tail), 7) is None
    tail.add([(5, 10)], 0)
    assert exact(OffsetMap([], tail), 4) is None


def test_syncs_are_never_ahead_of_the_copy() -> None:
    """A sync names the offset of the next record, which may not be there yet."""
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
    """As MirrorMaker 2 has it."""
    assert is_more_recent(made(upstream, downstream), made(10, 10)) is news
    assert is_more_recent(made(upstream, downstream), None)


def test_groups_move_forward_only() -> None:
    """A partition that the group never committed on the target is forward."""
    checkpoints = {HERE: made(10, 10), THERE: made(10, 10, THERE)}
    assert forward(checkpoints, {}) == checkpoints
    assert forward(checkpoints, {HERE: 10, THERE: 9}) == {THERE: checkpoints[THERE]}
    assert forward(checkpoints, {HERE: 11, THERE: 12}) == {}
