"""A quarantined record has the source record as it is, its place, and why it was refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eos_mirror.core.quarantine import (
    ADDED,
    Place,
    QuarantinedRecord,
    decode_quarantined,
    decode_replayed,
    fault_of,
    fitting,
)
from eos_mirror.core.records import TopicPartition, TopicRecord
from eos_mirror.core.topic_limits import SenderLimits, TopicLimits

SENDER = SenderLimits()
ROOMY = TopicLimits(max_message_bytes=104_857_600)
BYTES = st.none() | st.binary(max_size=20)


def a_record(**changes: object) -> QuarantinedRecord:
    """Return a quarantined record with some fields changed."""
    fields: dict[str, object] = {
        "flow": "A->B",
        "source": TopicPartition("orders", 3),
        "offset": 4711,
        "topic_id": "i" * 22,
        "code": "INVALID_RECORD",
        "reason": "no key",
        "timestamp": 1_700_000_000_000,
        "key": None,
        "value": b"v",
        "headers": None,
    }
    return QuarantinedRecord(**{**fields, **changes})  # type: ignore[arg-type]


@given(BYTES, BYTES, st.lists(st.tuples(st.text(max_size=9), BYTES), min_size=1) | st.none())
def test_a_record_comes_back_as_it_was(
    key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes | None]] | None
) -> None:
    """Also if its own headers have the names of those that are added."""
    one = a_record(key=key, value=value, headers=headers)

    assert decode_quarantined(one.encode()) == one
    twice = a_record(headers=one.encode().headers)
    assert decode_quarantined(twice.encode()) == twice


def test_headers_follow_those_of_the_record_as_text() -> None:
    """A consumer of Connect's dead letter queues finds topic, partition, offset and reason."""
    record = a_record(headers=[("own", b"1")]).encode()

    assert record.headers == [
        ("own", b"1"),
        ("__connect.errors.connector.name", b"A->B"),
        ("__connect.errors.topic", b"orders"),
        ("__connect.errors.partition", b"3"),
        ("__connect.errors.offset", b"4711"),
        ("__connect.errors.exception.message", b"no key"),
        ("eos-mirror.code", b"INVALID_RECORD"),
        ("eos-mirror.timestamp", b"1700000000000"),
        ("eos-mirror.topic.id", b"i" * 22),
        ("eos-mirror.copy", b"0"),
    ]


@pytest.mark.parametrize(
    "headers",
    [None, [], [(name, b"x") for name in ADDED[1:]], [(name, b"x") for name in ADDED]],
    ids=["none", "empty", "one is missing", "no numbers"],
)
def test_records_of_other_programs_are_recognised(
    headers: list[tuple[str, bytes | None]] | None,
) -> None:
    """A queue that a user named may have other records, too."""
    with pytest.raises(ValueError, match=r".+"):
        decode_quarantined(TopicRecord(b"k", b"v", headers))


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        (None, "it does not exist, or DESCRIBE_CONFIGS on it is not granted; restart the flow"),
        (
            TopicLimits(max_message_bytes=10**6, needs_keys=True),
            "it is compacted. Set its cleanup.policy to delete",
        ),
        (
            TopicLimits(max_message_bytes=800_060),
            "it accepts 800060 bytes. Raise its max.message.bytes to 800061",
        ),
        (TopicLimits(max_message_bytes=800_061), ""),
        (ROOMY, ""),
    ],
)
def test_a_topic_that_would_refuse_records_is_no_quarantine(
    limits: TopicLimits | None, why: str
) -> None:
    """A full batch must fit, and records without a key."""
    assert fault_of(limits, SENDER) == why


def test_records_up_to_the_first_one_that_is_too_large_fit() -> None:
    """No later record overtakes it."""
    small, large = a_record().encode(), a_record(value=b"x" * 1_000_000).encode()
    limits = TopicLimits(max_message_bytes=1_000_000)

    assert fitting([small, small, large, small], limits, SENDER) == [small, small]
    assert fitting([large], limits, SENDER) == []
    assert fitting([large, small], ROOMY, SENDER) == [large, small]
    assert fitting([large], ROOMY, SenderLimits(max_request_bytes=1_000_000)) == []


@pytest.mark.parametrize("number", [b"x", b"", b"-1", None])
def test_a_note_with_anything_but_a_place_is_none(number: bytes | None) -> None:
    """Another program may use the same names: its records are left out."""
    place = Place(2, 4711)
    assert decode_replayed(place.replayed()) == place
    assert place.replayed().partition == 2

    names = [name for name, _ in place.replayed().headers or ()]
    foreign = TopicRecord(None, None, [(names[0], b"2"), (names[1], number)])
    assert decode_replayed(foreign) is None
