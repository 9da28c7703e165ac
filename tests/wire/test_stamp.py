"""Another producer becomes the sender of a batch."""

from struct import unpack_from

import pytest

from eos_mirror.wire.batches import checked, stamp
from eos_mirror.wire.codecs import CODECS
from eos_mirror.wire.errors import Corrupt
from eos_mirror.wire.records import decoded
from tests.wire.examples import PARTITION, batch_of, numbered, plain_rows, rows_in, whole


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
@pytest.mark.parametrize("count", [1, 10, 3000])
@pytest.mark.parametrize("transactional", [True, False])
def test_only_the_fields_of_the_producer_change(
    codec: int, count: int, transactional: bool
) -> None:
    """The body and the other fields stay, and the checksum is right."""
    batch = batch_of(plain_rows(count), base_offset=500, codec=codec)
    before = bytes(batch.view)

    following = stamp(batch, 2**40, 3, 17, transactional=transactional)

    after = bytes(batch.view)
    assert following == 17 + count
    assert unpack_from(">qhi", after, 43) == (2**40, 3, 17)
    assert unpack_from(">q", after) == (0,)
    assert unpack_from(">i", after, 12) == (-1,)
    attributes = before[22] | (0x10 if transactional else 0)
    assert after[21:23] == bytes([0, attributes])
    assert (after[8:12], after[16], after[23:43], after[57:]) == (
        before[8:12], before[16], before[23:43], before[57:],
    )  # fmt: skip
    checked(whole(after))


def test_a_batch_of_a_transaction_can_be_sent_outside_of_one() -> None:
    """The transactional bit is removed, too."""
    batch = batch_of(plain_rows(5))
    stamp(batch, 1, 0, 0, transactional=True)

    stamp(batch, 1, 0, 5, transactional=False)

    assert not batch.view[22] & 0x10
    checked(batch)


@pytest.mark.parametrize(
    ("sequence", "following"), [(2**31 - 11, 2**31 - 1), (2**31 - 10, 0), (2**31 - 1, 9)]
)
def test_the_sequence_continues_at_zero(sequence: int, following: int) -> None:
    """A sequence has 31 bits, as Kafka's DefaultRecordBatch.incrementSequence counts."""
    batch = batch_of(plain_rows(10))

    assert stamp(batch, 1, 0, sequence, transactional=True) == following


def test_a_stamped_batch_can_still_be_decoded() -> None:
    """The offsets of the source are kept beside the bytes, for a batch that must be split."""
    rows = plain_rows(10)
    batch = batch_of(rows, base_offset=90, epoch=4)
    stamp(batch, 1, 0, 0, transactional=True)

    run = decoded(PARTITION, [batch], next_offset=0)

    assert run is not None
    assert rows_in(run) == numbered(rows, 90)
    assert run.leader_epoch == 4


@pytest.mark.parametrize("at", [21, 30, 60, 61, 100, -1])
def test_a_corrupt_batch_stays_corrupt(at: int) -> None:
    """A bit that was flipped before the batch was stamped is found when the batch is checked."""
    batch = batch_of(plain_rows(10))
    batch.view[at] ^= 0x80

    stamp(batch, 1, 0, 0, transactional=True)

    with pytest.raises(Corrupt, match="wrong checksum"):
        checked(batch)
