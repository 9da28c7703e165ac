"""Creates and fills the topic of a cell, and checks what the log contains."""

from benchmarks.batches import Batches, faults, read_batches
from benchmarks.cells import SINGLE, Cell, Compaction
from benchmarks.compacted import COMPACT, EAGER, compact
from benchmarks.records import fill
from eos_mirror.testing import KafkaCluster

CONFIGS = {Compaction.NONE: {}, Compaction.ALL: COMPACT, Compaction.HALF: EAGER}


def filled(cluster: KafkaCluster, cell: Cell) -> Batches:
    """
    Create and fill the topic of a cell; return what its batches are.

    Raises:
        ValueError: They are not what the cell says.
    """
    each = cell.records * cell.copies_of_key // cell.partitions
    cluster.create_topic(cell.topic, cell.partitions, config=CONFIGS[cell.compaction])
    fill(
        cluster,
        cell.topic,
        count=each * cell.partitions,
        value_bytes=cell.value_bytes,
        producer_config={
            "batch.size": max(cell.batch_bytes, cell.value_bytes),
            "compression.type": cell.codec,
            **({"batch.num.messages": 1} if cell.batch_bytes == SINGLE else {}),
        },
        headers=cell.headers,
        copies_of_key=cell.copies_of_key,
    )
    if cell.compaction is Compaction.HALF:
        compact(cluster, cell.topic, each=each)
    found = read_batches(cluster, cell.topic)
    if wrong := faults(found, cell):
        raise ValueError(f"{cell.topic}: {'; '.join(wrong)}")
    return found
