"""What a broker returns for a partition is taken apart into batches."""

from struct import pack_into

import pytest

from eos_mirror.wire.batches import fetched_batches
from eos_mirror.wire.errors import Corrupt, Malformed
from tests.wire.examples import (
    NOW_MS,
    answer,
    batch_of,
    changed,
    of_producer,
    plain_rows,
    whole,
    with_attributes,
)
from tests.wire.java_batches import ABORT_MARKER, BATCHES, COMMIT_MARKER

CONTROL, TRANSACTIONAL = 0x20, 0x10
PRODUCER = 9


def test_a_batch_shows_what_its_header_says() -> None:
    """All fields that decide about a batch are there without decoding it."""
    batch = batch_of([(NOW_MS + 5, b"k", b"v", None), (NOW_MS, b"k", b"v", None)], base_offset=70)

    assert (batch.base_offset, batch.next_offset, batch.count) == (70, 72, 2)
    assert (batch.first_ms, batch.last_ms) == (NOW_MS + 5, NOW_MS + 5)
    assert (batch.leader_epoch, batch.magic, batch.attributes) == (7, 2, 0)
    assert batch.size == len(batch.view)


def test_a_batch_without_a_leader_epoch_has_none() -> None:
    """Minus one is the absence of an epoch."""
    assert batch_of(plain_rows(1), epoch=-1).leader_epoch is None


def test_the_batches_come_in_order_and_the_first_may_begin_early() -> None:
    """A broker returns whole batches, so the first one may begin before the position."""
    first, second = batch_of(plain_rows(10)), batch_of(plain_rows(5), base_offset=10)

    fetched = fetched_batches(answer(first, second), next_offset=4)

    assert [batch.base_offset for batch in fetched.batches] == [0, 10]
    assert fetched.next_offset == 15
    assert fetched.needed_bytes is None


def test_a_batch_before_the_position_is_skipped() -> None:
    """Nothing that was copied before is returned."""
    first, second = batch_of(plain_rows(10)), batch_of(plain_rows(5), base_offset=10)

    fetched = fetched_batches(answer(first, second), next_offset=10)

    assert [batch.base_offset for batch in fetched.batches] == [10]


def test_nothing_fetched_moves_nothing() -> None:
    """An empty answer leaves the position where it is."""
    assert fetched_batches(memoryview(b""), next_offset=8) == ([], 8, None)


@pytest.mark.parametrize("kept", [1, 16, 17, 60, 61, 100, -1])
def test_a_truncated_last_batch_is_ignored(kept: int) -> None:
    """A broker cuts its answer where the limit is, also inside of a batch."""
    first, second = batch_of(plain_rows(10)), batch_of(plain_rows(5), base_offset=10)
    data = answer(first, whole(bytes(second.view)))[: first.size + kept % second.size]

    fetched = fetched_batches(data, next_offset=0)

    assert [batch.base_offset for batch in fetched.batches] == [0]
    assert fetched.next_offset == 10
    assert fetched.needed_bytes is None


@pytest.mark.parametrize("kept", [12, 17, 60, 61, 100])
def test_a_batch_that_does_not_fit_says_how_large_it_is(kept: int) -> None:
    """The fetcher learns how much to ask for."""
    batch = batch_of(plain_rows(10))

    fetched = fetched_batches(batch.view[:kept], next_offset=3)

    assert fetched == ([], 3, batch.size)


def test_less_than_a_length_needs_at_least_a_header() -> None:
    """The fetcher asks for more even if the length itself was cut."""
    assert fetched_batches(batch_of(plain_rows(10)).view[:11], next_offset=0).needed_bytes == 61


def test_offsets_without_records_are_passed_over() -> None:
    """A compacted batch reaches to its last offset, and an empty one is skipped."""
    short = changed(batch_of(plain_rows(3)), ">i", 23, 19)
    empty = whole(bytes(changed(batch_of(plain_rows(1), base_offset=20), ">i", 57, 0).view))

    fetched = fetched_batches(answer(short, empty), next_offset=0)

    assert [batch.base_offset for batch in fetched.batches] == [0]
    assert fetched.next_offset == 21


def marker(data: bytes, base_offset: int, producer_id: int = PRODUCER) -> memoryview:
    """Return a marker at an offset."""
    copy = bytearray(data)
    pack_into(">q", copy, 0, base_offset)
    return changed(whole(copy), ">q", 43, producer_id).view


def test_only_batches_of_aborted_transactions_are_skipped() -> None:
    """A producer's batches are skipped from its first aborted offset to its abort marker."""
    data = answer(
        of_producer(batch_of(plain_rows(2), base_offset=0), PRODUCER),  # committed
        whole(marker(COMMIT_MARKER, 2)),
        of_producer(batch_of(plain_rows(2), base_offset=3), PRODUCER),  # aborted
        of_producer(batch_of(plain_rows(2), base_offset=5), 8),  # of another producer
        batch_of(plain_rows(2), base_offset=7),  # of no transaction
        of_producer(batch_of(plain_rows(2), base_offset=9), PRODUCER, attributes=0),
        whole(marker(ABORT_MARKER, 11)),
        of_producer(batch_of(plain_rows(2), base_offset=12), PRODUCER),  # of the next transaction
        whole(marker(COMMIT_MARKER, 14)),
    )

    fetched = fetched_batches(data, next_offset=0, aborted=[(PRODUCER, 3)])

    assert [batch.base_offset for batch in fetched.batches] == [0, 5, 7, 9, 12]
    assert fetched.next_offset == 15


