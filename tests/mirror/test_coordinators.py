"""Coordinators that cannot work: a check says so in one line, and creates none of their topics."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from eos_mirror.core.records import TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.driver.coordinator_check import check_coordinators
from eos_mirror.driver.flow_clusters import open_clusters
from eos_mirror.errors import TargetUnavailable
from eos_mirror.kafka.coordinators import GROUPS, MIN_IN_SYNC, TRANSACTIONS, read_state
from eos_mirror.kafka.topics import Topics
from eos_mirror.settings.load import load_settings
from eos_mirror.testing import KafkaCluster, wait_until
from eos_mirror.testing.external import Cluster
from tests.mirror.command_line import CONFIGURATION, checked, refused
from tests.mirror.conftest import make_site
from tests.mirror.raw import commit_raw
from tests.mirror.toolbox import mirror, topics_of

pytestmark = [pytest.mark.brokers, pytest.mark.long]

REPLICAS = "transaction.state.log.replication.factor"
LEAST = "transaction.state.log.min.isr"
SOON = timedelta(seconds=60)


@pytest.fixture
def made(own_brokers: None) -> None:
    """The test makes clusters of its own."""


def begin_a_transaction(cluster: Cluster) -> None:
    """Let the cluster create the topic of the transaction coordinators."""
    producer = Producer({**cluster.client_config(), "transactional.id": "first"})
    producer.init_transactions(30)


@pytest.mark.usefixtures("made")
def test_a_check_creates_no_topic_of_a_coordinator(tmp_path: Path) -> None:
    """A new cluster stays as it was; the start creates what it needs."""
    with KafkaCluster(name="first") as source, KafkaCluster(name="second") as target:
        site = make_site(tmp_path, source, target)
        config = site.config()

        (plan,) = checked(config)

        assert plan["topics"] == {site.topic: site.remote}
        assert topics_of(source) == {site.topic}
        assert topics_of(target) == set()
        site.produce(10)
        with mirror(config, "--once") as run:
            assert run.wait() == 0, run.errors
        assert {GROUPS.name, TRANSACTIONS.name} <= topics_of(target)
        (flow,) = load_settings(config, environ={}).flows
        found = check_coordinators(open_clusters(flow), flow)
        assert (found.missing, found.faults, found.outages) == (frozenset(), (), ())


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({REPLICAS: 3}, [f"{REPLICAS}=3", "only 1 of them answer"]),
        ({LEAST: 2}, [f"{LEAST}=2", f"{REPLICAS}=1"]),
    ],
    ids=["too few brokers", "more in sync than there are"],
)
@pytest.mark.usefixtures("made")
def test_transactions_that_can_never_begin_are_refused(
    tmp_path: Path, source_cluster: Cluster, settings: Mapping[str, object], says: list[str]
) -> None:
    """The line names the setting of the brokers, which is Kafka's default on a single broker."""
    with KafkaCluster(name="alone", broker_config=settings) as target:
        site = make_site(tmp_path, source_cluster, target)

        refused(site.config(), "--check", code=CONFIGURATION, says=[TRANSACTIONS.name, *says])

        assert topics_of(target) == set()


@pytest.mark.usefixtures("made")
def test_a_log_of_transactions_that_accepts_no_write_is_refused(
    tmp_path: Path, source_cluster: Cluster
) -> None:
    """It needs more replicas in sync than there are."""
    with KafkaCluster(name="short") as target:
        begin_a_transaction(target)
        entry = ConfigEntry(MIN_IN_SYNC, "2", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(
            ResourceType.TOPIC, TRANSACTIONS.name, incremental_configs=[entry]
        )
        for answer in target.admin().incremental_alter_configs([resource]).values():
            answer.result(10)
        site = make_site(tmp_path, source_cluster, target)

        says = [TRANSACTIONS.name, "only 1 replica in sync for partition 0", f"{MIN_IN_SYNC}=2"]
        refused(site.config(), "--check", code=CONFIGURATION, says=says)


@pytest.fixture
def pair(made: None) -> Iterator[KafkaCluster]:  # noqa: ARG001 (skips where there are none)
    """Two brokers; only the transaction log has no copy on the other one."""
    single = {REPLICAS: 1, LEAST: 1, "transaction.state.log.num.partitions": 4}
    with KafkaCluster(2, name="pair", controllers="separate", broker_config=single) as cluster:
        begin_a_transaction(cluster)
        cluster.create_topic("some", 1)
        commit_raw(cluster.admin(), "first", {TopicPartition("some", 0): (0, "")})
        cluster.wait_isr(GROUPS.name)
        yield cluster


def test_a_log_of_transactions_without_a_leader_is_named(
    tmp_path: Path, source_cluster: Cluster, pair: KafkaCluster
) -> None:
    """A check is refused. A start warns: the broker may come back."""
    site = make_site(tmp_path, source_cluster, pair)
    topics = Topics(pair.client_config(), side=Side.TARGET)
    pair.kill(2)

    def has_leaderless() -> bool:
        with suppress(TargetUnavailable):  # the client may ask the broker that was killed
            return read_state(topics, TRANSACTIONS, side=Side.TARGET).leaderless() != []
        return False

    wait_until(
        has_leaderless,
        within=SOON,
        what="partitions without a leader",
    )
    config = site.config()

    refused(config, "--check", code=CONFIGURATION, says=[TRANSACTIONS.name, "has no leader for"])

    with mirror(config) as run:
        warning = run.wait_for("flow.warning")
        assert "has no leader for" in warning["reason"]
        pair.start_node(2)
        run.wait_for("ready", within_s=120)
        assert run.stop() == 0, run.errors
