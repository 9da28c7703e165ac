"""A cluster answers as long as one of its brokers does."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from eos_mirror.kafka.cluster_probe import ClusterProbe, Silence
from eos_mirror.kafka.deadline import Deadline
from eos_mirror.testing import KafkaCluster

pytestmark = [pytest.mark.brokers, pytest.mark.long]

CLIENTS = 10


def test_a_broker_that_has_just_died_is_no_silence_of_the_cluster() -> None:
    """Until its session is over, metadata may name it as the controller."""
    lasting = {"broker.session.timeout.ms": 60_000}
    with KafkaCluster(
        3, name="dying", controllers="separate", broker_config=lasting
    ) as cluster, ThreadPoolExecutor(CLIENTS) as pool:  # fmt: skip
        cluster.kill(3)

        def ask(_: int) -> Silence | None:
            return ClusterProbe(cluster.client_config()).ask(Deadline(timedelta(seconds=8)))

        assert set(pool.map(ask, range(CLIENTS))) == {None}
