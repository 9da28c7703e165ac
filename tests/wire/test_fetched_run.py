"""Runs of records in the batches of the source, and what must be decoded."""

import pytest

from eos_mirror.core.records import DecodedRun
from eos_mirror.errors import UnreadableBatch
from eos_mirror.wire.batches import Batch
from eos_mirror.wire.fetched_run import FetchedRun, runs_of
from tests.wire.examples import PARTITION, batch_of, changed, plain_rows


def a_batch(base_offset: int, records: int = 5) -> Batch:
    """Return a batch as a log stores it."""
    return batch_of(plain_rows(records), base_offset=base_offset)


def with_a_gap(base_offset: int, records: int = 5) -> Batch:
    """Return a batch whose last record was removed by compaction."""
    return changed(a_batch(base_offset, records), ">i", 23, records)


def corrupt(batch: Batch) -> Batch:
    """Flip a bit of the last record."""
    batch.view[-2] ^= 1
    return batch


def test_dense_batches_stay_together_and_others_are_decoded() -> None:
    """The order is that of the log, and each decoded run says why it is decoded."""
    batches = [a_batch(0), a_batch(5), with_a_gap(10), a_batch(16)]

    runs, fault = runs_of(PARTITION, batches, next_offset=0)

    assert fault is None
    assert [type(run) for run in runs] == [FetchedRun, DecodedRun, FetchedRun]
    assert [run.stretches() for run in runs] == [[(0, 10)], [(10, 5)], [(16, 5)]]
    assert [run.why for run in runs if isinstance(run, DecodedRun)] == ["gaps"]


def test_a_batch_that_begins_before_the_position_is_decoded_from_there() -> None:
    """The records before the position are left out."""
    runs, fault = runs_of(PARTITION, [a_batch(0), a_batch(5)], next_offset=3)

    assert fault is None
    assert [run.stretches() for run in runs] == [[(3, 2)], [(5, 5)]]
    assert isinstance(runs[0], DecodedRun)
    assert runs[0].why == "before_position"


def test_what_comes_before_a_batch_that_cannot_be_decoded_is_returned() -> None:
    """The fault names the place of that batch, and nothing after it is returned."""
    batches = [a_batch(0), corrupt(with_a_gap(5)), a_batch(11)]

    runs, fault = runs_of(PARTITION, batches, next_offset=0)

    assert [run.stretches() for run in runs] == [[(0, 5)]]
    assert fault is not None
    assert "next_offset=5:" in str(fault)


def test_decoding_names_the_first_corrupt_batch_and_the_records_before_it() -> None:
    """A run is decoded as a whole; the error says how far it is good."""
    run = FetchedRun(PARTITION, [a_batch(0), a_batch(5), corrupt(a_batch(10)), a_batch(15)])

    with pytest.raises(UnreadableBatch) as caught:
        run.decoded()

    assert "next_offset=10:" in str(caught.value)
    assert caught.value.before.stretches() == [(0, 10)]
    assert caught.value.before.decoded().count == 10


def test_a_run_begins_at_a_position_inside_its_first_batch() -> None:
    """It is decoded then, because a batch cannot be divided."""
    run = FetchedRun(PARTITION, [a_batch(0), a_batch(5)])

    assert run.from_offset(0) is run
    later = run.from_offset(7)
    assert later is not None
    assert later.stretches() == [(7, 3)]
    assert run.from_offset(10) is None


def test_the_outline_is_that_of_all_batches() -> None:
    """It has the largest batch and the latest timestamp."""
    small, large = a_batch(0, 1), a_batch(1, 9)

    outline = FetchedRun(PARTITION, [small, large]).outline()

    assert outline.largest_batch_bytes == large.size
    assert outline.last_ms == large.last_ms
