"""The offset map: exact in both directions, after any history, from its bytes alone."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eos_mirror.core.offset_map import (
    BEFORE_START,
    PENDING,
    MapTail,
    OffsetMap,
    Run,
    Segment,
    Untranslatable,
    check_chain,
    decode_segment,
)
from eos_mirror.core.records import stretches

Step = tuple[str, Any]

TRANSACTION = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 5)), min_size=1, max_size=4).map(
    lambda pieces: ("transaction", pieces)
)
STEP: st.SearchStrategy[Step] = st.one_of(
    TRANSACTION,
    TRANSACTION,
    st.tuples(st.just("abort"), st.integers(1, 6)),
    st.tuples(st.just("advance"), st.integers(0, 4)),
    st.tuples(st.just("replay"), st.integers(1, 4)),
    st.tuples(st.just("spill"), st.none()),
    st.tuples(st.just("restart"), st.none()),
)
HISTORY = st.lists(STEP, max_size=25)
START = st.integers(0, 200)
TARGET_END = st.none() | st.integers(0, 200)


@dataclass
class Mirror:
    """A partition that keeps its map as a task does, and also every pair of offsets in a dict."""

    tail: MapTail
    target_end: int
    end: int | None = None
    mapped: dict[int, int] = field(default_factory=dict)
    spilled: list[bytes] = field(default_factory=list)

    @classmethod
    def started(cls, next_upstream: int, target_end: int | None) -> "Mirror":
        """Return one before its first record; `target_end` None: a new, empty target partition."""
        tail = MapTail.empty(next_upstream, downstream=target_end)
        return cls(tail, target_end or 0, end=target_end)

    def play(self, history: Sequence[Step]) -> "Mirror":
        """Apply the steps; also spill where the tail needs it."""
        for step, argument in history:
            getattr(self, step)(argument)
            if self.tail.needs_spill():
                self.spill(None)
        return self

    def transaction(self, pieces: Sequence[tuple[int, int]]) -> None:
        """Add records with upstream gaps, which are dense on the target, and a commit marker."""
        upstream, first_downstream = self.tail.upstream_end, self.target_end
        offsets: list[int] = []
        for gap, length in pieces:
            offsets += range(upstream + gap, upstream + gap + length)
            upstream = offsets[-1] + 1
        self.mapped |= {u: first_downstream + i for i, u in enumerate(offsets)}
        self.tail.add(stretches(offsets), first_downstream)
        self.end = first_downstream + len(offsets)
        self.target_end = self.end + 1

    def abort(self, records: int) -> None:
        """Abort a transaction: its records and its marker stay in the log, invisible."""
        self.target_end += records + 1

    def replay(self, records: int) -> None:
        """Append records that have no place in the map, once something is known of the end."""
        if self.end is not None:
            self.end = self.target_end + records
            self.tail.pass_over(self.end)
            self.target_end = self.end + 1

    def advance(self, upstream: int) -> None:
        """Advance past control records of the source partition."""
        self.tail.advance(self.tail.upstream_end + upstream)

    def spill(self, _: None) -> None:
        """Spill the segment."""
        number, data = self.tail.spill()
        assert decode_segment(data).number == number
        self.spilled.append(data)

    def restart(self, _: None) -> None:
        """Restore the tail from its bytes alone."""
        restored = MapTail.decode(self.tail.encode())
        assert restored == self.tail
        self.tail = restored

    def segments(self) -> list[Segment]:
        """Return the spilled segments as a reader of the topic sees them."""
        return [decode_segment(data) for data in self.spilled]


@given(START, TARGET_END, HISTORY)
def test_translate_is_exact_for_every_offset(
    start: int, target_end: int | None, history: list[Step]
) -> None:
    """After any history, each upstream offset is translated as the definition says."""
    mirror = Mirror.started(start, target_end).play(history)
    offset_map = OffsetMap(mirror.segments(), mirror.tail)
    shadow = mirror.tail.upstream_end

    def expected(upstream: int) -> int | Untranslatable:
        if upstream < start:
            return BEFORE_START
        if upstream > shadow or (not mirror.mapped and target_end is None):
            return PENDING
        later = [d for u, d in mirror.mapped.items() if u >= upstream]
        if later:
            return min(later)
        return mirror.end or 0

    for upstream in range(max(0, start - 3), shadow + 4):
        assert offset_map.translate(upstream) == expected(upstream), upstream


@given(START, TARGET_END, HISTORY)
def test_a_translated_reader_sees_exactly_the_images_of_the_rest(
    start: int, target_end: int | None, history: list[Step]
) -> None:
    """A reader that resumes at the translated offset, either way, repeats and misses nothing."""
    mirror = Mirror.started(start, target_end).play(history)
    offset_map = OffsetMap(mirror.segments(), mirror.tail)

    for upstream in range(start, mirror.tail.upstream_end + 1):
        downstream = offset_map.translate(upstream)
        if isinstance(downstream, int):
            assert {u for u in mirror.mapped if u >= upstream} == {
                u for u, d in mirror.mapped.items() if d >= downstream
            }
    for downstream in range(target_end or 0, mirror.target_end + 1):
        back = offset_map.reverse(downstream)
        assert isinstance(back, int)
        assert {d for d in mirror.mapped.values() if d >= downstream} == {
            d for u, d in mirror.mapped.items() if u >= back
        }


@given(START, TARGET_END, HISTORY)
def test_reverse_is_exact_for_every_offset(
    start: int, target_end: int | None, history: list[Step]
) -> None:
    """Each downstream offset is translated back as the definition says."""
    mirror = Mirror.started(start, target_end).play(history)
    offset_map = OffsetMap(mirror.segments(), mirror.tail)

    for downstream in range(mirror.target_end + 4):
        later = [u for u, d in mirror.mapped.items() if d >= downstream]
        expected: int | Untranslatable = min(later) if later else mirror.tail.upstream_end
        if downstream < (target_end or 0):
            expected = BEFORE_START
        assert offset_map.reverse(downstream) == expected, downstream


@given(HISTORY)
def test_only_a_mirrored_record_has_an_original(history: list[Step]) -> None:
    """A marker, and an offset after the end, have no original."""
    mirror = Mirror.started(10, 0).play(history)
    offset_map = OffsetMap(mirror.segments(), mirror.tail)

    originals = {downstream: upstream for upstream, downstream in mirror.mapped.items()}
    for downstream in range(mirror.target_end + 3):
        assert offset_map.original_of(downstream) == originals.get(downstream), downstream
    for upstream, downstream in mirror.mapped.items():
        assert offset_map.copy_of(upstream) == downstream


@given(HISTORY, st.integers(0, 5))
def test_expired_segments_answer_before_start(history: list[Step], expired: int) -> None:
    """Without its oldest segments, the map translates exactly or not at all."""
    mirror = Mirror.started(10, 0).play(history)
    whole = OffsetMap(mirror.segments(), mirror.tail)
    rest = OffsetMap(mirror.segments()[expired:], mirror.tail)

    for upstream in range(10, mirror.tail.upstream_end + 3):
        known = upstream >= rest.upstream_start
        assert rest.translate(upstream) == (whole.translate(upstream) if known else BEFORE_START)
    for downstream in range(mirror.target_end + 3):
        known = downstream >= (rest.downstream_start or 0)
        assert rest.reverse(downstream) == (whole.reverse(downstream) if known else BEFORE_START)


def test_segments_newer_than_the_tail_are_left_out() -> None:
    """A map that is read while a task continues has the state of its tail."""
    mirror = Mirror.started(0, 0).play([("transaction", [(0, 5)]), ("spill", None)])
    mirror.play([("transaction", [(0, 5)])])
    tail_then = MapTail.decode(mirror.tail.encode())
    mirror.play([("transaction", [(0, 5)]), ("spill", None), ("transaction", [(0, 5)])])

    offset_map = OffsetMap(mirror.segments(), tail_then)

    assert offset_map.translate(10) == 11
    assert offset_map.translate(11) is PENDING


def test_translations_of_a_small_history() -> None:
    """Records 100-102 and 105-106 are copied to 0-2 and 3-4, and 107 to 6, after the marker."""
    tail = MapTail.empty(100)
    tail.add([(100, 3), (105, 2)], 0)
    tail.add([(107, 1)], 6)
    tail.advance(110)
    offset_map = OffsetMap([], tail)

    answers = [offset_map.translate(upstream) for upstream in range(99, 112)]
    assert answers == [BEFORE_START, 0, 1, 2, 3, 3, 3, 4, 6, 7, 7, 7, PENDING]
    assert [offset_map.reverse(d) for d in range(9)] == [
        100,
        101,
        102,
        105,
        106,
        107,
        107,
        110,
        110,
    ]


def test_nothing_mirrored_is_pending_unless_the_target_end_is_known() -> None:
    """Before the first record, only the known end of the target can be translated."""
    assert OffsetMap([], MapTail.empty(7)).translate(7) is PENDING
    assert OffsetMap([], MapTail.empty(7, downstream=40)).translate(7) == 40
    assert OffsetMap([], MapTail.empty(7, downstream=40)).reverse(39) is BEFORE_START


def test_a_run_grows_only_if_both_offsets_continue() -> None:
    """A gap on either side starts a new run."""
    tail = MapTail.empty(0)
    tail.add([(0, 2), (2, 3)], 0)
    tail.add([(5, 1)], 5)
    assert tail.runs == [Run(0, 0, 6)]

    tail.add([(6, 1)], 7)
    tail.add([(9, 1)], 8)
    assert tail.runs == [Run(0, 0, 6), Run(6, 7, 1), Run(9, 8, 1)]


@pytest.mark.parametrize(
    ("mirrored", "first_downstream", "reason"),
    [
        ([(9, 1)], 20, "upstream offset 9 .* mirrored before"),
        ([(10, 2), (11, 1)], 20, "upstream offset 11 .* mirrored before"),
        ([(10, 1)], 4, "downstream offset 4 was written before"),
        ([(10, 0)], 20, "length 0"),
    ],
)
def test_add_refuses_what_was_mirrored_before(
    mirrored: list[tuple[int, int]], first_downstream: int, reason: str
) -> None:
    """The map refuses an offset that it already has, and so detects duplicates."""
    tail = MapTail.empty(0)
    tail.add([(5, 5)], 0)

    with pytest.raises(ValueError, match=reason):
        tail.add(mirrored, first_downstream)


def test_advance_refuses_to_go_back() -> None:
    """next_offset never decreases."""
    tail = MapTail.empty(5)

    with pytest.raises(ValueError, match="next_offset=4 is before 5"):
        tail.advance(4)


def test_a_tail_is_spilled_after_64_transactions() -> None:
    """After the 64th transaction the tail must be spilled; it then continues empty."""
    tail = MapTail.empty(0, segment=3)
    for commit in range(63):
        tail.add([(commit, 1)], 2 * commit)
        assert not tail.needs_spill()
    tail.add([(63, 1)], 126)
    assert tail.needs_spill()

    number, data = tail.spill()

    assert number == 3
    assert decode_segment(data).commits == 64
    assert (tail.segment, tail.commits, tail.runs) == (4, 0, [])
    assert (tail.upstream_end, tail.downstream_end) == (64, 127)
    assert not tail.needs_spill()


def test_a_steady_transaction_takes_three_bytes() -> None:
    """A transaction with one run and one marker takes three bytes, so a segment is small."""
    tail = MapTail.empty(0)
    for commit in range(64):
        tail.add([(100 * commit, 100)], 101 * commit)

    assert len(tail.spill()[1]) == 6 + 64 * 3 + 1


@given(START, TARGET_END, HISTORY)
def test_cut_or_lengthened_bytes_are_refused(
    start: int, target_end: int | None, history: list[Step]
) -> None:
    """No part of an encoded tail is an encoded tail."""
    data = Mirror.started(start, target_end).play(history).tail.encode()

    for length in range(len(data)):
        with pytest.raises(ValueError, match="offset map"):
            decode_segment(data[:length])
    with pytest.raises(ValueError, match="1 bytes too many"):
        decode_segment(data + b"\0")


@given(HISTORY, st.data())
def test_damaged_bytes_are_refused_or_read_as_what_they_say(
    history: list[Step], data: st.DataObject
) -> None:
    """Each tail has exactly one encoding; other bytes raise ValueError."""
    damaged = bytearray(Mirror.started(0, None).play(history).tail.encode())
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    _decodes_canonically(bytes(damaged))


def _decodes_canonically(data: bytes) -> None:
    try:
        tail = MapTail.decode(data)
    except ValueError:
        return
    assert tail.encode() == data
    check_chain([], tail)


@given(HISTORY)
def test_an_unbroken_chain_is_accepted_in_any_order(history: list[Step]) -> None:
    """A complete chain is accepted in any order of the topic's records."""
    mirror = Mirror.started(0, 0).play(history)

    chain = check_chain(reversed(mirror.segments()), mirror.tail)

    assert chain == [*mirror.segments(), mirror.tail.freeze()]
