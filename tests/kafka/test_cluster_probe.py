"""A cluster answers as long as one of its brokers does."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from eos_mirror.core.side import Side
from eos_mirror.kafka.cluster_probe import ClusterProbe, Silence
from eos_mirror.kafka.coordinators import GROUPS, read_state
from eos_mirror.kafka.deadline import Deadline
from eos_mirror.kafka.retry import retrying
from eos_mirror.kafka.topics import Topics
from eos_mirror.testing import KafkaCluster

pytestmark = [pytest.mark.brokers, pytest.mark.long]

CLIENTS = 10
WITHIN = timedelta(seconds=30)
"""Half of the session of the broker that is killed."""


def test_a_broker_that_has_just_died_is_no_silence_of_the_cluster() -> None:
    """Until its session is over, metadata may name it as the controller."""
    lasting = {"broker.session.timeout.ms": 60_000}
    with KafkaCluster(
        3, name="dying", controllers="separate", broker_config=lasting
    ) as cluster, ThreadPoolExecutor(CLIENTS) as pool:  # fmt: skip
        cluster.kill(3)

        def ask(_: int) -> Silence | None:
            return ClusterProbe(cluster.client_config()).ask(Deadline(WITHIN))

        assert set(pool.map(ask, range(CLIENTS))) == {None}


def test_a_request_that_waited_for_a_dead_controller_is_sent_to_another_one() -> None:
    """The client is replaced, so a later attempt finds a controller that lives."""
    lasting = {"broker.session.timeout.ms": 60_000}
    with KafkaCluster(2, name="dying", controllers="separate", broker_config=lasting) as cluster:
        some = [Topics(cluster.client_config(), side=Side.TARGET) for _ in range(CLIENTS)]
        for topics in some:
            topics.list()
        cluster.kill(2)

        def ask(topics: Topics) -> bool:
            return retrying(
                lambda _: read_state(topics, GROUPS, side=Side.TARGET), within=WITHIN
            ).is_missing

        with ThreadPoolExecutor(CLIENTS) as pool:
            assert set(pool.map(ask, some)) == {True}
