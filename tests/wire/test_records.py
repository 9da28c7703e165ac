"""Batches are decoded as Kafka decodes them, or refused."""

import pytest

from eos_mirror.wire.batches import Batch, fetched_batches
from eos_mirror.wire.codecs import CODECS
from eos_mirror.wire.errors import Corrupt
from eos_mirror.wire.own_encoder import encoded_record
from eos_mirror.wire.records import decoded
from tests.wire import java_batches as java
from tests.wire.examples import (
    NOW_MS,
    PARTITION,
    Row,
    batch_of,
    changed,
    plain_rows,
    sealed,
    whole,
)

OLD_LZ4 = (0, "lz4")


@pytest.mark.parametrize("name", sorted(java.BATCHES.keys() - {OLD_LZ4}), ids=str)
def test_what_java_wrote_is_read(name: tuple[int, str]) -> None:
    """Every format and codec, from the bytes of Kafka's own classes."""
    magic, _ = name
    fetched = fetched_batches(memoryview(java.BATCHES[name]), next_offset=1000)

    run = decoded(PARTITION, fetched.batches, next_offset=1000)

    assert run is not None
    assert fetched.next_offset == 1003
    assert run.offsets == [1000, 1001, 1002]
    assert run.keys == java.KEYS
    assert run.values == java.VALUES
    assert run.timestamps == (java.TIMESTAMPS if magic else [-1, -1, -1])
    assert run.headers == (java.HEADERS if magic == 2 else [None, None, None])
    assert run.leader_epoch is None


def test_lz4_of_format_0_is_refused() -> None:
    """The clients of Kafka 0.8 wrote a frame checksum that no library accepts."""
    with pytest.raises(Corrupt, match="lz4 in message format 0"):
        decoded(PARTITION, [whole(java.BATCHES[OLD_LZ4])], next_offset=0)


def old_set(**fields: int) -> Batch:
    """Return a compressed set of format 1 with another offset or other attributes."""
    batch = whole(bytearray(java.BATCHES[1, "gzip"]))
    for name, value in fields.items():
        setattr(batch, name, value)
    return batch


def test_a_compressed_set_with_append_time_has_one_timestamp() -> None:
    """The broker wrote it into the message outside only."""
    batch = old_set(attributes=0x09, last_ms=77)

    run = decoded(PARTITION, [batch], next_offset=0)

    assert run is not None
    assert run.timestamps == [77, 77, 77]


def test_a_compressed_set_is_read_from_its_middle() -> None:
    """Its first records were copied already."""
    run = decoded(PARTITION, [old_set()], next_offset=1002)

    assert run is not None
    assert run.offsets == [1002]


def test_a_compressed_set_whose_offsets_exceed_it_is_corrupt() -> None:
    """Kafka's reader refuses it as well."""
    with pytest.raises(Corrupt, match="exceed"):
        decoded(PARTITION, [old_set(base_offset=1)], next_offset=0)


def test_append_time_is_the_timestamp_of_every_record() -> None:
    """The broker replaced the timestamps of the producer without touching the records."""
    rows: list[Row] = [(NOW_MS, None, None, [("\udcff", None)]), *plain_rows(2)]
    for part in (rows[1:], rows):  # read by the compiled reader, and by ours
        batch = changed(changed(batch_of(part), ">h", 21, 0x08), ">q", 35, NOW_MS + 99)

        run = decoded(PARTITION, [batch], next_offset=0)

        assert run is not None
        assert run.timestamps == [NOW_MS + 99] * len(part)


def test_a_delete_horizon_changes_no_timestamp() -> None:
    """The base timestamp is the horizon then, and the records are relative to it as before."""
    batch = changed(batch_of(plain_rows(2)), ">h", 21, 0x40)

    run = decoded(PARTITION, [batch], next_offset=0)

    assert run is not None
    assert run.timestamps == [NOW_MS, NOW_MS + 1]


def body_of(*offsets: int) -> bytes:
    """Return records with these relative offsets."""
    return b"".join(encoded_record(i, 0, b"k", b"v", None) for i in offsets)


def with_body(body: bytes, *, count: int, last: int) -> Batch:
    """Return a batch with such a body and a checksum that fits."""
    header = bytearray(batch_of(plain_rows(1), base_offset=10).view[:61])
    header[8:12] = (49 + len(body)).to_bytes(4)
    header[23:27] = last.to_bytes(4)
    header[57:61] = count.to_bytes(4, signed=True)
    return whole(sealed(header + body))


def test_a_compacted_batch_keeps_its_gaps() -> None:
    """Offsets are those of the records, not counted."""
    run = decoded(PARTITION, [with_body(body_of(0, 3, 9), count=3, last=12)], next_offset=0)

    assert run is not None
    assert run.offsets == [10, 13, 19]


def test_a_large_gap_takes_no_memory() -> None:
    """A compacted batch may reach over two billion offsets."""
    last = 2**31 - 1

    run = decoded(PARTITION, [with_body(body_of(0, last), count=2, last=last)], next_offset=0)

    assert run is not None
    assert run.offsets == [10, 10 + last]


@pytest.mark.parametrize(
    ("body", "count", "last"),
    [
        (body_of(0, 2, 1), 3, 2),
        (body_of(0, 0), 2, 1),
        (body_of(0, 5, 3, 9), 4, 9),
        (body_of(0, 1, 2), 3, 1),
        (body_of(-1, 0), 2, 1),
        (body_of(0, 1), 3, 2),
        (body_of(0, 1), 1, 0),
        (body_of(0, 1), -1, 0),
        (body_of(0) + b"\0", 1, 0),
        (body_of(0)[:-1], 1, 0),
        (b"\x02\x00", 1, 0),
        (b"\x00", 1, 0),
        (b"\xff" * 20, 1, 0),
        (b"\xff" * 9 + b"\x01" + b"\0" * 20, 1, 0),
        (b"\x0e\0\0\0\x01\x01\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", 1, 0),
        (b"\x0c\0\0\0\x01\x01\x01", 1, 0),
        (b"\x14\0\0\0\xfe\xff\xff\xff\x0f", 1, 0),
    ],
)
def test_records_that_contradict_their_header_are_corrupt(
    body: bytes, count: int, last: int
) -> None:
    """The message names the partition and the batch."""
    with pytest.raises(Corrupt, match="orders-3 base offset 10: "):
        decoded(PARTITION, [with_body(body, count=count, last=last)], next_offset=0)


def test_a_wrong_checksum_is_found_before_anything_is_decoded() -> None:
    """Nothing of a batch that a disk or a network changed reaches the target."""
    batch = batch_of(plain_rows(3), base_offset=10)
    batch.view[-1] ^= 1

    with pytest.raises(Corrupt, match="orders-3 base offset 10: wrong checksum"):
        decoded(PARTITION, [batch], next_offset=0)


def test_batches_that_overlap_are_corrupt() -> None:
    """The offsets of a run always increase."""
    batches = [batch_of(plain_rows(3)), batch_of(plain_rows(3), base_offset=2)]

    with pytest.raises(Corrupt, match="follows offset 2"):
        decoded(PARTITION, batches, next_offset=0)


def test_a_batch_that_grows_beyond_the_limit_is_corrupt() -> None:
    """A few bytes of a hostile producer do not exhaust the memory of a task."""
    batch = batch_of([(NOW_MS, None, bytes(1_000_000), None)], codec=CODECS["zstd"])
    assert batch.size < 200

    with pytest.raises(Corrupt, match="too large"):
        decoded(PARTITION, [batch], next_offset=0, limit_bytes=500_000)
