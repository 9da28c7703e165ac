"""Our own reader and encoder agree with the compiled ones, which agree with Kafka."""

import random

from aiokafka.record.default_records import DefaultRecordBatch
from hypothesis import given

from eos_mirror.core.records import Headers
from eos_mirror.wire.batches import HEADER_BYTES
from eos_mirror.wire.compiled_encoder import CompiledEncoder, is_encodable
from eos_mirror.wire.own_encoder import OwnEncoder
from eos_mirror.wire.own_records import Origin, parsed_records
from eos_mirror.wire.records import decoded
from tests.wire.examples import (
    EVERYTHING,
    PARTITION,
    ROWS,
    Row,
    batch_of,
    numbered,
    plain_rows,
    rows_in,
    run_of,
    whole,
)


@given(rows=ROWS)
def test_both_encoders_write_the_same_bytes(rows: list[Row]) -> None:
    """A batch does not show which encoder wrote it."""
    run = run_of([row for row in rows if is_encodable(*row[::3])] or plain_rows(1))
    compiled, own = (kind(max_bytes=2000) for kind in (CompiledEncoder, OwnEncoder))

    counts = [
        encoder.extend(run.timestamps, run.keys, run.values, run.headers)
        for encoder in (compiled, own)
    ]

    assert counts[0] == counts[1] == compiled.count == own.count
    assert compiled.size == own.size
    assert compiled.batch() == own.batch()


@given(rows=ROWS)
def test_our_reader_reads_what_our_encoder_wrote(rows: list[Row]) -> None:
    """Also what the compiled ones refuse."""
    encoder = OwnEncoder(max_bytes=EVERYTHING)
    run = run_of(rows)
    encoder.extend(run.timestamps, run.keys, run.values, run.headers)
    batch = whole(encoder.batch())

    origin = Origin(30, batch.first_ms, None)

    body = batch.view[HEADER_BYTES:]
    assert parsed_records(body, batch.count, origin) == numbered(rows, 30)


def test_our_reader_agrees_about_every_batch_that_the_compiled_one_accepts() -> None:
    """Of bodies with changed bytes, too: both return the same records."""
    chosen, accepted = random.Random(2), 0
    original = batch_of(plain_rows(4), base_offset=30)
    for _ in range(5000):
        data = bytearray(original.view)
        for _ in range(chosen.choice((1, 1, 2))):
            data[chosen.randrange(HEADER_BYTES, len(data))] = chosen.randrange(128)
        data += bytes(32)  # the compiled reader may read on
        batch = memoryview(data)[:-32]
        try:
            found = [
                (each.offset, each.timestamp, each.key, each.value, each.headers or None)
                for each in DefaultRecordBatch(batch)
            ]
        except (RuntimeError, ValueError):
            continue
        accepted += 1
        origin = Origin(30, original.first_ms, None)
        assert parsed_records(batch[HEADER_BYTES:], 4, origin) == found

    assert 500 < accepted < 5000, "the inputs were all alike"


def test_the_compiled_encoder_continues_after_a_full_batch() -> None:
    """The number of accepted records is exact wherever it stops."""
    rows: list[Row] = [(1, None, bytes(i % 50), None) for i in range(200)]
    run = run_of(rows)
    for limit in range(61, 3000, 37):
        encoder = CompiledEncoder(max_bytes=limit)
        count = encoder.extend(run.timestamps, run.keys, run.values, run.headers)
        assert encoder.count == count
        assert len(encoder.batch()) <= max(limit, 70)
        assert whole(encoder.batch()).count == count


def test_an_encoder_stops_before_a_key_that_it_cannot_encode() -> None:
    """Nothing of that record is in the batch."""
    odd: list[Headers | None] = [None, [("ok", None)], [("\udcff", None)], None]
    encoder = CompiledEncoder(max_bytes=EVERYTHING)

    assert encoder.extend([1, 2, 3, 4], [None] * 4, [b"v"] * 4, odd) == 2

    run = decoded(PARTITION, [whole(encoder.batch())], next_offset=0)
    assert run is not None
    assert rows_in(run) == [(0, 1, None, b"v", None), (1, 2, None, b"v", [("ok", None)])]


def test_a_record_without_a_timestamp_may_follow_one_that_has_one() -> None:
    """Both readers return -1, whatever the base timestamp is."""
    rows: list[Row] = [(5, b"a", None, None), (-1, b"b", None, None)]

    run = decoded(PARTITION, [batch_of(rows)], next_offset=0)

    assert run is not None
    assert run.timestamps == [5, -1]
