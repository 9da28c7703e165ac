"""Records that are encoded, sent, fetched and decoded are the same records."""

import pytest
from hypothesis import given, strategies

from eos_mirror.core.records import TopicRecord
from eos_mirror.wire.batches import fetched_batches, stamp
from eos_mirror.wire.builder import BatchBuilder, record_batch
from eos_mirror.wire.codecs import CODECS
from eos_mirror.wire.records import decoded
from tests.wire.examples import (
    EVERYTHING,
    HEADER_LISTS,
    NOW_MS,
    PARTITION,
    ROWS,
    Row,
    answer,
    batch_of,
    numbered,
    plain_rows,
    rows_in,
    run_of,
    stored,
)

LIMITS = strategies.sampled_from([62, 100, 1000, 10_000])
ODD_KEY = b"\xff\xfe".decode(errors="surrogateescape")
ODD: Row = (NOW_MS, b"k", b"v", [(ODD_KEY, b"1")])


@given(rows=ROWS, codec=strategies.sampled_from([*CODECS.values()]), limit=LIMITS)
def test_every_field_survives_the_way_through_bytes(
    rows: list[Row], codec: int, limit: int
) -> None:
    """Nulls, empty fields, all header keys and all timestamps, in batches of any size."""
    run, start, batches = run_of(rows), 0, []
    while start < len(rows):
        builder = BatchBuilder(codec=codec, max_bytes=limit, max_records=7)
        begin, start = start, builder.add(run, start)
        assert begin < start <= begin + 7, "an empty builder accepts at least one record"
        assert builder.count == start - begin
        assert builder.count == 1 or builder.size <= limit
        batch = builder.built()
        assert batch.size <= builder.size
        assert batch.last_ms == max(run.timestamps[begin:start])
        stamp(batch, 4, 0, begin, transactional=True)
        batches.append(stored(batch.view, base_offset=100 + begin))

    fetched = fetched_batches(answer(*batches), next_offset=0)
    found = decoded(PARTITION, fetched.batches, next_offset=0)

    assert found is not None
    assert rows_in(found) == numbered(rows, 100)
    assert found.partition == PARTITION
    assert found.leader_epoch == 7
    assert found.size_bytes == sum(len(row[2] or b"") for row in rows)
    assert fetched.next_offset == 100 + len(rows)


def test_runs_follow_each_other_in_a_batch() -> None:
    """A builder is filled by several runs, and by the rest of a run."""
    builder = BatchBuilder(codec=0, max_bytes=EVERYTHING, max_records=8)

    assert builder.add(run_of(plain_rows(5)), 2) == 5
    assert builder.add(run_of(plain_rows(9)), 0) == 5
    assert builder.add(run_of(plain_rows(9)), 5) == 5

    found = decoded(PARTITION, [builder.built()], next_offset=0)
    assert found is not None
    assert rows_in(found) == numbered(plain_rows(5)[2:] + plain_rows(5))


def test_an_odd_header_key_begins_a_batch_of_its_own() -> None:
    """The compiled encoder never sees a key that it cannot encode, and no record is lost."""
    run = run_of([*plain_rows(3), ODD, *plain_rows(2)])
    first = BatchBuilder(codec=0, max_bytes=EVERYTHING, max_records=EVERYTHING)
    second = BatchBuilder(codec=0, max_bytes=EVERYTHING, max_records=EVERYTHING)

    assert first.add(run, 0) == 3
    assert first.add(run, 3) == 3
    assert second.add(run, 3) == 6
    assert (first.count, second.count) == (3, 3)


def test_records_before_the_position_are_left_out() -> None:
    """The first batch of an answer may begin early."""
    batches = [batch_of(plain_rows(10), base_offset=40), batch_of(plain_rows(3), base_offset=50)]

    run = decoded(PARTITION, batches, next_offset=48)

    assert run is not None
    assert run.offsets == [48, 49, 50, 51, 52]
    assert run.size_bytes == sum(map(len, filter(None, run.values)))
    assert decoded(PARTITION, batches, next_offset=53) is None
    assert decoded(PARTITION, [], next_offset=0) is None


@given(
    records=strategies.lists(
        strategies.builds(
            TopicRecord,
            strategies.none() | strategies.binary(max_size=20),
            strategies.none() | strategies.binary(max_size=200),
            HEADER_LISTS | strategies.none(),
        ),
        min_size=1,
        max_size=10,
    ),
    timestamp=strategies.sampled_from([-1, 0, NOW_MS]),
)
@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
def test_records_of_our_topics_become_one_batch(
    records: list[TopicRecord], timestamp: int, codec: int
) -> None:
    """All of them, with one timestamp, also with odd header keys in the middle."""
    batch = record_batch(records, timestamp_ms=timestamp, codec=codec)

    run = decoded(PARTITION, [batch], next_offset=0)

    assert run is not None
    assert rows_in(run) == [
        (i, timestamp, record.key, record.value, record.headers or None)
        for i, record in enumerate(records)
    ]


def test_an_empty_builder_builds_nothing() -> None:
    """A batch without records would be refused by every broker."""
    with pytest.raises(ValueError, match="at least one record"):
        BatchBuilder(codec=0, max_bytes=100, max_records=10).build()
