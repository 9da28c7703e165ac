"""
Divides what was polled into parts, at the end of a batch.

A transaction ends between two parts, so parts must not be larger than its limits allow.
"""

from typing import Final

from eos_mirror.core.records import RecordRun
from eos_mirror.ports import Polled
from eos_mirror.wire.fetched_run import FetchedRun

PART_BYTES: Final = 1 << 20
PART_RECORDS: Final = 1_000
"""A part ends with the batch that reaches one of these."""


def divided(polled: Polled) -> tuple[Polled, Polled | None]:
    """
    Return the first runs, and what follows them; None if nothing does.

    Ends and faults come after all runs.
    """
    records, size_bytes = PART_RECORDS, 0
    for i, run in enumerate(polled.runs):
        if records <= 0 or size_bytes >= PART_BYTES:
            return _cut(polled, polled.runs[:i], polled.runs[i:])
        if run.count > records and isinstance(run, FetchedRun) and len(run.batches) > 1:
            head, tail = _halves(run, records)
            return _cut(polled, [*polled.runs[:i], head], [tail, *polled.runs[i + 1 :]])
        records -= run.count
        size_bytes += run.size_bytes
    return polled, None


def _cut(polled: Polled, first: list[RecordRun], rest: list[RecordRun]) -> tuple[Polled, Polled]:
    return Polled(runs=first), Polled(runs=rest, ends=polled.ends, faults=polled.faults)


def _halves(run: FetchedRun, records: int) -> tuple[FetchedRun, FetchedRun]:
    """Divide a run with several batches after the batch that reaches this many records."""
    count = i = 0
    while count < records and i < len(run.batches) - 1:
        count += run.batches[i].count
        i += 1
    batches = run.batches
    return FetchedRun(run.partition, batches[:i]), FetchedRun(run.partition, batches[i:])
