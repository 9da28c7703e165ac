"""The claims log on a real broker."""

from collections.abc import Iterator

import pytest

from eos_mirror.core.claims import Claim
from eos_mirror.core.records import TopicPartition
from eos_mirror.kafka.claims import KafkaClaimsLog
from eos_mirror.settings.clients import CLAIMS_CONSUMER, CLAIMS_PRODUCER
from eos_mirror.testing import KafkaCluster
from eos_mirror.testing.faults import Api
from eos_mirror.testing.proxy import fault_proxies

pytestmark = pytest.mark.brokers

TOPIC, TOPIC_ID = "claims", "id"
CLAIMS = 20


@pytest.fixture(scope="module")
def proxied(own_brokers: None) -> Iterator[KafkaCluster]:  # noqa: ARG001 (skips without)
    """One broker behind a proxy, which counts requests."""
    with KafkaCluster(name="claimed", proxied=True) as cluster:
        cluster.create_topic(TOPIC, 1, config={"cleanup.policy": "compact"})
        yield cluster


def a_log(cluster: KafkaCluster) -> KafkaClaimsLog:
    """Return a claims log as a task opens it."""
    servers = {"bootstrap.servers": cluster.proxied_bootstrap, "log_level": "3"}
    return KafkaClaimsLog(
        {**servers, **CLAIMS_PRODUCER},
        {**servers, **CLAIMS_CONSUMER, "group.id": "shadow"},
        TOPIC,
        topic_id=TOPIC_ID,
        ids=lambda names: dict.fromkeys(names, TOPIC_ID),
    )


def a_claim(number: int) -> Claim:
    """Return a claim on the partition with this number."""
    remote = TopicPartition("copies", number)
    return Claim(
        remote=remote, transactional_id=f"mirror.{number}", sequence=1, slot=0, host="here"
    )


def test_claims_are_fetched_when_they_are_read_and_not_otherwise(proxied: KafkaCluster) -> None:
    """Claims are fetched only by a read: a waiting reader would fetch 20 times a second."""
    with fault_proxies(proxied.proxy_ports) as proxies:
        log = a_log(proxied)
        assert log.read_through(None) == {}
        last = max(log.append([a_claim(0)]).values())
        assert len(log.read_through(last)) == 1

        fetched = proxies[1].seen(Api.FETCH)
        for number in range(1, CLAIMS):  # each would end a wait for updates
            last = max(log.append([a_claim(number)]).values())
        assert proxies[1].seen(Api.FETCH) - fetched < CLAIMS // 4

        assert len(log.read_through(last)) == CLAIMS
        assert proxies[1].seen(Api.FETCH) > fetched
