"""MirrorMaker 2's records, byte for byte, with vectors from Kafka's Java classes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eos_mirror.core.internal_records import Checkpoint, Heartbeat, OffsetSync, committed_by
from eos_mirror.core.records import TopicPartition

Record = Heartbeat | Checkpoint | OffsetSync
VECTORS: list[tuple[Record, str, str]] = [
    (
        Heartbeat(source="A", target="B", timestamp_ms=1_700_000_000_000),
        "000141 000142",
        "0000 0000018bcfe56800",
    ),
    (
        Checkpoint(group="g1", partition=TopicPartition("A.t", 3), upstream=10, downstream=5),
        "00026731 0003412e74 00000003",
        "0000 000000000000000a 0000000000000005 0000",
    ),
    (
        OffsetSync(partition=TopicPartition("t", 3), upstream=9, downstream=4),
        "000174 00000003",
        "0000000000000009 0000000000000004",
    ),
]
NAMES = st.text(st.characters(codec="utf-8"), max_size=20)
OFFSETS = st.integers(-1, 2**63 - 1)
PARTITIONS = st.builds(TopicPartition, NAMES, st.integers(0, 2**31 - 1))


@pytest.mark.parametrize(("record", "key", "value"), VECTORS)
def test_bytes_are_those_of_java(record: Record, key: str, value: str) -> None:
    """Records are encoded and decoded as in Kafka's Java classes."""
    assert record.key == bytes.fromhex(key)
    assert record.value == bytes.fromhex(value)
    assert type(record).decode(record.key, record.value) == record


@given(
    st.one_of(
        st.builds(Heartbeat, source=NAMES, target=NAMES, timestamp_ms=OFFSETS),
        st.builds(
            Checkpoint,
            group=NAMES,
            partition=PARTITIONS,
            upstream=OFFSETS,
            downstream=OFFSETS,
            metadata=NAMES,
        ),
        st.builds(OffsetSync, partition=PARTITIONS, upstream=OFFSETS, downstream=OFFSETS),
    )
)
def test_what_is_written_is_read_back(record: Record) -> None:
    """Encoding and decoding preserve any names and offsets."""
    assert type(record).decode(record.key, record.value) == record


@pytest.mark.parametrize("kind", [Heartbeat, Checkpoint, OffsetSync])
@pytest.mark.parametrize(
    ("key", "value"),
    [(None, b""), (b"", b""), (b"\0\1a\0\1b\0\0\0\1", None), (b"\xff\xff", b"\0" * 20)],
)
def test_what_another_tool_wrote_is_refused(
    kind: type[Record], key: bytes | None, value: bytes | None
) -> None:
    """Any foreign record is a ValueError, so that the reader can skip and count it."""
    with pytest.raises(ValueError, match=r"null|ends within"):
        kind.decode(key, value)


def test_a_later_version_is_refused() -> None:
    """A record of a later version is refused, because its fields are unknown (KAFKA-20659)."""
    checkpoint = VECTORS[1][0]
    with pytest.raises(ValueError, match="version 1, but only 0 is known"):
        Checkpoint.decode(checkpoint.key, b"\0\1" + checkpoint.value[2:])


def test_a_string_that_has_no_length_is_refused() -> None:
    """A string whose length does not fit two bytes is refused."""
    with pytest.raises(ValueError, match="more than 32767 bytes"):
        _ = Heartbeat(source="a" * 40_000, target="b", timestamp_ms=0).key


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("0001 00026731 000174 00000003", ("g1", "t")),
        ("0000 00026731 000174 00000003", ("g1", "t")),
        ("0002 00026731", None),
        ("0001 00026731 0009", None),
        ("0001 0002adad 000174 00000003", None),
        ("0001 00026731 0001ad 00000003", None),
        ("0013 0004 73617070 0016 4652516f", None),
        ("0017 0004 73617070", None),
        ("7fff ff", None),
        ("", None),
        (None, None),
    ],
)
def test_who_commits_is_read_from_keys_of_kafka(
    key: str | None, said: tuple[str, str] | None
) -> None:
    """
    Group and topic are read from the keys of offset commits; all other keys are skipped.

    These are members, record types of later versions such as those of Kafka Streams groups
    (17 to 23), their tombstones, and names that are not UTF-8.
    """
    assert committed_by(None if key is None else bytes.fromhex(key)) == said
