"""What a topic of the target refuses is known before it is sent, and nothing else is."""

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
    """Records of which only the given columns matter."""
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
    """By a topic with these limits."""
    return first_refused(run, "A.orders", limits, sender or SenderLimits(), now_ms=NOW_MS)


def test_a_topic_without_limits_refuses_nothing() -> None:
    """Old and new timestamps, no keys, no values."""
    run = a_run(keys=[None, b"k"], values=[None, b"v"], timestamps=[1, NOW_MS + 99 * HOUR_MS])

    assert refused(run, ROOMY) is None


def test_records_without_a_key_are_refused_by_a_compacted_topic() -> None:
    """Those that lie side by side are one stretch; the next one is found when it is past."""
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
    """A broker whose clock is a minute off may still take it, so it decides itself."""
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
    """Brokers do not look at -1."""
    limits = TopicLimits(max_message_bytes=1_000, before_ms=HOUR_MS)

    assert refused(a_run(timestamps=[-1]), limits) is None


@pytest.mark.parametrize(("compression", "is_refused"), [("none", True), ("gzip", False)])
def test_a_record_is_too_large_if_no_compression_can_save_it(
    compression: str, is_refused: bool
) -> None:
    """Its size, the limit and both ways out are in the reason."""
    limits = TopicLimits(max_message_bytes=1_000)
    run = a_run(values=[b"x" * 500, b"x" * 1_000])

    found = refused(run, limits, SenderLimits(compression=compression))

    assert (found is not None) is is_refused
    if found is not None:
        assert (found.start, found.code) == (1, "MSG_SIZE_TOO_LARGE")
        assert "A.orders takes 1000" in found.reason
        assert "producer.compression.type" in found.reason


def test_a_record_that_the_producer_does_not_send_is_refused() -> None:
    """`max.request.size` is compared before compression, whatever the topic takes."""
    found = refused(
        a_run(values=[b"x" * 100]), ROOMY, SenderLimits(max_request_bytes=50, compression="zstd")
    )

    assert found is not None
    assert "producer.max.request.size" in found.reason


def test_many_small_records_are_not_a_large_one() -> None:
    """A run is larger than the limit, and none of its records is."""
    assert refused(a_run(values=[b"x" * 100] * 100), TopicLimits(max_message_bytes=1_000)) is None


def test_limits_come_from_the_effective_configuration() -> None:
    """Compacted together with deleted needs keys; what the topic stamps itself has no bounds."""
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
    """A verdict does not depend on the neighbours, so no good record is blamed for a bad one."""
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
    """Whatever fits by our count fits by the broker's: seven bytes and two lengths at least."""
    assert room_of(key, value, [("h", b"1")]) >= len(key) + len(value) + 7 + 2 + 3
