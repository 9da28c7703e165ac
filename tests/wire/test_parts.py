"""What was polled is handed over in parts that end with a batch."""

from eos_mirror.core.records import DecodedRun, TopicPartition
from eos_mirror.ports import Polled
from eos_mirror.wire.batches import Batch
from eos_mirror.wire.builder import BatchBuilder
from eos_mirror.wire.fetched_run import FetchedRun
from eos_mirror.wire.parts import PART_RECORDS, divided

PARTITION = TopicPartition("orders", 0)


def batch_of(first: int, records: int) -> Batch:
    """Return a batch with this many small records from an offset on."""
    builder = BatchBuilder(codec=0, max_bytes=1_000_000, max_records=100_000)
    builder.add(
        DecodedRun(
            partition=PARTITION,
            offsets=range(first, first + records),
            timestamps=[1] * records,
            keys=[None] * records,
            values=[b"v"] * records,
            headers=[None] * records,
            leader_epoch=None,
            size_bytes=records,
        ),
        0,
    )
    batch = builder.built()
    batch.base_offset, batch.next_offset = first, first + records
    return batch


def parts_of(*sizes: int) -> list[Polled]:
    """Return the parts of a run whose batches have these sizes."""
    batches, at = [], 0
    for size in sizes:
        batches.append(batch_of(at, size))
        at += size
    rest: Polled | None = Polled(runs=[FetchedRun(PARTITION, batches)], ends={PARTITION: at})
    parts = []
    while rest is not None:
        part, rest = divided(rest)
        parts.append(part)
    return parts


def test_a_part_ends_with_the_batch_that_fills_it() -> None:
    """Its size is near the limit, and every record is handed over once, in order."""
    parts = parts_of(*[PART_RECORDS // 4] * 10)

    counts = [sum(run.count for run in part.runs) for part in parts]
    assert counts == [PART_RECORDS, PART_RECORDS, PART_RECORDS // 2]
    runs = [run for part in parts for run in part.runs]
    assert [run.stretches() for run in runs] == [
        [(0, PART_RECORDS)],
        [(PART_RECORDS, PART_RECORDS)],
        [(2 * PART_RECORDS, PART_RECORDS // 2)],
    ]


def test_the_end_of_a_partition_comes_after_its_last_record() -> None:
    """An earlier part says nothing about the end."""
    parts = parts_of(PART_RECORDS, PART_RECORDS)

    assert [part.ends for part in parts] == [{}, {PARTITION: 2 * PART_RECORDS}]


def test_a_batch_is_never_divided() -> None:
    """A batch that is larger than a part is a part."""
    parts = parts_of(3 * PART_RECORDS, 1)

    assert [sum(run.count for run in part.runs) for part in parts] == [3 * PART_RECORDS, 1]


def test_what_is_small_is_handed_over_whole() -> None:
    """One part has everything."""
    (part,) = parts_of(1, 1)

    assert part.ends == {PARTITION: 2}
