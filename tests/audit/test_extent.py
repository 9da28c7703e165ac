"""The extent of a comparison while both logs move: all that can be compared, and no more."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eos_mirror.audit.extent import (
    Cause,
    Extent,
    OffsetWindow,
    PartitionSnapshot,
    Unproven,
    plan_extent,
)
from eos_mirror.core.offset_map import MapTail, OffsetMap
from eos_mirror.core.records import TopicPartition

SOURCE, TARGET = TopicPartition("orders", 0), TopicPartition("A.orders", 0)
START, RECORDS = 100, 10
ALL = OffsetWindow()
COPIES = [(100 + i, i) for i in range(4)] + [(106 + i, 5 + i) for i in range(6)]
"""Two transactions: upstream 104 and 105 are not records, downstream 4 and 11 are markers."""


def offset_map() -> OffsetMap:
    """Return the map of COPIES."""
    tail = MapTail.empty(START, downstream=0)
    tail.add([(100, 4)], 0)
    tail.add([(106, 6)], 5)
    return OffsetMap([], tail)


def extent(
    *,
    source_start: int = 0,
    target_start: int = 0,
    target_end: int = 12,
    source_log_end: int = 200,
    target_log_end: int = 12,
    window: OffsetWindow = ALL,
) -> Extent:
    """Return the extent of a partition with these starts and ends."""
    return plan_extent(
        PartitionSnapshot(
            source=SOURCE,
            source_start=source_start,
            target=TARGET,
            target_start=target_start,
            target_end=target_end,
            source_log_end=source_log_end,
            target_log_end=max(target_end, target_log_end),
            offsets=offset_map(),
            window=window,
        )
    )


def unproven(start: int, end: int, cause: Cause) -> Unproven:
    """Return an unproven range of the source partition."""
    return Unproven(partition=SOURCE, start=start, end=end, cause=cause)


def test_all_that_was_mirrored_is_compared() -> None:
    """Everything from the start of the map to its end is compared, and nothing before it."""
    found = extent()
    assert (found.whole.start, found.whole.end) == (100, 112)
    assert (found.whole.target_start, found.whole.target_end) == (0, 12)
    assert found.unproven == []


def test_what_expired_on_the_source_is_named() -> None:
    """Records that expired on the source are unproven; their copies are not a difference."""
    found = extent(source_start=103)
    assert (found.whole.start, found.whole.target_start) == (103, 3)
    assert found.unproven == [unproven(100, 103, Cause.EXPIRED_ON_SOURCE)]


def test_what_expired_on_the_target_is_named() -> None:
    """Records that expired on the target are unproven; they are not missing."""
    found = extent(target_start=6)
    assert (found.whole.start, found.whole.target_start) == (107, 6)
    assert found.unproven == [unproven(100, 107, Cause.EXPIRED_ON_TARGET)]


@pytest.mark.parametrize("copies", [[], [(START + 4, 6)]], ids=["none", "some"])
def test_records_without_a_copy_before_the_first_copy_have_not_expired(
    copies: list[tuple[int, int]],
) -> None:
    """A filter drops them, or all records: they are compared with nothing."""
    tail = MapTail.empty(START, downstream=7)
    if copies:
        tail.add(copies, 7)
    tail.advance(START + 10)
    found = plan_extent(
        PartitionSnapshot(
            source=SOURCE, source_start=0, target=TARGET, target_start=7, target_end=13,
            source_log_end=200, target_log_end=13, offsets=OffsetMap([], tail),
        )
    )  # fmt: skip
    assert (found.whole.start, found.whole.end) == (START, START + 10)
    assert (found.whole.target_start, found.whole.target_end) == (7, 13)
    assert found.unproven == []


def test_both_may_have_expired() -> None:
    """If records expired on both sides, each upstream offset has one cause."""
    found = extent(source_start=102, target_start=6)
    assert (found.whole.start, found.whole.target_start) == (107, 6)
    assert found.unproven == [
        unproven(100, 102, Cause.EXPIRED_ON_SOURCE),
        unproven(102, 107, Cause.EXPIRED_ON_TARGET),
    ]


def test_everything_may_have_expired() -> None:
    """If everything expired, nothing is compared and no record is missing."""
    found = extent(source_start=500)
    assert found.whole.start == found.whole.end == 112
    assert found.unproven == [unproven(100, 112, Cause.EXPIRED_ON_SOURCE)]


@pytest.mark.parametrize(
    ("window", "upstream", "downstream"),
    [
        (OffsetWindow(start=0, end=1_000), (100, 112), (0, 13)),
        (OffsetWindow(start=102, end=108), (102, 108), (2, 7)),
        (OffsetWindow(start=104, end=105), (104, 105), (5, 5)),
        (OffsetWindow(start=106), (106, 112), (5, 13)),
        (OffsetWindow(end=100), (100, 100), (0, 0)),
        (OffsetWindow(start=112), (112, 112), (13, 13)),
        (OffsetWindow(start=500, end=600), (112, 112), (13, 13)),
        (OffsetWindow(start=108, end=102), (108, 108), (7, 7)),
    ],
)
def test_only_what_is_wanted_is_compared(
    window: OffsetWindow, upstream: tuple[int, int], downstream: tuple[int, int]
) -> None:
    """
    Only the window is compared, between the exact copies of its borders.

    Foreign records at the end of the target belong to the last part.
    """
    found = extent(target_end=13, window=window)
    assert (found.whole.start, found.whole.end) == upstream
    assert (found.whole.target_start, found.whole.target_end) == downstream


def test_what_nobody_wants_is_not_missed() -> None:
    """Records outside of the window are neither compared nor unproven."""
    found = extent(source_start=103, window=OffsetWindow(start=101, end=108))
    assert (found.whole.start, found.whole.end) == (103, 108)
    assert found.unproven == [unproven(101, 103, Cause.EXPIRED_ON_SOURCE)]


def test_what_is_committed_while_we_ask_is_left_out() -> None:
    """A transaction that is committed after the target's end was read is excluded, not missing."""
    found = extent(target_end=5)
    assert (found.whole.end, found.whole.target_end) == (106, 5)


