"""Topics of a real cluster."""

import uuid
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from threading import Timer

import pytest
from confluent_kafka.admin import NewTopic

from eos_mirror.core.side import Side
from eos_mirror.errors import ConfigError
from eos_mirror.kafka.authorization import MIRROR_TO, missing_topic_rights
from eos_mirror.kafka.by_topic import ALL_FENCED
from eos_mirror.kafka.topics import Topics, TopicSpec
from eos_mirror.testing import KafkaCluster, fault_proxies
from eos_mirror.testing.external import Cluster
from eos_mirror.testing.faults import Action, Api, Fault

pytestmark = pytest.mark.brokers


def test_a_topic_that_the_cluster_refuses_keeps_no_other_from_being_created(
    target_cluster: Cluster,
) -> None:
    """Each refused topic has its own reason; for an obsolete config entry it names the remedy."""
    name = f"new-{uuid.uuid4().hex[:8]}"
    good = TopicSpec(name=name, partitions=1, replication_factor=1)
    strange = replace(good, name=f"{name}-entry", config={"message.format.version": "2.8"})
    wide = replace(good, name=f"{name}-wide", replication_factor=99)
    empty = replace(good, name=f"{name}-empty", partitions=0)
    topics = Topics(target_cluster.client_config(), side=Side.TARGET)
    specs = [strange, wide, good, empty]
    for refused in (topics.create(specs, validate_only=True), topics.create(specs)):
        assert refused.keys() == {strange.name, wide.name, empty.name}
        assert isinstance(refused[strange.name], ConfigError)
        assert "message.format.version" in str(refused[strange.name])
        assert "config.properties.exclude" in str(refused[strange.name])
        assert "INVALID_REPLICATION_FACTOR" in str(refused[wide.name])
        assert "INVALID_PARTITIONS" in str(refused[empty.name])
    assert topics.wait_until_known({name: 1}) == set()
    assert not topics.list().keys() & refused.keys()


def test_a_topic_that_does_not_grow_keeps_no_other_from_growing(target_cluster: Cluster) -> None:
    """A missing topic is refused, and others grow; one with enough partitions is left as it is."""
    name = f"small-{uuid.uuid4().hex[:8]}"
    target_cluster.create_topic(name, 1)
    target_cluster.create_topic(f"{name}-large", 3)
    topics = Topics(target_cluster.client_config(), side=Side.TARGET)

    refused = topics.grow({f"{name}-gone": 3, name: 3, f"{name}-large": 3})

    assert refused.keys() == {f"{name}-gone"}
    assert "UNKNOWN_TOPIC_OR_PART" in str(refused[f"{name}-gone"])
    assert topics.wait_until_known({name: 3}) == set()


def test_a_topic_that_no_broker_knows_is_named(target_cluster: Cluster) -> None:
    """An unknown topic is named after a bounded wait, and a known one is not."""
    name = f"known-{uuid.uuid4().hex[:8]}"
    target_cluster.create_topic(name, 2)
    topics = Topics(target_cluster.client_config(), side=Side.TARGET)
    wanted = {name: 2, f"{name}-gone": 1}

    assert topics.wait_until_known(wanted, within=timedelta(seconds=1)) == {f"{name}-gone"}
    assert topics.wait_until_known({name: 3}, within=timedelta(0)) == {name}


@pytest.mark.long
def test_a_machine_that_stood_still_fences_its_broker_for_a_moment() -> None:
    """The controller then refuses each new partition, with the text that `refusals` looks for."""
    timeouts = {"broker.session.timeout.ms": 1_000, "broker.heartbeat.interval.ms": 200}
    with KafkaCluster(1, name="fenced", broker_config=timeouts) as cluster:
        topics = Topics(cluster.client_config(), side=Side.TARGET)
        admin = cluster.admin()
        topics.list()

        def refused(number: int) -> str:
            """Stop the machine for longer than the session; its first requests wait meanwhile."""
            cluster.pause(1)
            asked = admin.create_topics([NewTopic("seen", 1, 1)], validate_only=True)
            Timer(2, cluster.resume, [1]).start()
            new = TopicSpec(name=f"new-{number}", partitions=1, replication_factor=1)
            assert topics.create([new]) == {}
            return str(asked["seen"].exception(30) or "")

        seen = next(filter(None, map(refused, range(40))))
        assert "INVALID_REPLICATION_FACTOR" in seen
        assert ALL_FENCED in seen


def test_more_topics_than_a_controller_takes_at_once_are_asked_for_in_portions(
    target_cluster: Cluster,
) -> None:
    """One request may make 10,000 metadata records at most; nothing is created here."""
    topics = Topics(target_cluster.client_config(), side=Side.TARGET)
    config = {"retention.ms": "-1", "retention.bytes": "-1"}
    specs = [
        TopicSpec(name=f"many-{number}", partitions=2, replication_factor=1, config=config)
        for number in range(2_500)
    ]
    assert topics.create(specs, validate_only=True) == {}


@pytest.fixture(scope="module")
def proxied(own_brokers: None) -> Iterator[KafkaCluster]:  # noqa: ARG001 (skips without)
    """One broker, behind a proxy."""
    with KafkaCluster(name="proxied", proxied=True) as cluster:
        cluster.create_topic("orders")
        yield cluster


def test_a_question_for_rights_whose_connection_breaks_is_asked_again(
    proxied: KafkaCluster,
) -> None:
    """Such a request is retried like any other of a start: the broker may be shutting down."""
    config = {
        **proxied.client_config(),
        "bootstrap.servers": proxied.proxied_bootstrap,
        "log_level": "0",
    }
    with fault_proxies(proxied.proxy_ports) as proxies:
        topics = Topics(config, side=Side.TARGET)
        assert "orders" in topics.list()
        cut = proxies[1].inject(Fault(Api.METADATA, Action.CUT_BEFORE_RESPONSE))

        assert missing_topic_rights(topics, {"orders": MIRROR_TO}) == []

    assert cut.hits == 1


def test_a_topic_that_is_not_there_lacks_every_right(target_cluster: Cluster) -> None:
    """A client without rights cannot tell that a topic is missing, so all rights are reported."""
    topics = Topics(target_cluster.client_config(), side=Side.TARGET)

    missing = missing_topic_rights(topics, {"not-there": MIRROR_TO})

    assert missing == ["READ on topic not-there", "WRITE on topic not-there"]


def test_a_topic_that_is_gone_does_not_hide_the_others(target_cluster: Cluster) -> None:
    """Topics are described in one request, and each is answered for itself."""
    name = f"there-{uuid.uuid4().hex[:8]}"
    target_cluster.create_topic(name, 3, config={"retention.ms": "1234567"})
    topics = Topics(target_cluster.client_config(), side=Side.TARGET)
    asked = [name, f"{name}-gone"]

    described = topics.describe(asked)
    assert described.entries.keys() == {name}
    assert described.entries[name]["retention.ms"].value == "1234567"
    assert not described.refused
    assert topics.configs(asked).keys() == {name}
    assert topics.existing(asked) == {name: 3}
