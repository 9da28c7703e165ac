"""Ranges cover everything without gaps, and are compared by digests."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eos_mirror.audit.digest import Fold, Folder
from eos_mirror.audit.examine import Matched, examine_range, fold_range, match_range
from eos_mirror.audit.ranges import Range, sample_ranges, split_range
from eos_mirror.core.offset_map import PENDING, Run, Untranslatable
from eos_mirror.core.records import TopicPartition
from eos_mirror.kafka.ranges import Columns
from tests.audit.in_memory_log import CREATED, InMemoryLog

SOURCE, TARGET = TopicPartition("orders", 0), TopicPartition("A.orders", 0)
APPENDED = (2, 1_700_000_000_000)
RUNS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(1, 5)), min_size=1, max_size=6
)
"""Upstream gap, downstream gap and length of each run."""


def laid_out(gaps: list[tuple[int, int, int]]) -> list[Run]:
    """Return consecutive runs with these gaps."""
    runs: list[Run] = []
    upstream = downstream = 0
    for before, below, length in gaps:
        runs.append(Run(upstream + before, downstream + below, length))
        upstream, downstream = runs[-1].upstream_end, runs[-1].downstream_end
    return runs


def whole(runs: list[Run]) -> Range:
    """Return the range from zero to one offset after the last run."""
    return Range(
        source=SOURCE,
        start=0,
        end=runs[-1].upstream_end + 1,
        target=TARGET,
        target_start=0,
        target_end=runs[-1].downstream_end + 1,
    )


def images(runs: list[Run]) -> dict[int, int]:
    """Return the downstream offset of every record by its upstream offset."""
    return {run.upstream + i: run.downstream + i for run in runs for i in range(run.length)}


@given(RUNS, st.integers(1, 12))
def test_each_record_and_its_copy_are_in_the_same_part(
    gaps: list[tuple[int, int, int]], most: int
) -> None:
    """The parts cover both sides without gap or overlap, within the maximum length."""
    runs = laid_out(gaps)
    copies = images(runs)

    def translate(upstream: int) -> int:
        later = [copy for offset, copy in copies.items() if offset >= upstream]
        return min(later, default=runs[-1].downstream_end)

    limits = whole(runs)
    parts = list(split_range(limits, translate, max_offsets=most))
    assert (parts[0].start, parts[0].target_start) == (limits.start, limits.target_start)
    assert (parts[-1].end, parts[-1].target_end) == (limits.end, limits.target_end)
    for one, following in pairwise(parts):
        assert (one.end, one.target_end) == (following.start, following.target_start)
    for part in parts:
        assert 0 < part.end - part.start <= most
        assert all(
            (part.start <= upstream < part.end) == (part.target_start <= copy < part.target_end)
            for upstream, copy in copies.items()
        )


def test_a_target_that_lost_its_end_has_empty_ranges_there() -> None:
    """A target that lost its end has empty ranges there; nothing after its end is read."""
    limits = replace(whole([Run(0, 0, 9)]), target_end=4)
    parts = list(split_range(limits, lambda upstream: upstream, max_offsets=3))
    assert [(part.target_start, part.target_end) for part in parts] == [
        (0, 2),
        (2, 4),
        (4, 4),
        (4, 4),
    ]


def test_a_cut_that_the_map_does_not_know_is_not_guessed() -> None:
    """A border that the map cannot translate is an error."""

    def unknown(_: int) -> Untranslatable:
        return PENDING

    with pytest.raises(ValueError, match="does not know 5"):
        list(split_range(whole([Run(0, 0, 9)]), unknown, max_offsets=5))


def test_a_copy_is_laid_beside_its_source_however_it_is_read() -> None:
    """Matching does not depend on chunks and markers, and detects two swapped records."""
    source = InMemoryLog({i: b"%d" % i for i in range(10)}, chunk=3)
    exact = InMemoryLog({2 * i: b"%d" % i for i in range(10)}, chunk=4)
    swapped = InMemoryLog({2 * i: b"%d" % (i ^ (i > 5)) for i in range(10)}, chunk=2)
    where = Range(source=SOURCE, start=0, end=10, target=TARGET, target_start=0, target_end=20)
    assert match_range(where, source, exact) == Matched(equal=True, count=10)
    assert match_range(where, source, swapped) == Matched(equal=False, count=6)


@pytest.mark.parametrize(
    ("original", "copy", "count"),
    [
        (range(10), range(9), 9),
        (range(9), range(10), 9),
        (range(1, 10), range(10), 0),
        (range(0), range(1), 0),
        (range(1), range(0), 0),
    ],
)
def test_a_record_that_only_one_side_has_is_seen(original: range, copy: range, count: int) -> None:
    """A record that only one side has is detected, at either end and beside an empty side."""
    source, target = (InMemoryLog({i: b"%d" % i for i in one}, chunk=3) for one in (original, copy))
    where = Range(source=SOURCE, start=0, end=10, target=TARGET, target_start=0, target_end=10)
    assert match_range(where, source, target) == Matched(equal=False, count=count)


def test_nothing_is_equal_to_nothing() -> None:
    """Two ranges without visible records are equal, for example with aborted records only."""
    where = Range(source=SOURCE, start=0, end=10, target=TARGET, target_start=0, target_end=10)
    assert match_range(where, InMemoryLog({}), InMemoryLog({})) == Matched(equal=True, count=0)


@pytest.mark.parametrize("field", ["timestamps", "keys", "values", "headers"])
def test_each_field_is_compared(field: str) -> None:
    """Each field is compared; null is not empty, and the order of headers counts."""
    others: dict[str, list[object]] = {
        "timestamps": [(1, 1), (1, 3)],
        "keys": [b"k", b""],
        "values": [b"v", b""],
        "headers": [None, [("b", b""), ("a", None)]],
    }
    same = Columns(
        offsets=[0, 1],
        timestamps=[(1, 1), (1, 2)],
        keys=[b"k", None],
        values=[b"v", None],
        headers=[None, [("a", None), ("b", b"")]],
    )
    other = replace(same, **{field: others[field]})  # type: ignore[arg-type]
    where = Range(source=SOURCE, start=0, end=2, target=TARGET, target_start=0, target_end=2)
    assert match_range(where, Page(same), Page(same)) == Matched(equal=True, count=2)
    assert match_range(where, Page(same), Page(other)) == Matched(equal=False, count=0)


class Page:
    """A reader of one chunk."""

    def __init__(self, chunk: Columns) -> None:
        self.chunk = chunk

    def read(self, _partition: TopicPartition, _start: int, _end: int) -> Iterator[Columns]:
        """Yield the chunk; see `examine.Reader`."""
        yield self.chunk


def test_a_fold_leaves_no_trace_of_chunks_and_offsets() -> None:
    """A copy with markers between its records has an equal fold; one with swapped records not."""
    source = InMemoryLog({i: b"%d" % i for i in range(10)})
    exact = InMemoryLog({2 * i: b"%d" % i for i in range(10)})
    swapped = InMemoryLog({2 * i: b"%d" % (i ^ 1) for i in range(10)})
    where = Range(source=SOURCE, start=0, end=10, target=TARGET, target_start=0, target_end=20)
    folded = fold_range(where, source, exact, Folder(12345))
    assert folded.equal
    assert folded.source.count == 10
    assert not fold_range(where, source, swapped, Folder(12345)).equal


def test_a_fold_sees_only_its_range() -> None:
    """A fold covers only the records of its range."""
    source = InMemoryLog({i: b"%d" % i for i in range(10)})
    where = Range(source=SOURCE, start=3, end=3, target=TARGET, target_start=3, target_end=5)
    folded = fold_range(where, source, source, Folder(12345))
    assert folded.source == Fold()
    assert folded.target.count == 2


def test_a_comparison_counts_what_matches() -> None:
    """A comparison counts matching records, and lists the others with both offsets."""
    source = InMemoryLog({i: b"%d" % i for i in range(10)})
    copy = InMemoryLog({2 * i: b"%d" % i for i in range(10) if i != 4})
    where = Range(source=SOURCE, start=0, end=10, target=TARGET, target_start=0, target_end=20)
    comparison = examine_range(where, source, copy)
    assert comparison.matched == 9
    assert [(odd.offset, odd.gap.downstream_next) for odd in comparison.unseen] == [(4, 10)]


@pytest.mark.parametrize(
    ("original", "copy", "with_timestamps", "equal"),
    [
        (APPENDED, CREATED, True, True),
        (CREATED, APPENDED, True, False),
        (CREATED, (1, 1_700_000_000_001), True, False),
        (CREATED, (2, 1_800_000_000_000), False, True),
    ],
)
def test_a_timestamp_is_compared_with_what_the_mirror_writes(
    original: tuple[int, int], copy: tuple[int, int], *, with_timestamps: bool, equal: bool
) -> None:
    """
    A timestamp is compared with the one that the mirror writes.

    LogAppendTime is copied as CreateTime. If the target stamps records itself, times are ignored.
    """
    where = Range(
        source=SOURCE,
        start=0,
        end=1,
        target=TARGET,
        target_start=0,
        target_end=1,
        timestamps=with_timestamps,
    )
    source, target = InMemoryLog({0: b"x"}, stamp=original), InMemoryLog({0: b"x"}, stamp=copy)
    assert fold_range(where, source, target, Folder(12345)).equal == equal
    assert match_range(where, source, target).equal == equal
    assert examine_range(where, source, target).matched == equal


@pytest.mark.parametrize(("fraction", "count"), [(1.0, 10), (0.5, 5), (0.11, 2), (0.0001, 1)])
def test_a_sample_is_a_part_of_the_ranges_in_their_order(fraction: float, count: int) -> None:
    """A sample has its share of the ranges in their order, and at least one."""
    parts = list(split_range(whole([Run(0, 0, 99)]), lambda upstream: upstream, max_offsets=10))
    sampled = sample_ranges(parts, fraction)
    assert len(sampled) == count
    assert sampled == [part for part in parts if part in sampled]


def test_which_ranges_are_sampled_is_new_for_every_proof() -> None:
    """The sampled ranges are random, so that changes cannot hide in the others."""
    parts = list(split_range(whole([Run(0, 0, 100)]), lambda upstream: upstream, max_offsets=1))
    assert any(sample_ranges(parts, 0.1) != sample_ranges(parts, 0.1) for _ in range(10))
