"""Clients that got Metadata without brokers: librdkafka may never search for one again."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from eos_mirror.core.records import Position, TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.errors import RestartTask
from eos_mirror.kafka import reconnecting
from eos_mirror.kafka.leadership import Leadership
from eos_mirror.kafka.reconnecting import ReconnectingProducer
from eos_mirror.kafka.source import KafkaSource
from eos_mirror.kafka.topic_writer import TopicWriter
from eos_mirror.kafka.topics import Topics
from eos_mirror.settings.clients import MEMBER
from eos_mirror.testing import FaultProxy, KafkaCluster, fault_proxies, read_topic, wait_until
from eos_mirror.testing.faults import Action, Api, Fault
from tests.engine.bench import Listener

pytestmark = pytest.mark.brokers

ORDERS = TopicPartition("orders", 0)
ASK_S, MANY = 1.0, 10
WIDE = "wide", 300
"""The longer an answer takes to read, the likelier the client loses its brokers meanwhile."""

SOON, LOST_WITHIN = timedelta(seconds=30), timedelta(seconds=90)


@pytest.fixture(scope="module")
def cluster(own_brokers: None) -> Iterator[KafkaCluster]:  # noqa: ARG001 (skips without)
    """One broker with a topic, also reachable through a proxy."""
    with KafkaCluster(name="lonely", proxied=True) as cluster:
        cluster.create_topic(ORDERS.topic, 1)
        cluster.create_topic(*WIDE)
        yield cluster


@pytest.fixture
def proxy(cluster: KafkaCluster) -> Iterator[FaultProxy]:
    """The proxy in front of the broker."""
    with fault_proxies(cluster.proxy_ports) as proxies:
        yield proxies[1]


def config_of(cluster: KafkaCluster) -> dict[str, str]:
    """Return a client configuration that uses the proxy and logs nothing."""
    return {
        **cluster.client_config(),
        "bootstrap.servers": cluster.proxied_bootstrap,
        "log_level": "0",
    }


def is_answered(client: AdminClient | Consumer | Producer) -> bool:
    """Return whether the client finds a broker to ask."""
    try:
        client.list_topics(timeout=ASK_S)
    except KafkaException:
        return False
    return True


@contextmanager
def no_brokers(proxy: FaultProxy) -> Iterator[Fault]:
    """Make every Metadata answer name no broker."""
    fault = proxy.inject(Fault(Api.METADATA, Action.HIDE_BROKERS, times=None))
    try:
        yield fault
    finally:
        proxy.clear()


def lose(proxy: FaultProxy, client: AdminClient | Consumer) -> None:
    """Hide the brokers until this client finds none any more, although they are shown again."""

    def is_lost() -> bool:
        with no_brokers(proxy) as fault:
            while fault.hits < MANY and is_answered(client):
                pass
        return not any(is_answered(client) for _ in range(3))

    wait_until(is_lost, within=LOST_WITHIN, what="a client that is lost")


@pytest.mark.long
def test_a_client_that_finds_no_broker_any_more_is_replaced(
    cluster: KafkaCluster, proxy: FaultProxy
) -> None:
    """A lost client, which would never be answered again, is replaced."""
    topics = Topics(config_of(cluster), side=Side.SOURCE)
    assert ORDERS.topic in topics.list()
    lost = topics.admin
    lose(proxy, lost)

    assert ORDERS.topic in topics.list()
    assert topics.admin is not lost
    assert not is_answered(lost)


def a_source(cluster: KafkaCluster) -> KafkaSource:
    """Return a source that reads the topic from its start."""
    listener = Listener()
    group = {"group.id": "lonely-readers", "group.instance.id": "0"}
    source = KafkaSource({**config_of(cluster), **MEMBER, **group}, listener)
    source.subscribe([ORDERS.topic])

    def granted() -> bool:
        source.poll(wait=timedelta(milliseconds=50))
        return ORDERS in listener.granted

    wait_until(granted, within=SOON, what="grant")
    source.assign({ORDERS: Position(0)})
    return source


def values(source: KafkaSource) -> list[bytes | None]:
    """Return the values of one poll."""
    return [
        v for run in source.poll(wait=timedelta(milliseconds=20)).runs for v in run.decoded().values
    ]


@pytest.mark.long
def test_a_consumer_that_finds_no_broker_any_more_ends_its_task(
    cluster: KafkaCluster, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lost consumer ends its task; an idle one, also in an outage and after it, may wait."""
    monkeypatch.setattr(reconnecting, "SILENT_S", 0.1)
    source = a_source(cluster)
    consumer = source._consumer  # noqa: SLF001 (nothing else shows if it is lost)
    wait_until(lambda: values(source) == [] and is_answered(consumer), within=SOON, what="idle")
    proxy.part()
    for _ in range(3):
        assert values(source) == []
    proxy.heal()
    wait_until(lambda: is_answered(consumer), within=SOON, what="the reconnect")
    producer = Producer(cluster.client_config())
    producer.produce(ORDERS.topic, b"after the outage", partition=0)
    assert producer.flush(10) == 0
    wait_until(lambda: values(source) == [b"after the outage"], within=SOON, what="the record")
    lose(proxy, consumer)

    with pytest.raises(RestartTask, match="finds no broker any more"):
        wait_until(lambda: values(source) != [], within=SOON, what="the error")


