"""A start that must be refused prints one line that names the fix, and writes nothing."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from eos_mirror.testing import KafkaCluster, Security
from eos_mirror.testing.external import Cluster
from eos_mirror.testing.spark_cluster import master_page_port, spark_cluster
from tests.mirror.command_line import CONFIGURATION, UNSAFE, checked, refused
from tests.mirror.configurations import rewrite
from tests.mirror.conftest import Site, make_site
from tests.mirror.rights import NOTHING, grant_all_but, login_at_target
from tests.mirror.toolbox import mirror, topics_of

pytestmark = pytest.mark.brokers

TRANSACTION_STATE = "__transaction_state"


def assert_untouched(site: Site) -> None:
    """Assert that the flow has no topic, no transactional id and no group on any cluster."""
    assert not [topic for topic in topics_of(site.target) if site.flow.name in topic]
    for cluster, group in (
        (site.source, site.flow.source_group),
        (site.target, site.flow.shadow_group),
    ):
        groups = cluster.admin().list_consumer_groups().result(10).valid
        assert group not in {listing.group_id for listing in groups}
    assert not [tid for tid in noted_transactional_ids(site.target) if site.flow.name in tid]


def noted_transactional_ids(cluster: Cluster) -> set[str]:
    """Return every transactional id that the coordinators ever wrote to their own topic."""
    if TRANSACTION_STATE not in topics_of(cluster):
        return set()
    reader = Consumer(
        {**cluster.client_config(), "group.id": "notes", "enable.partition.eof": True}
    )
    partitions = len(reader.list_topics(TRANSACTION_STATE).topics[TRANSACTION_STATE].partitions)
    reader.assign([TopicPartition(TRANSACTION_STATE, p, 0) for p in range(partitions)])
    keys: set[str] = set()
    ends = 0
    while ends < partitions:
        for message in reader.consume(1000, 0.1):
            error = message.error()
            if error is None:
                keys.add(bytes(message.key() or b"").decode(errors="replace"))
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error  # noqa: SLF001
                ends += 1
    reader.close()
    return keys


def test_an_unknown_key_is_refused_with_the_nearest_one(site: Site) -> None:
    """An unknown key is never ignored: the line suggests the nearest one."""
    config = rewrite(site.config(), "tasks.max", "task.max")

    refused(config, code=CONFIGURATION, says=["task.max", "tasks.max", f"{config}:"])

    assert_untouched(site)


def test_a_spark_master_with_too_few_slots_is_refused_with_the_numbers(site: Site) -> None:
    """Too few slots are refused at the start, because a waiting task looks like a running one."""
    config = site.config(tasks_max=4, runtime="spark", spark_master="local[2]")

    refused(config, code=CONFIGURATION, says=["local[2] has 2 slots", "4"])

    assert_untouched(site)


def test_a_spark_master_that_does_not_answer_is_refused_with_its_address(site: Site) -> None:
    """Spark itself would try for a minute."""
    config = site.config(runtime="spark", spark_master="spark://127.0.0.1:9")

    says = ["no Spark master answers at 127.0.0.1:9", "Connection refused"]
    refused(config, "--check", code=CONFIGURATION, says=says)

    assert_untouched(site)


@pytest.mark.spark
@pytest.mark.long
def test_a_standalone_master_with_too_few_free_cores_is_refused_with_the_numbers(
    site: Site,
) -> None:
    """A run would wait for slots indefinitely, because only the master knows what is free."""
    with spark_cluster(site.folder, cores=2) as master:
        spark = {
            "runtime": "spark",
            "spark_master": master,
            "spark_master_ui_port": master_page_port(site.folder),
        }
        says = [f"{master} has 2 of 2 cores free, so it has slots for 2 of 4 tasks", "tasks.max"]
        refused(site.config(**spark, tasks_max=4), "--check", code=CONFIGURATION, says=says)
        assert checked(site.config(**spark, tasks_max=2))

    assert_untouched(site)


def test_a_pattern_that_matches_nothing_is_said_with_what_was_meant(site: Site) -> None:
    """The flow starts, because the topic may be created later; the check warns about a typo."""
    misspelled = site.topic.replace("orders", "ordres")
    config = rewrite(site.config(), "topics = ", f"topics = {misspelled}, ")
    warning, plan = checked(config)
    assert warning["event"] == "flow.warning"
    assert plan["topics"] == {site.topic: site.remote}
    assert f"matches {misspelled} of `topics`; did you mean" in warning["reason"]
    assert site.topic in warning["reason"].partition("did you mean")[2]


def test_an_alias_without_bootstrap_servers_is_refused(site: Site) -> None:
    """The start is refused before any cluster is contacted."""
    line = f"{site.flow.target}.bootstrap.servers = {site.target.bootstrap}\n"
    config = rewrite(site.config(), line, "")

    refused(config, code=CONFIGURATION, says=[f"{site.flow.target}.bootstrap.servers"])


def test_an_unreachable_cluster_is_refused_after_a_bounded_wait(site: Site) -> None:
    """The line names the key, the address, and the line of the configuration."""
    config = rewrite(
        site.config(cluster_connect_timeout_ms=3000), site.target.bootstrap, "127.0.0.1:9"
    )

    refused(
        config,
        code=CONFIGURATION,
        says=[f"{site.flow.target}.bootstrap.servers=127.0.0.1:9", f"{config}:3"],
    )

    assert_untouched(site)


def test_two_flows_onto_one_topic_are_refused(site: Site) -> None:
    """The line names both flows and the topic."""
    flow = site.flow
    config = site.config(replication_policy_class="IdentityReplicationPolicy")
    third = "u" + flow.source[1:]
    text = config.read_text().replace(
        f"clusters = {flow.source}, {flow.target}",
        f"clusters = {flow.source}, {flow.target}, {third}",
    )
    config.write_text(
        f"{text}{third}.bootstrap.servers = {site.source.bootstrap}\n"
        f"{third}->{flow.target}.enabled = true\n"
    )

    refused(config, code=CONFIGURATION, says=[str(flow), f"{third}->{flow.target}", site.topic])

    assert_untouched(site)
    assert site.topic not in topics_of(site.target)


def test_transactional_ids_are_found_where_coordinators_note_them(site: Site) -> None:
    """A run that succeeds leaves transactional ids, so their absence in other tests is a proof."""
    site.produce(10)
    with mirror(site.config(), "--once") as run:
        assert run.wait() == 0, run.errors

    assert [tid for tid in noted_transactional_ids(site.target) if site.flow.name in tid]


def test_a_check_that_passes_notes_no_transactional_id(site: Site) -> None:
    """The check's test requests are refused by design, even where every right is granted."""
    (plan,) = checked(site.config())

    assert plan["topics"] == {site.topic: site.remote}
    assert_untouched(site)