def test_a_commit_marker_does_not_end_an_aborted_transaction() -> None:
    """Only an abort marker does, as in Kafka's CompletedFetch."""
    data = answer(
        of_producer(batch_of(plain_rows(2), base_offset=0), PRODUCER),
        whole(marker(COMMIT_MARKER, 2)),
        of_producer(batch_of(plain_rows(2), base_offset=3), PRODUCER),
    )

    assert fetched_batches(data, next_offset=0, aborted=[(PRODUCER, 0)]) == ([], 5, None)


def test_the_same_producer_can_abort_twice() -> None:
    """The list of the broker need not be sorted, and each transaction has its own entry."""
    data = answer(
        of_producer(batch_of(plain_rows(2), base_offset=0), PRODUCER),
        whole(marker(ABORT_MARKER, 2)),
        of_producer(batch_of(plain_rows(2), base_offset=3), PRODUCER),
        whole(marker(COMMIT_MARKER, 5)),
        of_producer(batch_of(plain_rows(2), base_offset=6), PRODUCER),
    )

    fetched = fetched_batches(data, next_offset=0, aborted=[(PRODUCER, 6), (PRODUCER, 0)])

    assert [batch.base_offset for batch in fetched.batches] == [3]


def test_old_messages_are_never_aborted() -> None:
    """Messages without a producer belong to no transaction."""
    data = memoryview(BATCHES[1, "none"])

    fetched = fetched_batches(data, next_offset=0, aborted=[(-1, 0), (0, 0)])

    assert [(batch.magic, batch.base_offset) for batch in fetched.batches] == [
        (1, 1000), (1, 1001), (1, 1002),
    ]  # fmt: skip
    assert fetched.next_offset == 1003


@pytest.mark.parametrize("at", [22, 57, 60])
def test_a_flipped_bit_hides_no_records(at: int) -> None:
    """A batch is skipped only if its checksum proves that it is to be skipped."""
    batch = batch_of(plain_rows(1))
    batch.view[at] ^= {22: CONTROL, 57: 0, 60: 1}[at]
    if at == 57:
        batch.view[60] ^= 1

    with pytest.raises(Corrupt, match="base offset 0"):
        fetched_batches(batch.view, next_offset=0)


def test_a_flipped_bit_in_a_skipped_transaction_is_found() -> None:
    """The producer id that decides that a batch was aborted is covered by the checksum."""
    batch = of_producer(batch_of(plain_rows(1)), 8)
    pack_into(">q", batch.view, 43, PRODUCER)

    with pytest.raises(Corrupt):
        fetched_batches(batch.view, next_offset=0, aborted=[(PRODUCER, 0)])


@pytest.mark.parametrize("length", [-(2**31), -13, -12, -1, 0, 13, 48])
def test_a_length_that_cannot_be_right_is_malformed(length: int) -> None:
    """No length that a broker sends is used before it is checked."""
    batch = batch_of(plain_rows(10))
    pack_into(">i", batch.view, 8, length)

    with pytest.raises(Malformed, match="message format 2"):
        fetched_batches(batch.view, next_offset=0)


@pytest.mark.parametrize("magic", [3, 127, 255])
def test_an_unknown_format_is_malformed(magic: int) -> None:
    """A format of the future is not guessed."""
    batch = batch_of(plain_rows(10))
    batch.view[16] = magic

    with pytest.raises(Malformed, match=f"message format {magic}"):
        fetched_batches(batch.view, next_offset=0)


@pytest.mark.parametrize("base_offset", [-1, 5])
def test_offsets_that_decrease_are_malformed(base_offset: int) -> None:
    """A reader that followed them would copy records twice, or never end."""
    first, second = batch_of(plain_rows(6)), batch_of(plain_rows(6), base_offset=base_offset)

    assert fetched_batches(answer(first, second), next_offset=0).next_offset == 6
    with pytest.raises(Malformed, match="claims offsets"):
        fetched_batches(answer(first, second), next_offset=6)


def test_a_batch_that_ends_before_it_begins_is_malformed() -> None:
    """The reader always advances."""
    batch = changed(batch_of(plain_rows(6), base_offset=100), ">i", 23, -1)

    with pytest.raises(Malformed):
        fetched_batches(batch.view, next_offset=0)


def test_good_batches_before_a_faulty_one_are_returned() -> None:
    """The position that is reported with the fault is the one of the faulty batch."""
    first, second = batch_of(plain_rows(6)), batch_of(plain_rows(6), base_offset=6)
    second.view[16] = 9

    fetched = fetched_batches(answer(first), next_offset=0)
    cut = fetched_batches(memoryview(bytes(first.view) + bytes(second.view)), next_offset=0)

    assert cut.next_offset == fetched.next_offset == 6
    with pytest.raises(Malformed, match="base offset 6"):
        fetched_batches(second.view, next_offset=6)


def test_a_marker_without_a_type_is_corrupt() -> None:
    """A control batch that cannot be read is not taken for a commit."""
    odd = with_attributes(batch_of([(NOW_MS, b"k", None, None)]), CONTROL | TRANSACTIONAL)

    with pytest.raises(Corrupt, match="has no type"):
        fetched_batches(odd.view, next_offset=0, aborted=[(PRODUCER, 0)])
