"""Short transactions, one behind the other, on a real coordinator."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from confluent_kafka import Consumer

from eos_mirror.core.records import Position, RecordRun, TopicPartition
from eos_mirror.kafka.producer import KafkaProducer
from eos_mirror.ports import ShadowCommit
from eos_mirror.testing import KafkaCluster
from eos_mirror.testing.faults import Api
from eos_mirror.testing.proxy import fault_proxies

pytestmark = pytest.mark.brokers

TRANSACTIONS, WARM_UP = 120, 40
BUDGET = timedelta(seconds=30)
REMOTE = TopicPartition("copies", 0)


@pytest.fixture(scope="module")
def proxied(own_brokers: None) -> Iterator[KafkaCluster]:  # noqa: ARG001 (skips without)
    """One broker behind a proxy, which counts requests."""
    with KafkaCluster(name="proxied", proxied=True) as cluster:
        cluster.create_topic(REMOTE.topic, 1)
        cluster.create_topic("map", 1)
        yield cluster


def a_record(offset: int) -> RecordRun:
    """One."""
    return RecordRun(
        partition=TopicPartition("originals", 0),
        offsets=[offset],
        timestamps=[1_700_000_000_000],
        keys=[b"key"],
        values=[b"value"],
        headers=[None],
        leader_epoch=None,
        size_bytes=5,
    )


def test_short_transactions_are_seldom_refused_while_markers_are_written(
    proxied: KafkaCluster,
) -> None:
    """Every refusal is one more request, and 20 ms for the record that waits."""
    with fault_proxies(proxied.proxy_ports) as proxies:
        servers = {"bootstrap.servers": proxied.proxied_bootstrap, "log_level": 3}
        group = Consumer({**servers, "group.id": "shadow"})
        producer = KafkaProducer(
            {**servers, "linger.ms": 0, "retry.backoff.ms": 5, "acks": "all"},
            "short",
            group=group.consumer_group_metadata(),
            map_topic="map",
        )
        asked = 0
        for number in range(TRANSACTIONS):
            if number == WARM_UP:
                asked = proxies[1].seen(Api.ADD_PARTITIONS_TO_TXN)
            producer.begin()
            producer.send(a_record(number), REMOTE)
            producer.flush(within=BUDGET)
            commit = ShadowCommit(position=Position(number + 1), metadata="")
            producer.commit({REMOTE: commit}, within=BUDGET)
        asked = proxies[1].seen(Api.ADD_PARTITIONS_TO_TXN) - asked
        producer.close()
        group.close()
    refused = asked - (TRANSACTIONS - WARM_UP)
    assert refused <= (TRANSACTIONS - WARM_UP) // 4
