"""What operators and broken disks do to a cluster: topics deleted, logs cut, bytes flipped."""

import shutil
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from confluent_kafka import ConsumerGroupTopicPartitions, Producer
from confluent_kafka import TopicPartition as ClientPartition

from eos_mirror.testing import KafkaCluster, wait_until
from eos_mirror.testing.external import Cluster
from tests.mirror.conftest import Site

NODE = 1


def produce_values(
    cluster: Cluster, topic: str, values: Iterable[bytes], *, partition: int = 0
) -> None:
    """Produce values into one partition, in one batch that is acknowledged."""
    producer = Producer({**cluster.client_config(), "linger.ms": 100})
    for value in values:
        producer.produce(topic, value, partition=partition)
    assert producer.flush(30) == 0


@contextmanager
def foreign_writer(site: Site) -> Iterator[None]:
    """Write records of another producer into remote partition 0, one by one, during the block."""
    stop = threading.Event()
    producer = Producer({**site.target.client_config(), "linger.ms": 0})

    def write() -> None:
        while not stop.is_set():
            producer.produce(site.remote, b"foreign", partition=0)
            producer.flush(5)

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def delete_topic(cluster: Cluster, topic: str) -> None:
    """Delete a topic, and wait until the cluster no longer lists it."""
    admin = cluster.admin()
    admin.delete_topics([topic])[topic].result(10)
    wait_until(
        lambda: topic not in admin.list_topics(timeout=5).topics,
        within=timedelta(seconds=20),
        what=f"{topic} to be gone",
    )


def delete_records(cluster: Cluster, topic: str, *, before: int, partition: int = 0) -> None:
    """Delete the first records of a partition, as retention does."""
    cut = [ClientPartition(topic, partition, before)]
    for answer in cluster.admin().delete_records(cut).values():
        answer.result(10)


def log_of(cluster: KafkaCluster, topic: str, partition: int = 0) -> Path:
    """Return the folder of a partition on a cluster of one node."""
    return cluster.data(NODE) / f"{topic}-{partition}"


def segment_of(cluster: KafkaCluster, topic: str, partition: int = 0) -> Path:
    """Return the only segment of a partition."""
    (segment,) = log_of(cluster, topic, partition).glob("*.log")
    return segment


@contextmanager
def halted(cluster: KafkaCluster) -> Iterator[None]:
    """Stop the broker cleanly for the block; after a clean stop it trusts its files."""
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
    assert data.count(value) == 1, f"{value!r} is {data.count(value)} times in {segment}"
    at = data.index(value)
    segment.write_bytes(data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :])


def create_on(cluster: KafkaCluster, topic: str, *nodes: int) -> None:
    """Create a topic with one partition and one replica on each of these nodes."""
    assignment = ":".join(map(str, nodes))
    cluster.tool(
        "TopicCommand", "--create", "--topic", topic, "--replica-assignment", assignment
    )  # fmt: skip
    wait_until(
        lambda: cluster.leader_of(topic) is not None,
        within=timedelta(seconds=20),
        what=f"a leader of {topic}",
    )


def edit_position(site: Site, partition: int, offset: int) -> None:
    """Change a shadow offset, as a person with an admin client would."""
    edited = ConsumerGroupTopicPartitions(
        site.flow.shadow_group, [ClientPartition(site.remote, partition, offset)]
    )
    for answer in site.target.admin().alter_consumer_group_offsets([edited]).values():
        answer.result(10)
