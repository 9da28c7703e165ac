"""What operators and broken disks do to a cluster: topics deleted, logs cut, bytes flipped."""

import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka import TopicPartition as ClientPartition

from eos_mirror.testing import KafkaCluster, wait_until
from eos_mirror.testing.external import Cluster

NODE = 1


def produce_values(
    cluster: Cluster, topic: str, values: Iterable[bytes], *, partition: int = 0
) -> None:
    """One batch, acknowledged, into one partition."""
    producer = Producer({**cluster.client_config(), "linger.ms": 100})
    for value in values:
        producer.produce(topic, value, partition=partition)
    assert producer.flush(30) == 0


def delete_topic(cluster: Cluster, topic: str) -> None:
    """Delete, and wait until nobody knows it."""
    admin = cluster.admin()
    admin.delete_topics([topic])[topic].result(10)
    wait_until(
        lambda: topic not in admin.list_topics(timeout=5).topics,
        within=timedelta(seconds=20),
        what=f"{topic} to be gone",
    )


def delete_records(cluster: Cluster, topic: str, *, before: int, partition: int = 0) -> None:
    """What retention does: the log starts later."""
    cut = [ClientPartition(topic, partition, before)]
    for answer in cluster.admin().delete_records(cut).values():
        answer.result(10)


def log_of(cluster: KafkaCluster, topic: str, partition: int = 0) -> Path:
    """The folder of a partition on a cluster of one node."""
    return cluster.data(NODE) / f"{topic}-{partition}"


def segment_of(cluster: KafkaCluster, topic: str, partition: int = 0) -> Path:
    """Its only segment."""
    (segment,) = log_of(cluster, topic, partition).glob("*.log")
    return segment


@contextmanager
def halted(cluster: KafkaCluster) -> Iterator[None]:
    """A clean stop around the block; a broker that comes back from one trusts its files."""
    cluster.terminate(NODE)
    yield
    cluster.start_node(NODE)


def keep_copy(cluster: KafkaCluster, topic: str, *, into: Path) -> None:
    """Halt the cluster and copy the log of partition 0, to put it back later."""
    with halted(cluster):
        shutil.copytree(log_of(cluster, topic), into / topic)


def put_back(cluster: KafkaCluster, topic: str, *, kept: Path) -> None:
    """Halt the cluster and replace the log of partition 0 by the older, shorter copy."""
    with halted(cluster):
        shutil.rmtree(log_of(cluster, topic))
        shutil.copytree(kept / topic, log_of(cluster, topic))


def corrupt(segment: Path, value: bytes) -> None:
    """Flip one byte of the only record that has this value."""
    data = segment.read_bytes()
    assert data.count(value) == 1, f"{value!r} stands {data.count(value)} times in {segment}"
    at = data.index(value)
    segment.write_bytes(data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :])
