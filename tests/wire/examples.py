"""Records and batches for the tests of the wire."""

from collections.abc import Sequence
from struct import pack_into

from crc32c import crc32c
from hypothesis import strategies

from eos_mirror.core.records import DecodedRun, Headers, TopicPartition
from eos_mirror.wire.batches import Batch, batch_at
from eos_mirror.wire.builder import BatchBuilder
from eos_mirror.wire.own_records import Record

PARTITION = TopicPartition("orders", 3)
NOW_MS = 1_700_000_000_000
EVERYTHING = 2**30

FIELDS = strategies.none() | strategies.binary(max_size=300)
HEADER_KEYS = strategies.one_of(
    strategies.text(max_size=20),  # without surrogates
    strategies.binary(max_size=20).map(lambda data: data.decode(errors="surrogateescape")),
    strategies.just("a\0b"),
)
HEADER_LISTS = strategies.lists(strategies.tuples(HEADER_KEYS, FIELDS), max_size=4)
TIMESTAMPS = strategies.sampled_from([-1, 0, NOW_MS]) | strategies.integers(-1, 2**62)
ROWS = strategies.lists(
    strategies.tuples(TIMESTAMPS, FIELDS, FIELDS, HEADER_LISTS.map(lambda each: each or None)),
    min_size=1,
    max_size=30,
)
"""Timestamp, key, value and headers of records."""

Row = tuple[int, bytes | None, bytes | None, Headers | None]


def run_of(rows: Sequence[Row], first: int = 0) -> DecodedRun:
    """Return records as a run whose offsets have no gap."""
    timestamps, keys, values, headers = (list(column) for column in zip(*rows, strict=True))
    return DecodedRun(
        partition=PARTITION,
        offsets=list(range(first, first + len(rows))),
        timestamps=timestamps,
        keys=keys,
        values=values,
        headers=headers,
        leader_epoch=None,
        size_bytes=sum(len(value) for value in values if value is not None),
    )


def plain_rows(count: int, *, value_bytes: int = 20) -> list[Row]:
    """Return records with a key, a value and sometimes a header."""
    return [
        (
            NOW_MS + i,
            b"key %d" % i,
            (b"value %d " % i).ljust(value_bytes, b"."),
            [("h", b"1")] * (i % 2),
        )
        for i in range(count)
    ]


def batch_of(rows: Sequence[Row], *, base_offset: int = 0, codec: int = 0, epoch: int = 7) -> Batch:
    """Return records as a batch that a broker stored at an offset."""
    builder = BatchBuilder(codec=codec, max_bytes=EVERYTHING, max_records=EVERYTHING)
    assert builder.add(run_of(rows), 0) == len(rows)
    return stored(builder.built().view, base_offset=base_offset, epoch=epoch)


def stored(view: memoryview, *, base_offset: int, epoch: int = 7) -> Batch:
    """Return a batch as a broker stores it."""
    pack_into(">q", view, 0, base_offset)
    pack_into(">i", view, 12, epoch)
    return whole(view)


def whole(data: memoryview | bytes | bytearray) -> Batch:
    """Return complete bytes as a batch."""
    batch = batch_at(memoryview(data), 0)
    assert batch is not None
    return batch


def changed(batch: Batch, layout: str, at: int, *fields: int) -> Batch:
    """Return a copy with other fields at an index, and the checksum that belongs to them."""
    copy = bytearray(batch.view)
    pack_into(layout, copy, at, *fields)
    return whole(sealed(copy))


def sealed(data: bytearray) -> memoryview:
    """Return the bytes of a batch with the right checksum."""
    pack_into(">I", data, 17, crc32c(memoryview(data)[21:]))
    return memoryview(data)


def with_attributes(batch: Batch, attributes: int) -> Batch:
    """Return a copy with other attributes."""
    return changed(batch, ">h", 21, attributes)


def of_producer(batch: Batch, producer_id: int, *, attributes: int = 0x10) -> Batch:
    """Return a copy that belongs to a transaction of a producer."""
    return changed(with_attributes(batch, attributes), ">q", 43, producer_id)


def answer(*batches: Batch) -> memoryview:
    """Return batches as the records field of a Fetch answer."""
    return memoryview(bytearray(b"".join(batch.view for batch in batches)))


def rows_in(run: DecodedRun) -> list[Record]:
    """Return the records of a run."""
    return list(zip(run.offsets, run.timestamps, run.keys, run.values, run.headers, strict=True))


def numbered(rows: Sequence[Row], first: int = 0) -> list[Record]:
    """Return the records that a run of these rows has."""
    return [(first + i, *row[:3], row[3] or None) for i, row in enumerate(rows)]
