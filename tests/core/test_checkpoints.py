"""Which checkpoints are emitted, and which group offsets are synced."""

import pytest

from eos_mirror.core.checkpoints import (
    Beginning,
    Pair,
    beginning_of_map,
    beginning_of_syncs,
    differs,
    exact,
    forward,
    from_beginning,
    is_more_recent,
    joined,
    sparse,
    why_untranslated,
)
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


@pytest.mark.parametrize(
    ("log_start", "pair"),
    [(None, None), (300, None), (999, None), (1_000, Pair(1_000, 0)), (1_500, Pair(1_000, 0))],
)
def test_a_group_before_the_copy_starts_at_it_if_the_source_has_nothing_earlier(
    log_start: int | None, pair: Pair | None
) -> None:
    """It must not skip a record that the source still has and that was not mirrored."""
    assert from_beginning(Beginning(Pair(1_000, 0), is_first=True), log_start) == pair


def test_a_map_that_continues_an_older_copy_moves_no_group_to_its_beginning() -> None:
    """After `adopt` the copy has earlier records, which the group may not have read."""
    fresh, adopted = MapTail.empty(1_000, downstream=0), MapTail.empty(1_000, downstream=70)
    for tail in (fresh, adopted):
        tail.add([(1_002, 10)], tail.downstream_end or 0)
    start = beginning_of_map(OffsetMap([], fresh))
    assert from_beginning(start, 1_000) == Pair(1_000, 0)
    assert from_beginning(beginning_of_map(OffsetMap([], adopted)), 1_000) is None


def test_a_group_before_an_empty_copy_gets_its_end() -> None:
    """Everything had expired: the group reads every later record of the copy."""
    start = beginning_of_map(OffsetMap([], MapTail.empty(1_000, downstream=0)))
    assert from_beginning(start, 1_000) == Pair(1_000, 0)


def test_syncs_move_a_group_to_the_beginning_of_the_copy_only() -> None:
    """Before a later sync, the copy has records which the group may not have read."""
    assert from_beginning(beginning_of_syncs(SyncStore(Sync(10, 0)), 5), 10) == Pair(10, 0)
    assert from_beginning(beginning_of_syncs(SyncStore(Sync(10, 5)), 5), 10) is None


def test_the_reason_counts_what_the_group_would_skip() -> None:
    """The count begins at the log start if the group's next records have expired."""
    start = Beginning(Pair(1_000, 0), is_first=True)
    assert why_untranslated(HERE, 300, start, 0) == (
        "A.orders-0: records before offset 1000 were not mirrored (up to 700); the group is at 300"
    )
    assert "(up to 500)" in why_untranslated(HERE, 300, start, 500)
    later = Beginning(Pair(1_000, 70), is_first=False)
    assert why_untranslated(HERE, 300, later, None) == (
        "A.orders-0: offsets before 1000 cannot be translated; the group is at 300"
    )


def test_a_group_with_many_partitions_has_a_short_reason() -> None:
    """The first reasons are enough to act; the others are counted."""
    assert joined([]) == ""
    assert joined(["a", "b", "c"]) == "a; b; c"
    assert joined(["a", "b", "c", "d", "e"]) == "a; b; c; and 2 more partitions"


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


@pytest.mark.parametrize(
    ("upstream", "downstream"), [(10, 9), (10, 11), (11, 9), (11, 10), (9, 10)]
)
def test_an_exact_checkpoint_replaces_every_other_one(upstream: int, downstream: int) -> None:
    """Also one with a higher offset on the target: the topic may have been mirrored again."""
    assert differs(made(upstream, downstream), made(10, 10))
    assert differs(made(10, 10), None)
    assert not differs(made(10, 10), made(10, 10))


def test_groups_move_forward_only() -> None:
    """Group offsets only advance on the target; a partition without one gets the checkpoint."""
    checkpoints = {HERE: made(10, 10), THERE: made(10, 10, THERE)}
    assert forward(checkpoints, {}) == checkpoints
    assert forward(checkpoints, {HERE: 10, THERE: 9}) == {THERE: checkpoints[THERE]}
    assert forward(checkpoints, {HERE: 11, THERE: 12}) == {}
