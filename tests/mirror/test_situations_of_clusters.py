"""As test_situations.py, where a whole cluster, a broker, a password or a right is the cause."""

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import pytest
from confluent_kafka.admin import AclOperation, ResourcePatternType, ResourceType

from eos_mirror.testing import KafkaCluster, Security, fault_proxies, wait_until
from eos_mirror.testing.clients import create_scram_users
from eos_mirror.testing.external import Cluster
from tests.mirror.conftest import make_site
from tests.mirror.rights import allow_again, deny, guarded_cluster, login
from tests.mirror.situation_stage import SEEN_BY_THE_RUN, WELL, Seen, away, staged
from tests.mirror.situations import stopped
from tests.mirror.surgery import create_on

pytestmark = [pytest.mark.brokers, pytest.mark.long, pytest.mark.usefixtures("own_brokers")]


NODE = 3
"""The broker that is killed."""

COMMITTED = timedelta(seconds=30)


@pytest.fixture(scope="module")
def proxied(own_brokers: None) -> Iterator[KafkaCluster]:  # noqa: ARG001 (skips without)
    """A cluster that is reached through a proxy."""
    with KafkaCluster(name="proxied", proxied=True) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def guarded(own_brokers: None) -> Iterator[KafkaCluster]:  # noqa: ARG001 (skips without)
    """A cluster with access control; a test denies rights on its own topics only."""
    with guarded_cluster() as cluster:
        yield cluster


@pytest.fixture
def trio(own_brokers: None) -> Iterator[KafkaCluster]:  # noqa: ARG001 (skips without)
    """Three brokers of which any may die without an election of controllers."""
    with KafkaCluster(3, name="trio", controllers="separate") as cluster:
        yield cluster


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_cluster_does_not_answer(
    tmp_path: Path, source_cluster: Cluster, proxied: KafkaCluster, side: str
) -> None:
    """No place shows a mirror that works; after the outage everything is well."""
    clusters = (proxied, source_cluster) if side == "source" else (source_cluster, proxied)
    site = make_site(tmp_path, *clusters)
    config = site.config(**SEEN_BY_THE_RUN)
    config.write_text(config.read_text().replace(proxied.bootstrap, proxied.proxied_bootstrap))
    alias = site.flow.source if side == "source" else site.flow.target
    with ExitStack() as network:
        network.enter_context(fault_proxies(proxied.proxy_ports))
        with staged(site, config) as stage:
            network.close()
            stage.shows(away(alias))
            network.enter_context(fault_proxies(proxied.proxy_ports))
            stage.running.wait_for("cluster.recovered", cluster=alias)
            site.produce(10)
            site.wait_caught_up()
            stage.shows(WELL)


def test_a_password_is_changed_on_the_target(tmp_path: Path, source_cluster: Cluster) -> None:
    """The cluster answers, and refuses the login; the old password is set again."""
    with KafkaCluster(
        name="scram", security=Security.SASL_SCRAM, users={"mirror": "pw"}
    ) as cluster:
        site = make_site(tmp_path, source_cluster, cluster)
        config = site.config(**SEEN_BY_THE_RUN)
        with config.open("a") as file:
            for key, value in cluster.java_properties("mirror").items():
                if key != "bootstrap.servers":
                    file.write(f"{site.flow.target}.{key} = {value}\n")
        with staged(site, config) as stage:
            create_scram_users(cluster.admin(), {"mirror": "other"})
            cluster.terminate(1)  # connections that are logged in would stay
            cluster.start_node(1)
            stage.shows(away(site.flow.target))
            create_scram_users(cluster.admin(), {"mirror": "pw"})
            stage.running.wait_for("cluster.recovered", cluster=site.flow.target)
            stage.shows(WELL)


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_right_on_a_topic_is_withdrawn(tmp_path: Path, guarded: KafkaCluster, side: str) -> None:
    """The reason names the right and the topic; the partitions resume when it is back."""
    site = make_site(tmp_path, guarded, guarded)
    name = site.topic if side == "source" else site.remote
    operation = AclOperation.READ if side == "source" else AclOperation.WRITE
    resource = (ResourceType.TOPIC, name, ResourcePatternType.LITERAL)
    with staged(site, login(site, **SEEN_BY_THE_RUN)) as stage:
        deny(guarded, resource, operation)
        site.produce(40)
        stage.shows(stopped("RightMissing", operation.name))
        allow_again(guarded, resource, operation)
        stage.shows(WELL)


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_partition_has_no_leader(
    tmp_path: Path, source_cluster: Cluster, trio: KafkaCluster, side: str
) -> None:
    """The partition waits until its broker is back."""
    clusters = (trio, source_cluster) if side == "source" else (source_cluster, trio)
    site = make_site(tmp_path, *clusters, partitions=1)
    lonely = site.topic if side == "source" else site.remote
    if side == "source":
        trio.admin().delete_topics([lonely])[lonely].result(10)
    create_on(trio, lonely, NODE)
    internal = {"internal_topic_replication_factor": 3} if side == "target" else {}
    with staged(site, site.config(**SEEN_BY_THE_RUN, **internal)) as stage:
        # Kafka skips the marker of a broker that dies between the commit and its marker
        wait_until(lambda: site.compare().exact, within=COMMITTED, what="the copies to be seen")
        trio.kill(NODE)
        if side == "target":
            site.produce(10)  # a task notices when it writes
        stage.shows(
            Seen(state="waiting", partition="waiting", words="has no leader", is_ready=False)
        )
        trio.start_node(NODE)
        stage.shows(WELL)