@pytest.mark.long
def test_a_member_that_finds_no_broker_any_more_stands_by_with_a_new_client(
    cluster: KafkaCluster, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lost member gets a new client, or it would lead or wait whatever the group assigns."""
    monkeypatch.setattr(reconnecting, "SILENT_S", 0.1)
    session = timedelta(seconds=6)
    member = Leadership(config_of(cluster), group="drivers", topic=ORDERS.topic, session=session)
    wait_until(lambda: member.poll(timedelta(0)), within=SOON, what="the lead")
    first = member._consumer  # noqa: SLF001 (nothing else shows which one it is)
    lose(proxy, first)

    wait_until(
        lambda: member.poll(timedelta(0)) and member._consumer is not first,  # noqa: SLF001
        within=SOON,
        what="another client",
    )
    wait_until(lambda: member.poll(timedelta(0)) and member._has_it, within=SOON, what="the lead")  # noqa: SLF001
    other = Leadership(
        cluster.client_config(), group="drivers", topic=ORDERS.topic, session=session
    )
    member.close()
    wait_until(lambda: other.poll(timedelta(0)), within=SOON, what="the other one leads")
    other.close()


def test_a_producer_that_is_replaced_writes_nothing_behind_the_next_one(
    cluster: KafkaCluster, proxy: FaultProxy
) -> None:
    """A replaced producer writes no older checkpoint after a newer one: it would rewind a group."""
    cluster.create_topic("notes", 1)
    producer = ReconnectingProducer(config_of(cluster))
    proxy.part()
    first = producer.client
    first.produce("notes", b"older", partition=0)
    producer.replace()
    proxy.heal()
    producer.client.produce("notes", b"newer", partition=0)
    assert producer.client.flush(SOON.total_seconds()) == 0
    wait_until(lambda: is_answered(first), within=SOON, what="the first one is back")
    first.flush(1)

    notes = read_topic(cluster.client_config(), "notes", partitions=1)[0]
    assert [note.value for note in notes] == [b"newer"]


def test_who_appends_has_another_client_after_an_outage(
    cluster: KafkaCluster, proxy: FaultProxy
) -> None:
    """A client is replaced even if a configured timeout ends the record before the deadline."""
    cluster.create_topic("log", 1)
    log = TopicWriter({**config_of(cluster), "message.timeout.ms": "500"}, "log")
    log.append([("key", "before")])
    first = log._producer  # noqa: SLF001 (nothing else shows its client)
    assert first is not None
    client = first.client
    proxy.part()
    with pytest.raises(RestartTask, match="_MSG_TIMED_OUT"):
        log.append([("key", "meanwhile")])
    assert first.client is not client
    proxy.heal()
    log.append([("key", "after")])

    written = read_topic(cluster.client_config(), "log", partitions=1)[0]
    assert [one.value for one in written] == [b"before", b"after"]
