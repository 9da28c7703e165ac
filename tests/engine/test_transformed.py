"""Dropped records are passed by: what is left comes in order, and the position moves past them."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from eos_mirror.core.records import DecodedRun, Headers, Position, TopicPartition
from eos_mirror.core.transforms import Predicate, Transform
from eos_mirror.ports import Polled
from eos_mirror.replication.transformed import TransformedSource

ORDERS, AUDIT = TopicPartition("orders", 0), TopicPartition("audit", 0)
TOMBSTONE = Predicate(kind="RecordIsTombstone")
IS_ORDERS = Predicate(kind="TopicNameMatches", text="A.orders")
LIVE = Transform(kind="Filter", predicate=TOMBSTONE)
MARK = Transform(kind="InsertHeader", headers=("m",), value="x", predicate=IS_ORDERS)
EPOCH = 7


class Below:
    """A source that returns what a test gives it."""

    def __init__(self, *polls: Polled) -> None:
        self._polls = list(polls)

    def poll(self, *, wait: timedelta) -> Polled:
        """Return the next answer."""
        del wait
        return self._polls.pop(0)

    def subscribe(self, topics: Sequence[str]) -> None:
        """Do nothing."""

    def assign(self, positions: Mapping[TopicPartition, Position]) -> None:
        """Do nothing."""


def run(partition: TopicPartition, first: int, values: Sequence[bytes | None]) -> DecodedRun:
    """Return adjacent records with these values."""
    count = len(values)
    return DecodedRun(
        partition=partition,
        offsets=range(first, first + count),
        timestamps=[1] * count,
        keys=[b"k"] * count,
        values=values,
        headers=[None] * count,
        leader_epoch=EPOCH,
        size_bytes=sum(len(value or b"") for value in values),
    )


def opened(below: Any, *transforms: Transform) -> TransformedSource:
    """Return a source of both topics over another one."""
    source = TransformedSource(below, transforms, lambda topic: f"A.{topic}")
    source.subscribe(["orders", "audit"])
    return source


def poll(source: TransformedSource) -> Polled:
    """Poll without waiting."""
    return source.poll(wait=timedelta(0))


def test_a_topic_without_a_transform_is_not_decoded() -> None:
    """Its runs are handed on as they are."""
    plain = run(AUDIT, 0, [b"a", None])
    polled = poll(opened(Below(Polled(runs=[plain])), MARK))
    assert polled.runs[0] is plain
    assert polled.ends == {}


def test_a_run_of_dropped_records_is_an_end() -> None:
    """An end that was reached further on counts."""
    one, other = run(ORDERS, 0, [None, None]), run(AUDIT, 5, [None])
    polled = poll(opened(Below(Polled(runs=[one, other], ends={AUDIT: 9})), LIVE))
    assert polled.runs == []
    assert polled.ends == {ORDERS: 2, AUDIT: 9}


def test_the_epoch_of_a_dropped_record_is_not_that_of_the_one_before() -> None:
    """A later epoch would make the next record look like one of another log."""
    (left,) = poll(opened(Below(Polled(runs=[run(ORDERS, 0, [b"a", None])])), LIVE)).runs
    assert (left.next_offset, left.leader_epoch) == (1, None)
    (left,) = poll(opened(Below(Polled(runs=[run(ORDERS, 0, [None, b"a"])])), LIVE)).runs
    assert (left.next_offset, left.leader_epoch) == (2, EPOCH)


def test_a_topic_that_is_left_out_is_still_transformed() -> None:
    """Its tasks commit what was read, and its records may come until then."""
    source = opened(Below(Polled(runs=[run(ORDERS, 0, [None])])), LIVE)
    source.subscribe(["audit"])
    assert poll(source).runs == []


VALUES = st.lists(st.lists(st.one_of(st.none(), st.binary(max_size=2)), min_size=1), min_size=1)


@given(VALUES)
def test_what_is_left_is_whole_and_the_position_reaches_the_end(
    parts: Sequence[Sequence[bytes | None]],
) -> None:
    """Whatever the runs are: together they have the kept records, with their offsets."""
    values = [value for part in parts for value in part]
    polls, first = [], 0
    for part in parts:
        polls.append(Polled(runs=[run(ORDERS, first, part)]))
        first += len(part)
    source = opened(Below(*polls), LIVE, MARK)
    position, seen = 0, list[tuple[int, bytes | None, Headers | None]]()
    for _ in parts:
        polled = poll(source)
        for one in polled.runs:
            left = one.decoded()
            assert one.stretches()[0][0] >= position
            assert one.size_bytes == sum(len(value or b"") for value in left.values)
            position = one.next_offset
            seen += zip(left.offsets, left.values, left.headers, strict=True)
        position = max(position, polled.ends.get(ORDERS, 0))
    assert position == len(values)
    kept = [(at, value) for at, value in enumerate(values) if value is not None]
    assert seen == [(at, value, [("m", b"x")]) for at, value in kept]