def test_what_lies_behind_our_last_record_is_looked_at() -> None:
    """The range of the target includes foreign records after our last record."""
    assert extent(target_end=13).whole.target_end == 13


def test_what_the_target_has_lost_of_its_end_is_looked_for() -> None:
    """If the target's log ends before the map, which was read earlier, its end is missing."""
    found = extent(target_end=5, target_log_end=5)
    assert (found.whole.end, found.whole.target_end) == (112, 5)
    assert found.unproven == []


def test_what_the_source_has_lost_of_its_end_is_named() -> None:
    """Records that the source lost at its end are unproven."""
    found = extent(source_log_end=108)
    assert (found.whole.end, found.whole.target_end) == (108, 7)
    assert found.unproven == [unproven(108, 112, Cause.LOST_ON_SOURCE)]


def test_a_copy_that_holds_nothing_of_ours_yet_is_looked_at() -> None:
    """If a position was committed but no record, every record of the target is foreign."""
    empty = OffsetMap([], MapTail.empty(START, downstream=None))
    found = plan_extent(
        PartitionSnapshot(
            source=SOURCE,
            source_start=0,
            target=TARGET,
            target_start=0,
            target_end=3,
            source_log_end=200,
            target_log_end=3,
            offsets=empty,
        )
    )
    assert (found.whole.start, found.whole.end) == (100, 100)
    assert (found.whole.target_start, found.whole.target_end) == (0, 3)


@given(st.integers(90, 120), st.integers(0, 14), st.sampled_from([0, 5, 12, 14]))
def test_a_record_is_compared_with_its_copy_or_not_at_all(
    source_start: int, target_start: int, target_end: int
) -> None:
    """A record is compared only if its copy is, and both are if both still exist."""
    found = extent(
        source_start=source_start, target_start=min(target_start, target_end), target_end=target_end
    )
    whole = found.whole
    for upstream, downstream in COPIES:
        is_there = upstream >= source_start and target_start <= downstream < target_end
        compared = whole.start <= upstream < whole.end
        assert compared == (whole.target_start <= downstream < whole.target_end)
        assert compared or not is_there
        assert not compared or is_there
        named = [one for one in found.unproven if one.start <= upstream < one.end]
        assert len(named) + compared == (downstream < target_end)
