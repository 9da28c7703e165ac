"""The claims log of our own lane, on three real brokers of which the leader dies."""

from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest

from eos_mirror.core.claims import Claim
from eos_mirror.core.records import TopicPartition
from eos_mirror.errors import FatalError
from eos_mirror.testing import KafkaCluster
from eos_mirror.testing.waiting import wait_until
from eos_mirror.wire.claims import WireClaimsLog
from eos_mirror.wire.cluster import Cluster
from eos_mirror.wire.security import PLAINTEXT

pytestmark = [pytest.mark.brokers, pytest.mark.long]

WITHIN = timedelta(seconds=30)
COMPACT = {"cleanup.policy": "compact", "min.insync.replicas": "2"}


@pytest.fixture(scope="module")
def three(own_brokers: None) -> Iterator[KafkaCluster]:  # noqa: ARG001 (skips without)
    """Three brokers, of which one may die."""
    with KafkaCluster(3, name="claimed", controllers="separate") as cluster:
        yield cluster


@contextmanager
def log_of(brokers: KafkaCluster, topic: str) -> Iterator[WireClaimsLog]:
    """Yield a log that names the topic by the id that it has now."""
    cluster = Cluster(brokers.bootstrap, PLAINTEXT, client_id="test")
    cluster.learn([topic], until=float("inf"))
    topic_id = urlsafe_b64encode(cluster.topics[topic].topic_id).decode().rstrip("=")
    try:
        yield WireClaimsLog(cluster, topic, topic_id=topic_id)
    finally:
        cluster.close()


def a_claim(number: int) -> Claim:
    """Return a claim on the partition with this number."""
    remote = TopicPartition("copies", number)
    return Claim(remote=remote, transactional_id=f"mirror.{number}", sequence=number)


def test_claims_outlive_their_leader(three: KafkaCluster, ns: str) -> None:
    """After the election, the same log reads all claims, appends one, and ends one."""
    three.create_topic(ns, 1, replication_factor=3, config=COMPACT)
    with log_of(three, ns) as log:
        first, second = a_claim(0), a_claim(1)
        log.append([first])
        leader = three.leader_of(ns)
        assert leader is not None
        three.kill(leader)
        assert log.read_through(None).keys() == {first.key}
        offset = log.append([second])[second.key]
        assert log.read_through(offset).keys() == {first.key, second.key}
        log.tombstone([first.key])
        assert log.read_through(None).keys() == {second.key}
        three.start_node(leader)
        three.wait_isr(ns)
    with log_of(three, ns) as other:
        assert other.read_through(None).keys() == {second.key}


def test_more_claims_than_a_batch_holds_have_their_own_offsets(
    three: KafkaCluster, ns: str
) -> None:
    """Each claim is found at the offset that was returned for it."""
    three.create_topic(ns, 1, replication_factor=3, config=COMPACT)
    with log_of(three, ns) as log:
        offsets = log.append([a_claim(number) for number in range(2_500)])
        live = log.read_through(max(offsets.values()))
    assert {key: one.offset for key, one in live.items()} == offsets


def test_a_topic_that_was_created_again_is_refused(three: KafkaCluster, ns: str) -> None:
    """An older writer may be alive: nothing is read or written under another id."""
    three.create_topic(ns, 1, replication_factor=3, config=COMPACT)
    with log_of(three, ns) as log:
        log.append([a_claim(0)])
        three.admin().delete_topics([ns])[ns].result(30)
        wait_until(lambda: three.leader_of(ns) is None, within=WITHIN, what="the deletion")
        three.create_topic(ns, 1, replication_factor=3, config=COMPACT)
        with pytest.raises(FatalError, match="created again"):
            log.append([a_claim(1)])
        with pytest.raises(FatalError, match="created again"):
            log.read_through(None)
    with log_of(three, ns) as new:
        assert not new.read_through(None)
