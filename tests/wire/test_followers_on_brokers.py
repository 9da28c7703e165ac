"""A follower in the rack of the client is read instead of the leader (KIP-392)."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from eos_mirror.core.records import TopicPartition
from eos_mirror.testing import KafkaCluster
from eos_mirror.testing.spec import rack_of
from eos_mirror.testing.waiting import wait_until
from eos_mirror.wire.cluster import Cluster
from eos_mirror.wire.fetcher import Fetcher
from eos_mirror.wire.security import PLAINTEXT
from tests.wire.reader import WITHIN, Reader
from tests.wire.real_topic import PARTITIONS, SETTINGS, Topic

pytestmark = [pytest.mark.brokers, pytest.mark.long]

SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
NEAR = 2


@pytest.fixture(scope="module")
def racks(own_brokers: None) -> Iterator[KafkaCluster]:  # noqa: ARG001 (skips without)
    """Three brokers, each in its own rack."""
    config = {"replica.selector.class": SELECTOR}
    with KafkaCluster(3, name="racks", controllers="separate", broker_config=config) as cluster:
        yield cluster


def test_a_follower_in_the_same_rack_is_read(racks: KafkaCluster, ns: str) -> None:
    """All partitions are read from the broker nearby; when it dies, from the others."""
    topic = Topic(racks, ns)
    assert racks.leaders(ns) == {1, 2, 3}, "each broker leads"
    settings = replace(SETTINGS, rack=rack_of(NEAR))
    fetcher = Fetcher(Cluster(racks.bootstrap, PLAINTEXT, client_id="test"), settings)
    try:
        reader = Reader(fetcher)
        reader.start(dict.fromkeys(topic.partitions, 0))
        produce(topic)
        reader.read_to(topic.ends)
        assert asked(fetcher) == dict.fromkeys(topic.partitions, NEAR)

        produce(topic)
        reader.read_to(topic.ends)
        assert asked(fetcher) == dict.fromkeys(topic.partitions, NEAR)

        racks.kill(NEAR)
        produce(topic)
        reader.read_to(topic.ends)
        assert NEAR not in asked(fetcher).values()
        assert not reader.faults

        racks.start_node(NEAR)
        racks.wait_isr(ns)

        def is_near_again() -> bool:
            produce(topic, count=1)
            reader.read_to(topic.ends)
            return asked(fetcher) == dict.fromkeys(topic.partitions, NEAR)

        wait_until(is_near_again, within=WITHIN, what="the follower to be read again")
    finally:
        fetcher.close()


def produce(topic: Topic, *, count: int = 50) -> None:
    """Append records to every partition."""
    for partition in topic.partitions:
        topic.produce(partition, count)
    topic.flush()


def asked(fetcher: Fetcher) -> dict[TopicPartition, int | None]:
    """Return which broker each partition was asked of last."""
    readings = fetcher._plan.readings  # noqa: SLF001 (no one else knows)
    assert len(readings) == PARTITIONS
    return {partition: reading.asked_of for partition, reading in readings.items()}
