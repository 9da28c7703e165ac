"""A topic on three real brokers, small answers of which are fetched."""

from datetime import timedelta

from confluent_kafka import Producer

from eos_mirror.core.records import TopicPartition
from eos_mirror.testing import KafkaCluster
from eos_mirror.wire.fetcher import FetchSettings

PARTITIONS = 6
SETTINGS = FetchSettings(wait_ms=100, answered_within_s=2.0, partition_bytes=4_000)

PATIENCE = timedelta(seconds=150)
"""A leader waits 30 s for a replica that does not follow (replica.lag.time.max.ms)."""


class Topic:
    """
    A topic of the cluster.

    Attributes:
        ends: Records produced, by partition.
    """

    def __init__(self, cluster: KafkaCluster, name: str) -> None:
        cluster.create_topic(name, PARTITIONS, replication_factor=3)
        self.partitions = [TopicPartition(name, number) for number in range(PARTITIONS)]
        self.ends = dict.fromkeys(self.partitions, 0)
        config = {**cluster.client_config(), "acks": "all", "enable.idempotence": True}
        self._producer = Producer({**config, "linger.ms": 0, "log_level": 0})

    def produce(self, partition: TopicPartition, count: int) -> None:
        """Append records to a partition."""
        for _ in range(count):
            self._producer.produce(partition.topic, b"v" * 100, b"k", partition.partition)
        self.ends[partition] += count

    def flush(self) -> None:
        """Wait until every record has arrived, also where a frozen replica must be left behind."""
        assert self._producer.flush(PATIENCE.total_seconds()) == 0
