"""Records of the offset map topic: which partition they belong to."""

from dataclasses import replace

import pytest

from eos_mirror.core.map_records import (
    StartRecord,
    place_of,
    segment_key,
    segments_in,
    segments_of,
    start_key,
    starts_in,
)
from eos_mirror.core.map_segment import decode_segment
from eos_mirror.core.offset_map import MapTail
from eos_mirror.core.records import TopicPartition

ORDERS = TopicPartition("A.orders", 3)
START = StartRecord(topic_id="x" * 22, next_offset=7, partitions=4)
FOREIGN = ["", "7", "{}", "[1]", "null", '["t",0]', '["t","0",1]', "[1,0,1]", '["t",0,"x","y"]']


def test_a_start_without_a_takeover_has_the_bytes_of_older_versions() -> None:
    """They ignore the field that a takeover adds."""
    taken_over = replace(START, downstream=40)

    assert START.encode() == b'{"topic_id":"%s","next_offset":7,"partitions":4}' % (b"x" * 22)
    assert StartRecord.decode(START.encode()) == START
    assert StartRecord.decode(taken_over.encode()) == taken_over
    assert taken_over.encode().startswith(START.encode()[:-1] + b",")


def test_a_key_of_ours_names_its_place() -> None:
    """The place is read from a key, as text and as bytes."""
    assert place_of(segment_key(ORDERS, 12)) == (ORDERS, 12)
    assert place_of(start_key(ORDERS).encode()) == (ORDERS, "start")


@pytest.mark.parametrize("key", [None, b"\xad", *FOREIGN])
def test_a_key_of_others_has_no_place(key: str | bytes | None) -> None:
    """A foreign key has no place."""
    assert place_of(key) is None


def test_records_of_others_are_passed_over() -> None:
    """Foreign records are skipped, even if their values are not segments."""
    segment = MapTail.empty(7, downstream=0).encode()
    ours = {start_key(ORDERS): START.encode(), segment_key(ORDERS, 0): segment}
    entries = {**dict.fromkeys(FOREIGN, b"nonsense"), **ours}

    assert starts_in(entries) == {ORDERS: START}
    assert segments_of(entries, ORDERS) == [decode_segment(segment)]
    assert segments_in(entries) == {ORDERS: [segment]}
