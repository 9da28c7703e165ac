"""Records that a target topic would refuse are detected before sending, and no others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eos_mirror.core.records import DecodedRun, Headers, TopicPartition
from eos_mirror.core.topic_limits import (
    CLOCK_SKEW_MS,
    NO_BOUND,
    RefusedRecords,
    SenderLimits,
    TopicLimits,
    first_refused,
    limits_of,
    room_of,
)

NOW_MS = 1_700_000_000_000
HOUR_MS = 3_600_000
ROOMY = TopicLimits(max_message_bytes=1_048_588)


def a_run(
    *,
    keys: list[bytes | None] | None = None,
    values: list[bytes | None] | None = None,
    timestamps: list[int] | None = None,
    headers: list[Headers | None] | None = None,
) -> DecodedRun:
    """Return a run with these columns; the others have default values."""
    count = len(keys or values or timestamps or headers or [])
    values = values or [b"v"] * count
    return DecodedRun(
        partition=TopicPartition("orders", 0),
        offsets=list(range(100, 100 + count)),
        timestamps=timestamps or [NOW_MS] * count,
        keys=keys or [b"k"] * count,
        values=values,
        headers=headers or [None] * count,
        leader_epoch=None,
        size_bytes=sum(len(value or b"") for value in values),
    )


def refused(
    run: DecodedRun, limits: TopicLimits, sender: SenderLimits | None = None
) -> RefusedRecords | None:
    """Return the first records that a topic with these limits refuses."""
    return first_refused(run, "A.orders", limits, sender or SenderLimits(), now_ms=NOW_MS)


def test_a_topic_without_limits_refuses_nothing() -> None:
    """A topic without limits accepts any timestamp, and records without key or value."""
    run = a_run(keys=[None, b"k"], values=[None, b"v"], timestamps=[1, NOW_MS + 99 * HOUR_MS])

    assert refused(run, ROOMY) is None


def test_records_without_a_key_are_refused_by_a_compacted_topic() -> None:
    """A compacted topic refuses records without a key; adjacent ones form one stretch."""
    run = a_run(keys=[b"k", None, None, b"k", None])

    found = refused(run, TopicLimits(max_message_bytes=1_000, needs_keys=True))

    assert found is not None
    assert (found.start, found.stop, found.code) == (1, 3, "INVALID_RECORD")
    assert "has no key, and A.orders is compacted" in found.reason


@pytest.mark.parametrize(
    ("distance_ms", "is_refused"),
    [
        (HOUR_MS, False),
        (HOUR_MS + CLOCK_SKEW_MS, False),
        (HOUR_MS + CLOCK_SKEW_MS + 1, True),
        (6 * HOUR_MS, True),
    ],
)
@pytest.mark.parametrize("after", [True, False])
def test_a_timestamp_is_refused_when_no_clock_could_save_it(
    distance_ms: int, is_refused: bool, after: bool
) -> None:
    """A timestamp is refused only beyond the limit plus a minute of clock skew."""
    limits = TopicLimits(
        max_message_bytes=1_000,
        after_ms=HOUR_MS if after else None,
        before_ms=None if after else HOUR_MS,
    )
    found = refused(
        a_run(timestamps=[NOW_MS, NOW_MS + (distance_ms if after else -distance_ms)]), limits
    )

    assert (found is not None) is is_refused
    if found is not None:
        name = "message.timestamp.after.max.ms" if after else "message.timestamp.before.max.ms"
        assert (found.start, found.code) == (1, "INVALID_TIMESTAMP")
        assert f"Raise {name} of A.orders" in found.reason


def test_a_record_without_a_timestamp_has_none_out_of_bounds() -> None:
    """A record without a timestamp (-1) is accepted, because brokers do not check it."""
    limits = TopicLimits(max_message_bytes=1_000, before_ms=HOUR_MS)

    assert refused(a_run(timestamps=[-1]), limits) is None


@pytest.mark.parametrize(("compression", "is_refused"), [("none", True), ("gzip", False)])
def test_a_record_is_too_large_if_no_compression_can_save_it(
    compression: str, is_refused: bool
) -> None:
    """A record over the limit is refused without compression; the reason says what to do."""
    limits = TopicLimits(max_message_bytes=1_000)
    run = a_run(values=[b"x" * 500, b"x" * 1_000])

    found = refused(run, limits, SenderLimits(compression=compression))

    assert (found is not None) is is_refused
    if found is not None:
        assert (found.start, found.code) == (1, "MSG_SIZE_TOO_LARGE")
        assert "A.orders accepts 1000" in found.reason
        assert "producer.compression.type" in found.reason


def test_a_record_that_the_producer_does_not_send_is_refused() -> None:
    """A record over `max.request.size` before compression is refused with any topic limit."""
    found = refused(
        a_run(values=[b"x" * 100]), ROOMY, SenderLimits(max_request_bytes=50, compression="zstd")
    )

    assert found is not None
    assert "producer.max.request.size" in found.reason


def test_many_small_records_are_not_a_large_one() -> None:
    """A run may exceed the limit if none of its records does."""
    assert refused(a_run(values=[b"x" * 100] * 100), TopicLimits(max_message_bytes=1_000)) is None


def test_limits_come_from_the_effective_configuration() -> None:
    """
    Limits are read from the effective configuration of the topic.

    `compact,delete` needs keys. With LogAppendTime, timestamps have no bounds.
    """
    config = {
        "max.message.bytes": "2000",
        "cleanup.policy": "compact,delete",
        "message.timestamp.type": "CreateTime",
        "message.timestamp.after.max.ms": str(HOUR_MS),
        "message.timestamp.before.max.ms": str(NO_BOUND),
    }

    assert limits_of(config) == TopicLimits(
        max_message_bytes=2_000, needs_keys=True, after_ms=HOUR_MS
    )
    stamped = limits_of({**config, "message.timestamp.type": "LogAppendTime"})
    assert stamped.after_ms is None
    older = limits_of({**config, "message.timestamp.difference.max.ms": "5"})
    assert (older.before_ms, older.after_ms) == (5, 5)


@given(
    st.lists(st.tuples(st.none() | st.binary(max_size=9), st.binary(max_size=60)), min_size=1),
    st.integers(80, 200),
    st.booleans(),
)
def test_what_is_refused_is_refused_alone_too(
    records: list[tuple[bytes | None, bytes]], limit: int, needs_keys: bool
) -> None:
    """Whether a record is refused does not depend on its neighbours."""
    limits = TopicLimits(max_message_bytes=limit, needs_keys=needs_keys)
    run = a_run(keys=[key for key, _ in records], values=[value for _, value in records])
    alone = [refused(run.part(i, i + 1), limits) is not None for i in range(len(records))]

    found = refused(run, limits)

    if found is None:
        assert not any(alone)
    else:
        assert alone.index(True) == found.start
        assert all(alone[found.start : found.stop])


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_a_record_never_takes_more_room_than_it_is_given(key: bytes, value: bytes) -> None:
    """
    A record that fits by our count also fits by the broker's.

    The broker counts at least seven bytes and two lengths besides key and value.
    """
    assert room_of(key, value, [("h", b"1")]) >= len(key) + len(value) + 7 + 2 + 3


def test_a_refused_record_is_named_by_offset_and_size() -> None:
    """An operator sees which limit it needs, also if only the target knew that it is too large."""
    run = a_run(keys=[b"k", None], values=[b"v", b"x" * 2_000])
    refused = RefusedRecords(start=1, stop=2, code="MSG_SIZE_TOO_LARGE", reason="Raise it.")

    assert refused.place(run) == (
        "next_offset=101: the target refuses this record "
        "(MSG_SIZE_TOO_LARGE; no key, value 2000 bytes): Raise it."
    )
