"""At least once, a commit meets a rebalance of the group."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from eos_mirror.testing import KafkaCluster, wait_until
from eos_mirror.testing.external import Cluster
from eos_mirror.testing.faults import Action, Api, Fault
from eos_mirror.testing.proxy import fault_proxies
from tests.mirror.conftest import Site, make_site
from tests.mirror.load import Load
from tests.mirror.toolbox import mirror

pytestmark = pytest.mark.brokers

MODE = {"transaction_producer": "false"}


@pytest.fixture
def proxied_source(own_brokers: None) -> Iterator[KafkaCluster]:  # noqa: ARG001 (skips without)
    """A source that is reached through a proxy."""
    with KafkaCluster(name="proxied-source", proxied=True) as cluster:
        yield cluster


@contextmanager
def another_member(site: Site) -> Iterator[None]:
    """Keep another member with some of the partitions in the source group, during the block."""
    consumer = Consumer(
        {
            **site.source.client_config(),
            "group.id": site.flow.source_group,
            "partition.assignment.strategy": "cooperative-sticky",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([site.topic])

    def has_some() -> bool:
        consumer.poll(0.1)
        return bool(consumer.assignment())

    wait_until(has_some, within=timedelta(seconds=30), what="partitions for another member")
    try:
        yield
    finally:
        consumer.close()


@pytest.mark.long
def test_a_commit_that_crosses_a_rebalance_is_made_again_by_the_same_task(
    tmp_path: Path, proxied_source: KafkaCluster, target_cluster: Cluster
) -> None:
    """ILLEGAL_GENERATION for a commit that was sent after a JoinGroup does not end the task."""
    site = make_site(tmp_path, proxied_source, target_cluster)
    config = site.config(**MODE)
    direct, detour = proxied_source.bootstrap, proxied_source.proxied_bootstrap
    config.write_text(config.read_text().replace(direct, detour))
    with fault_proxies(proxied_source.proxy_ports) as proxies, mirror(config) as running:
        running.wait_for("ready")
        with Load(site).running() as load:
            load.wait_for(2_000)
            late = Fault(Api.JOIN_GROUP, Action.DELAY_RESPONSE, delay=timedelta(seconds=1.5))
            struck = proxies[1].inject(late)
            with another_member(site):
                struck.wait_hit()
                load.wait_for(5_000)
        site_ends = site.view.ends(site.topic, site.partitions)
        wait_until(
            lambda: site.view.source_positions(site.topic, site.partitions) == site_ends,
            within=timedelta(seconds=60),
            what=f"positions at {site_ends}",
        )
        assert running.stop() == 0, running.errors

    assert not running.found("task.restarting")
    compared = site.compare()
    assert compared.exact, str(compared)
