"""MirrorMaker 2's positions in the bytes that Kafka Connect writes."""

import pytest

from eos_mirror.core.connect_offsets import SOURCE_CONNECTOR, Owner, next_offsets, records_of
from eos_mirror.core.records import TopicPartition

OWNER = Owner(SOURCE_CONNECTOR, "A")
KEY = b'["MirrorSourceConnector",{"cluster":"A","partition":2,"topic":"orders"}]'
ORDERS = TopicPartition("orders", 2)


def test_the_next_offset_follows_the_last_one_that_was_mirrored() -> None:
    """The newest record of a key counts, whatever the order of its fields is."""
    same = b'["MirrorSourceConnector", {"topic": "orders", "cluster": "A", "partition": 2}]'
    found = next_offsets([(KEY, b'{"offset":41}'), (same, b'{"offset":43}')], OWNER)

    assert found == {ORDERS: 44}


def test_a_tombstone_removes_the_position() -> None:
    """Connect writes one when offsets are reset."""
    assert next_offsets([(KEY, b'{"offset":41}'), (KEY, None)], OWNER) == {}


@pytest.mark.parametrize(
    "key",
    [
        None,
        b"",
        b"\xff",
        b"42",
        b'["MirrorSourceConnector"]',
        b'["MirrorSourceConnector",{"cluster":"C","partition":2,"topic":"orders"}]',
        b'["another",{"cluster":"A","partition":2,"topic":"orders"}]',
        b'["MirrorSourceConnector",{"cluster":"A","partition":-1,"topic":"orders"}]',
        b'["MirrorSourceConnector",{"cluster":"A","partition":true,"topic":"orders"}]',
        b'["MirrorSourceConnector",{"cluster":"A","partition":"2","topic":"orders"}]',
        b'["MirrorCheckpointConnector",{"partition":0,"topic":"A.foo","group":"g1"}]',
        b'["MirrorHeartbeatConnector",{"sourceClusterAlias":"A","targetClusterAlias":"B"}]',
    ],
)
def test_what_is_not_a_position_of_the_owner_is_left_out(key: bytes | None) -> None:
    """All connectors of a Connect cluster share the topic."""
    assert next_offsets([(KEY, b'{"offset":41}'), (key, b'{"offset":7}')], OWNER) == {ORDERS: 42}


@pytest.mark.parametrize("value", [b"", b"41", b'{"offset":-2}', b'{"offset":"41"}', b"[]"])
def test_a_value_that_is_no_offset_leaves_no_position(value: bytes) -> None:
    """A position that is not known is no reason to use an older one."""
    assert next_offsets([(KEY, b'{"offset":41}'), (KEY, value)], OWNER) == {}


def test_a_position_is_stored_in_the_bytes_of_mirrormaker_2() -> None:
    """Compaction and the partition of the record depend on every byte of the key."""
    (key, value), *rest = records_of({ORDERS: 42}, OWNER)

    assert (key.encode(), value.encode(), rest) == (KEY, b'{"offset":41}', [])
    assert next_offsets([(key.encode(), value.encode())], OWNER) == {ORDERS: 42}


def test_a_partition_that_begins_at_its_first_offset_has_a_position() -> None:
    """MirrorMaker 2 reads -1 as no position, and begins as its consumer is configured."""
    ((key, value),) = records_of({ORDERS: 0}, OWNER)

    assert value == '{"offset":-1}'
    assert next_offsets([(key.encode(), value.encode())], OWNER) == {ORDERS: 0}


def test_later_records_are_added_to_what_is_known() -> None:
    """The topic is read once, and then only what is new."""
    other = TopicPartition("other", 0)

    found = next_offsets([(KEY, b'{"offset":41}')], OWNER, known={other: 7, ORDERS: 5})

    assert found == {other: 7, ORDERS: 42}