def test_a_transaction_longer_than_the_target_allows_is_refused(site: Site) -> None:
    """A timeout above the target's limit of 15 minutes is refused at the start."""
    config = site.config(transaction_timeout_ms=900_001)

    says = ["transaction.timeout.ms=900001", "at most 900000", "transaction.max.timeout.ms"]
    refused(config, code=CONFIGURATION, says=says)

    assert_untouched(site)
    assert checked(rewrite(config, "900001", "900000"))


def test_a_session_that_the_source_does_not_allow_is_refused(site: Site) -> None:
    """Before, each task joined the group in vain, and was restarted without end."""
    config = site.config(session_timeout_ms=1000)

    says = ["does not allow session.timeout.ms=1000", "6000 to 1800000", site.flow.source]
    refused(config, code=CONFIGURATION, says=says)

    assert_untouched(site)
    assert checked(rewrite(config, "= 1000", "= 6000"))


@pytest.mark.long
def test_a_second_run_that_may_not_wait_is_refused(site: Site) -> None:
    """The line says where the first one is. The second one starts after the first has stopped."""
    site.produce(100)
    config = site.config(session_timeout_ms=6000, standby_enabled="false")
    with mirror(config) as first:
        first.wait_for("ready")
        where = f"{socket.gethostname()}, process {first.process.pid}"
        refused(config, code=UNSAFE, says=[str(site.flow), "another run", where, "standby.enabled"])
        assert first.stop() == 0, first.errors
    with mirror(config, "--once") as second:
        assert second.wait() == 0, second.errors
    assert site.compare().exact


@pytest.fixture(scope="module")
def guarded(own_brokers: None) -> Iterator[KafkaCluster]:  # noqa: ARG001 (skips where there are none)
    """A target with users and access control."""
    with KafkaCluster(
        name="guarded",
        security=Security.SASL_PLAIN,
        users={"mirror": "pw"},
        authorizer=True,
    ) as cluster:
        yield cluster


@pytest.mark.parametrize(
    ("missing", "says"),
    [
        (0, ["not authorized", "topic"]),
        (1, ["not authorized", "READ on group"]),
        (2, ["not authorized", "transactional ids"]),
    ],
    ids=["topics", "groups", "transactional ids"],
)
def test_a_missing_right_is_named_before_anything_is_written(
    tmp_path: Path,
    source_cluster: KafkaCluster,
    guarded: KafkaCluster,
    missing: int,
    says: list[str],
) -> None:
    """The line names the topic, the group or the transactional ids, and how to grant the right."""
    grant_all_but(guarded, missing)
    site = make_site(tmp_path, source_cluster, guarded)

    refused(login_at_target(site), code=CONFIGURATION, says=[*says, "kafka-acls"])

    assert_untouched(site)


def test_a_claims_topic_that_may_not_be_written_is_named(
    tmp_path: Path, source_cluster: KafkaCluster, guarded: KafkaCluster
) -> None:
    """The line names a claims topic that exists but must not be written."""
    grant_all_but(guarded, missing=NOTHING)
    site = make_site(tmp_path, source_cluster, guarded)
    claims = site.flow.claims_topic
    guarded.create_topic(claims, 1, config={"cleanup.policy": "compact"})
    denied = AclBinding(
        ResourceType.TOPIC,
        claims,
        ResourcePatternType.LITERAL,
        "User:mirror",
        "*",
        AclOperation.WRITE,
        AclPermissionType.DENY,
    )
    for answer in guarded.admin().create_acls([denied]).values():
        answer.result(10)

    refused(
        login_at_target(site), code=CONFIGURATION, says=[f"WRITE on topic {claims}", "kafka-acls"]
    )

    assert [topic for topic in topics_of(guarded) if site.flow.name in topic] == [claims]
