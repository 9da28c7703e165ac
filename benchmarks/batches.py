"""Reads the log of a topic, and checks that its batches are what the cell says."""

import mmap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import median

from benchmarks.cells import SINGLE, Cell, Compaction
from eos_mirror.testing import KafkaCluster
from eos_mirror.wire.batches import CODEC_BITS, batch_at

SAMPLED = 5_000
"""Batches of each partition that are read."""
Facts = tuple[int, int, int, bool]
"""Records, bytes, codec, and whether records are missing, of one batch."""
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
RECORD_BYTES = 18
"""What the client counts for a record besides its value: key, lengths and differences."""
LEAST_SHARE, MOST_SHARE = 0.5, 1.2
"""Records of the median batch to those that fit: headers and estimates make the difference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batches:
    """
    The batches at the start of each partition.

    Attributes:
        records: Records of the median batch.
        most_records, most_bytes: Records and bytes of the largest batch.
        gapped: Share of the batches from which records are missing.
    """

    count: int
    records: float
    most_records: int
    most_bytes: int
    codecs: frozenset[str]
    gapped: float

    def __str__(self) -> str:
        return (
            f"{self.records:g} records in the median batch, {self.most_bytes:,} bytes in the "
            f"largest, {'/'.join(sorted(self.codecs))}, {self.gapped:.0%} with gaps"
        )


def read_batches(cluster: KafkaCluster, topic: str) -> Batches:
    """Read the batches from the log files of the only broker of the cluster."""
    found: list[Facts] = []
    for folder in sorted(cluster.data(1).glob(f"{topic}-*")):
        if folder.name.removeprefix(f"{topic}-").isdigit():
            found += islice(_batches(folder), SAMPLED)
    if not found:
        raise ValueError(f"{topic} has no batches in {cluster.data(1)}")
    counts, sizes, codecs, gaps = zip(*found, strict=True)
    return Batches(
        count=len(found),
        records=median(counts),
        most_records=max(counts),
        most_bytes=max(sizes),
        codecs=frozenset(CODECS[one] for one in codecs),
        gapped=sum(gaps) / len(found),
    )


def _batches(folder: Path) -> Iterator[Facts]:
    """Yield the batches of a partition."""
    for path in sorted(folder.glob("*.log")):
        if path.stat().st_size == 0:
            continue
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as log:
            yield from _of_file(log)


def _of_file(log: mmap.mmap) -> Iterator[Facts]:
    with memoryview(log) as view:
        at = 0
        while (batch := batch_at(view, at)) is not None:
            batch.view.release()
            at += batch.size
            has_gaps = batch.next_offset - batch.base_offset != batch.count
            yield batch.count, batch.size, batch.attributes & CODEC_BITS, has_gaps


def faults(found: Batches, cell: Cell) -> Sequence[str]:
    """Return in which ways the batches are not what the cell says."""
    kept = cell.copies_of_key
    fitting = max(1, cell.batch_bytes // (cell.value_bytes + RECORD_BYTES)) / kept
    wrong = []
    if found.codecs != {cell.codec}:
        wrong.append(f"codec {'/'.join(sorted(found.codecs))} instead of {cell.codec}")
    if cell.batch_bytes == SINGLE and found.most_records != 1:
        wrong.append(f"{found.most_records} records in a batch instead of 1")
    if not LEAST_SHARE * fitting <= found.records <= MOST_SHARE * fitting:
        wrong.append(f"{found.records:g} records in the median batch instead of {fitting:.0f}")
    if (cell.compaction is Compaction.HALF) != (found.gapped > LEAST_SHARE):
        wrong.append(f"{found.gapped:.0%} of the batches have gaps")
    return wrong
