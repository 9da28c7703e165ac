"""Makes a topic whose log has been compacted, and that is not compacted again."""

from datetime import timedelta

from confluent_kafka import Producer
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from benchmarks.records import FIRST_TIMESTAMP_MS, count_partitions
from eos_mirror.testing import KafkaCluster, wait_until

COMPACT = {"cleanup.policy": "compact"}
EAGER = {**COMPACT, "min.cleanable.dirty.ratio": "0.001"}
LAZY_RATIO = "0.99"
SEGMENT_MS = 8 * 24 * 3_600 * 1_000
"""Longer than a segment may last: a record that is so much younger begins the next segment."""
COMPACTED_WITHIN = timedelta(minutes=3)
CHECKPOINT = "cleaner-offset-checkpoint"


def compact(cluster: KafkaCluster, topic: str, *, each: int) -> None:
    """
    Wait until the cleaner has compacted the first `each` offsets of every partition.

    One more record is appended to each partition, because the cleaner never touches the segment
    that is written to. The topic must have been created with `EAGER`.

    Raises:
        TimeoutError: It has not happened in `COMPACTED_WITHIN`.
    """
    partitions = count_partitions(cluster, topic)
    producer = Producer(cluster.client_config())
    for partition in range(partitions):
        producer.produce(
            topic, b"closing", b"closing", partition, timestamp=FIRST_TIMESTAMP_MS + SEGMENT_MS
        )
    if left := producer.flush(60):
        raise RuntimeError(f"{topic}: {left} records were not acknowledged in 60 s")
    wait_until(
        lambda: _cleaned(cluster, topic) >= {(p, each) for p in range(partitions)},
        within=COMPACTED_WITHIN,
        what=f"the compaction of {topic}",
    )
    entry = ConfigEntry(
        "min.cleanable.dirty.ratio",
        LAZY_RATIO,
        incremental_operation=AlterConfigOpType.SET,
    )
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    cluster.admin().incremental_alter_configs([resource])[resource].result(30)


def _cleaned(cluster: KafkaCluster, topic: str) -> set[tuple[int, int]]:
    """Return each partition of the topic, and the first offset that is not compacted."""
    path = cluster.data(1) / CHECKPOINT
    if not path.exists():
        return set()
    rows = (line.split() for line in path.read_text().splitlines()[2:])
    return {(int(row[1]), int(row[2])) for row in rows if row[0] == topic}
