"""Which checkpoints are written, and which groups are moved."""

import pytest

from eos_mirror.core.checkpoints import forward, is_news, translated
from eos_mirror.core.internal_records import Checkpoint
from eos_mirror.core.offset_map import BEFORE_START, PENDING, MapTail, OffsetMap
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
    expected = offsets.downstream_end
    for upstream in reversed(range(100_001)):
        expected = images.get(upstream, expected)
        one = translated("readers", HERE, upstream, "noted", offsets)
        assert isinstance(one, Checkpoint)
        assert (one.upstream, one.downstream, one.metadata) == (upstream, expected, "noted")


def test_a_group_ahead_of_the_mirror_gets_its_end() -> None:
    """Both offsets belong together."""
    tail = MapTail.empty(0)
    tail.add([(0, 10)], 100)
    one = translated("readers", HERE, 25, "", OffsetMap([], tail))
    assert one == made(10, 110)


def test_what_the_map_does_not_know_has_no_checkpoint() -> None:
    """Nothing mirrored yet, or before the start."""
    tail = MapTail.empty(5)
    assert translated("readers", HERE, 7, "", OffsetMap([], tail)) is PENDING
    tail.add([(5, 10)], 0)
    assert translated("readers", HERE, 4, "", OffsetMap([], tail)) is BEFORE_START


@pytest.mark.parametrize(
    ("upstream", "downstream", "news"),
    [(10, 10, False), (11, 10, False), (11, 11, True), (9, 9, True), (9, 10, True), (10, 9, False)],
)
def test_news_is_forward_on_the_target_or_back_on_the_source(
    upstream: int, downstream: int, news: bool
) -> None:
    """As MirrorMaker 2 has it."""
    assert is_news(made(upstream, downstream), made(10, 10)) is news
    assert is_news(made(upstream, downstream), None)


def test_groups_move_forward_only() -> None:
    """A partition that the group never committed on the target is forward."""
    checkpoints = {HERE: made(10, 10), THERE: made(10, 10, THERE)}
    assert forward(checkpoints, {}) == checkpoints
    assert forward(checkpoints, {HERE: 10, THERE: 9}) == {THERE: checkpoints[THERE]}
    assert forward(checkpoints, {HERE: 11, THERE: 12}) == {}
