"""Batches of one record are read together as they are read one by one, or refused as then."""

import random
from collections.abc import Sequence

import pytest
from hypothesis import given, strategies

from eos_mirror.wire import records
from eos_mirror.wire.batches import Batch
from eos_mirror.wire.codecs import CODECS
from eos_mirror.wire.errors import Corrupt
from eos_mirror.wire.own_encoder import encoded_record
from eos_mirror.wire.own_records import Record
from eos_mirror.wire.records import decoded
from tests.wire.examples import (
    NOW_MS,
    PARTITION,
    ROWS,
    Row,
    batch_of,
    changed,
    plain_rows,
    rows_in,
    sealed,
    whole,
    with_attributes,
)


def singles(rows: Sequence[Row], *, first: int = 0, codec: int = 0) -> list[Batch]:
    """Return a batch for each record."""
    return [batch_of([row], base_offset=first + i, codec=codec) for i, row in enumerate(rows)]


def one_by_one(batches: Sequence[Batch]) -> list[Record]:
    """Return the records of each batch, read alone."""
    found: list[Record] = []
    for one in batches:
        run = decoded(PARTITION, [one], next_offset=0)
        found += rows_in(run) if run is not None else []
    return found


def together(batches: Sequence[Batch]) -> list[Record]:
    """Return the records of all batches."""
    run = decoded(PARTITION, batches, next_offset=0)
    assert run is not None
    return rows_in(run)


@given(rows=ROWS, codec=strategies.sampled_from(sorted(CODECS.values())))
def test_records_are_the_same_in_whatever_batches_they_are(rows: list[Row], codec: int) -> None:
    """Batches of one record, compressed or not, beside one with several."""
    several = batch_of(plain_rows(3), base_offset=1_000)
    after = singles(rows, first=2_000, codec=codec)

    batches = [*singles(rows), several, *after]

    assert together(batches) == one_by_one(batches)


def test_they_are_read_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not one by one, which takes three times as long."""
    batches = singles(plain_rows(5, value_bytes=200))
    expected = one_by_one(batches)
    monkeypatch.setattr(records, "_columns", None)

    assert together(batches) == expected


def test_append_time_is_the_timestamp_of_each() -> None:
    """The largest timestamp of a batch counts then, not the base timestamp."""
    batches = [
        changed(with_attributes(one, 0x08), ">q", 35, NOW_MS + 100)
        for one in singles(plain_rows(2))
    ]

    assert [record[1] for record in together(batches)] == [NOW_MS + 100] * 2


def test_a_timestamp_that_is_not_the_base_timestamp_counts() -> None:
    """No producer writes one for the first record of a batch, but a record may have it."""
    batches = [with_body(10 + i, encoded_record(0, 5, None, b"v", None)) for i in range(2)]

    assert [record[1] for record in together(batches)] == [NOW_MS + 5] * 2


def with_body(base_offset: int, body: bytes) -> Batch:
    """Return a batch that claims to have one record, with a checksum that fits."""
    header = bytearray(batch_of(plain_rows(1), base_offset=base_offset).view[:61])
    header[8:12] = (49 + len(body)).to_bytes(4)
    return whole(sealed(header + body))


ONE = encoded_record(0, 0, b"k", b"v", None)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\x00",
        b"\x02\x00",
        b"\x80",
        b"\x80\x80",
        b"\xff" * 20,
        ONE + ONE,
        ONE[:-1],
        ONE + b"\0",
        encoded_record(1, 0, b"k", b"v", None),
        b"\x0c\0\0\0\x01\x01\x01",
        b"\x14\0\0\0\xfe\xff\xff\xff\x0f",
    ],
)
def test_a_body_that_is_not_one_record_is_corrupt(body: bytes) -> None:
    """The message names the batch; what follows it cannot make up for it."""
    batches = [*singles(plain_rows(2)), with_body(10, body), with_body(11, b"")]

    with pytest.raises(Corrupt, match="orders-3 base offset 10: "):
        decoded(PARTITION, batches, next_offset=0)


def test_a_wrong_checksum_is_found_among_others() -> None:
    """Nothing of a batch that a disk or a network changed reaches the target."""
    batches = singles(plain_rows(3))
    batches[1].view[-3] ^= 1

    with pytest.raises(Corrupt, match="orders-3 base offset 1: wrong checksum"):
        decoded(PARTITION, batches, next_offset=0)


@pytest.mark.parametrize("firsts", [(5, 5), (5, 4), (4, 5, 5)])
def test_offsets_that_do_not_increase_are_corrupt(firsts: tuple[int, ...]) -> None:
    """The offsets of a run always increase."""
    batches = [batch_of(plain_rows(1), base_offset=first) for first in firsts]

    with pytest.raises(Corrupt, match="follows offset 5"):
        decoded(PARTITION, batches, next_offset=0)
    with pytest.raises(Corrupt, match="follows offset"):
        decoded(PARTITION, [batch_of(plain_rows(9)), *batches[:2]], next_offset=0)


def test_changed_bytes_have_the_same_result_as_alone() -> None:
    """The same records, or a corrupt batch; never the bytes of a neighbour."""
    chosen, accepted = random.Random(4), 0
    for _ in range(3_000):
        batches = singles(plain_rows(4))
        data = bytearray(batches[1].view)
        for _ in range(chosen.randrange(1, 4)):
            data[chosen.randrange(61, len(data))] = chosen.randrange(256)
        batches[1] = whole(sealed(data))
        try:
            expected = one_by_one(batches)
        except Corrupt:
            with pytest.raises(Corrupt):
                together(batches)
        else:
            accepted += 1
            assert together(batches) == expected
    assert accepted > 300
