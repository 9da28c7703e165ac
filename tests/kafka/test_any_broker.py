"""Answers that name no broker: all brokers of a cluster are fenced, as while it starts."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

import eos_mirror
from eos_mirror.core.side import Side
from eos_mirror.kafka.cluster_probe import ClusterProbe
from eos_mirror.kafka.deadline import Deadline
from eos_mirror.kafka.metadata import ClusterMetadata
from eos_mirror.testing import KafkaCluster, fault_proxies
from eos_mirror.testing.faults import Action, Api, Fault

SOON = timedelta(seconds=3)
MAY_ASK = {"acls.py"}
"""It looks for brokers first."""


def test_no_other_module_asks_what_may_abort_the_process() -> None:
    """DescribeCluster aborts it if the answer names no broker."""
    folder = Path(eos_mirror.__file__).parent
    found = {path.name for path in folder.rglob("*.py") if ".describe_cluster(" in path.read_text()}

    assert found == MAY_ASK


@pytest.fixture
def cluster(own_brokers: None) -> Iterator[KafkaCluster]:  # noqa: ARG001 (skips without)
    """One broker behind a proxy."""
    with KafkaCluster(name="fenced", proxied=True) as cluster:
        yield cluster


@pytest.mark.brokers
def test_a_cluster_without_brokers_is_silent_until_one_is_back(cluster: KafkaCluster) -> None:
    """The process lives, and a new client finds the broker."""
    with fault_proxies(cluster.proxy_ports) as proxies:
        config = {**cluster.client_config(), "bootstrap.servers": cluster.proxied_bootstrap}
        probe, metadata = ClusterProbe(config), ClusterMetadata(config, side=Side.TARGET)
        metadata.connect()
        assert probe.ask(Deadline(2 * SOON)) is None
        proxies[1].inject(Fault(Api.METADATA, Action.HIDE_BROKERS, times=None))
        metadata.connect()  # the client still knows the broker, so it asks

        probe.ask(Deadline(SOON))  # the same
        assert probe.ask(Deadline(SOON)) is not None
        proxies[1].clear()
        assert probe.ask(Deadline(2 * SOON)) is None
