"""Segments of the offset map: their bytes are stable, and damage is always detected."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eos_mirror.core.offset_map import (
    MapTail,
    OffsetMap,
    Run,
    Segment,
    check_chain,
    decode_segment,
)
from eos_mirror.core.records import stretches


@pytest.mark.parametrize(
    ("offsets", "expected"),
    [
        ([], []),
        ([7], [(7, 1)]),
        ([7, 8, 9], [(7, 3)]),
        ([7, 9], [(7, 1), (9, 1)]),
        ([1, 2, 5, 6, 7, 9], [(1, 2), (5, 3), (9, 1)]),
        (range(10, 5000), [(10, 4990)]),
    ],
)
def test_stretches(offsets: Sequence[int], expected: list[tuple[int, int]]) -> None:
    """Offsets become (first, length) of each stretch without a gap."""
    assert stretches(offsets) == expected


@given(st.sets(st.integers(0, 300)))
def test_stretches_cover_exactly_the_offsets(offsets: set[int]) -> None:
    """Nothing is added or lost, and no two stretches touch."""
    pieces = stretches(sorted(offsets))

    assert [o for first, length in pieces for o in range(first, first + length)] == sorted(offsets)
    assert all(a + length < b for (a, length), (b, _) in pairwise(pieces))


def _small_tail() -> MapTail:
    tail = MapTail.empty(100)
    tail.add([(100, 3), (105, 2)], 0)
    tail.add([(107, 1)], 6)
    tail.advance(109)
    return tail


def _tail_with_replays() -> MapTail:
    tail = MapTail.empty(100)
    tail.add([(100, 3)], 0)
    tail.pass_over(5)
    return tail


def _tail_with_spilled_replays() -> MapTail:
    tail = _tail_with_replays()
    tail.spill()
    tail.add([(103, 3)], 5)
    return tail


GOLDEN: list[tuple[Callable[[], MapTail], str]] = [
    (lambda: MapTail.empty(0), "01000000000000"),
    (lambda: MapTail.empty(300, segment=2, downstream=0), "010200ac02010000"),
    (_small_tail, "01000264000300000302000200010101"),
    (_tail_with_replays, "020001640001000003010002"),
    (_tail_with_spilled_replays, "01010167060100000300"),
]


@pytest.mark.parametrize(("make", "expected"), GOLDEN)
def test_bytes_are_stable(make: Callable[[], MapTail], expected: str) -> None:
    """The bytes do not change, so that a new release reads the map of the old one."""
    assert make().encode().hex() == expected
    assert MapTail.decode(bytes.fromhex(expected)) == make()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("", "format missing"),
        ("03000000000000", "format 3, not 1 or 2"),
        ("0200000000000000", "another format than it needs"),
        ("020000000001000001000000", "run is empty"),
        ("02000000000200000102000001020000", "continues the one before"),
        ("0100000000ffffffffffffffff7f00", "says 9223372036854775807 runs"),
        ("01000000000100000000", "run is empty"),
        ("010000000002000001000001" + "00", "continues the one before"),
        ("0100000000" + "8000" + "00", "malformed at byte 5"),
        ("01" + "ff" * 30, "malformed at byte 1"),
        ("010000ffffffffffffffff7f000001", "largest offset"),
    ],
)
def test_malformed_bytes_are_refused_with_the_reason(data: str, reason: str) -> None:
    """A damaged map is refused when it is decoded, and the error names the damage."""
    with pytest.raises(ValueError, match=reason):
        decode_segment(bytes.fromhex(data))


@given(
    st.binary(max_size=60).map(lambda rest: b"\x01" + rest)
    | st.binary(max_size=60).map(lambda rest: b"\x02" + rest)
    | st.binary(max_size=20)
)
def test_random_bytes_are_refused_or_read_as_what_they_say(data: bytes) -> None:
    """Foreign bytes are refused, unless they are a valid encoding."""
    try:
        tail = MapTail.decode(data)
    except ValueError:
        return
    assert tail.encode() == data
    check_chain([], tail)


def _chain() -> tuple[list[Segment], MapTail]:
    """Return three segments of two runs and 11 offsets each, and an empty tail."""
    tail, segments = MapTail.empty(0, downstream=0), []
    for start in (0, 11, 22):
        tail.add([(start, 5), (start + 6, 5)], start)
        segments.append(decode_segment(tail.spill()[1]))
    return segments, tail


def _with_runs(segment: Segment, run: Run) -> Segment:
    return replace(segment, runs=(*segment.runs, run))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda s: [s[0], s[2]], "segment 0 is followed by 2"),
        (lambda s: [s[0], s[1]], "segment 1 is followed by 3"),
        (lambda s: [*s, s[1]], "segment 1 is followed by 1"),
        (lambda s: [s[0], replace(s[1], upstream_start=10), s[2]], "upstream overlap: .* at 11"),
        (lambda s: [s[0], replace(s[1], upstream_start=12), s[2]], "upstream gap: .* at 11"),
        (lambda s: [s[0], replace(s[1], downstream_start=9), s[2]], "downstream break"),
        (lambda s: [s[0], replace(s[1], downstream_start=None), s[2]], "downstream break"),
        (lambda s: [_with_runs(s[0], Run(3, 12, 1)), *s[1:]], "upstream overlap in .* 0: 3"),
        (lambda s: [*s[:2], _with_runs(s[2], Run(33, 28, 1))], "downstream not increasing"),
        (lambda s: [*s[:2], replace(s[2], upstream_end=30)], "up to 33, but ends at 30"),
        (lambda s: [replace(s[0], upstream_end=12), *s[1:]], "upstream overlap"),
    ],
)
def test_a_broken_chain_is_refused(
    change: Callable[[list[Segment]], list[Segment]], reason: str
) -> None:
    """Each kind of break is detected and named, and no map is built."""
    segments, tail = _chain()

    with pytest.raises(ValueError, match=reason):
        check_chain(change(segments), tail)
    with pytest.raises(ValueError, match=reason):
        OffsetMap(change(segments), tail)


def test_records_past_the_end_of_their_segment_are_refused() -> None:
    """A segment whose records exceed its end is refused."""
    tail = MapTail.empty(0)
    tail.add([(0, 5)], 0)
    tail.upstream_end = 4

    with pytest.raises(ValueError, match="records up to 5, but ends at 4"):
        check_chain([], tail)


RUNS = st.lists(
    st.tuples(*(st.integers(0, 3), st.integers(0, 3), st.integers(1, 5), st.integers(1, 4))),
    min_size=1,
    max_size=6,
)


@given(RUNS, st.integers(0, 9), st.integers(0, 5))
def test_records_with_several_copies_are_translated_to_the_first_one(
    pieces: list[tuple[int, int, int, int]], start: int, gap: int
) -> None:
    """Inside the copies of a record, the way back is the record: it repeats, and never skips."""
    runs: list[Run] = []
    upstream = downstream = start
    for before, below, length, copies in pieces:
        alike = before == below == 0 and runs and copies == runs[-1].copies
        upstream, downstream = upstream + before + bool(alike), downstream + below
        runs.append(Run(upstream, downstream, length, copies))
        upstream, downstream = runs[-1].upstream_end, runs[-1].downstream_end
    segment = Segment(
        number=0,
        commits=len(runs),
        upstream_start=start,
        upstream_end=upstream + gap,
        downstream_start=start,
        runs=tuple(runs),
        downstream_gap=gap,
    )

    data = segment.encode()
    assert decode_segment(data) == segment
    assert MapTail.decode(data).encode() == data
    offsets = OffsetMap([], MapTail.decode(data))
    for run in runs:
        for i in range(run.length):
            first = run.downstream + i * run.copies
            assert offsets.translate(run.upstream + i) == first
            for copy in range(first, first + run.copies):
                assert offsets.reverse(copy) == run.upstream + i
                assert offsets.original_of(copy) == run.upstream + i
    assert offsets.translate(upstream + gap) == segment.downstream_end
