"""The failure matrix, limits: rights that are withdrawn and queues that are full."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AclOperation, ResourceType

from eos_mirror.core.records import Position, TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.kafka.groups import set_group_offsets
from eos_mirror.ports import GroupOffset
from eos_mirror.testing import KafkaCluster
from tests.mirror.conftest import Site, make_site
from tests.mirror.load import Load
from tests.mirror.rights import (
    LITERAL,
    Resource,
    allow_again,
    deny,
    guarded_cluster,
    login,
    resource_of,
)
from tests.mirror.toolbox import mirror, produce

pytestmark = [pytest.mark.brokers, pytest.mark.long]


@pytest.fixture(scope="module")
def guarded(own_brokers: None) -> Iterator[KafkaCluster]:  # noqa: ARG001 (skips without)
    """Source and target in one, with users and access control."""
    with guarded_cluster() as cluster:
        yield cluster


@pytest.mark.parametrize(
    ("kind", "operation"),
    [
        ("transactional id", AclOperation.WRITE),
        ("shadow group", AclOperation.READ),
        ("source group", AclOperation.READ),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_p4_a_right_withdrawn_while_mirroring_ends_the_task_with_its_name(
    tmp_path: Path, guarded: KafkaCluster, kind: str, operation: AclOperation
) -> None:
    """
    A new run resumes exactly when the right is granted again.

    The task restarts once at most, if the client first reports a consequence of the missing right.
    """
    site = make_site(tmp_path, guarded, guarded)
    resource = resource_of(kind, site.flow, site)
    config = login(site)
    with mirror(config) as running, Load(site).running() as load:
        running.wait_for("ready")
        load.wait_for(5_000)
        deny(guarded, resource, operation)
        try:
            failed = running.wait_for("task.failed", within_s=30)
            assert running.wait() == 1, running.errors
        finally:
            allow_again(guarded, resource, operation)

    restarts = [one["reason"] for one in running.found("task.restarting")]
    assert len(restarts) <= 1, restarts
    assert failed["cause"] == "NotAuthorized"
    assert operation.name in failed["reason"]
    with mirror(config, "--once") as again:
        assert again.wait() == 0, again.errors
    compared = site.compare()
    assert compared.exact, str(compared)
    assert compared.matched == load.count


@pytest.mark.parametrize(
    ("kind", "operation"),
    [
        ("remote topic", AclOperation.WRITE),
        ("remote topic", AclOperation.READ),
        ("source topic", AclOperation.READ),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_p4_a_right_on_one_topic_stops_its_partitions_until_it_is_back(
    tmp_path: Path, guarded: KafkaCluster, kind: str, operation: AclOperation
) -> None:
    """Other topics are mirrored meanwhile, and the partitions resume without a restart."""
    site = make_site(tmp_path, guarded, guarded)
    other = f"{site.topic}-other"
    guarded.create_topic(other, 1)
    resource = resource_of(kind, site.flow, site)
    with mirror(login(site, tasks_max=1)) as running, Load(site).running() as load:
        running.wait_for("ready")
        load.wait_for(2_000)
        deny(guarded, resource, operation)
        try:
            stopped = running.wait_for("partition.stopped", within_s=60)
            running.wait_for("partition.stopped", count=site.partitions, within_s=60)
            produce(guarded, other, 100, partitions=1)
            site.view.wait_caught_up(other, f"{site.flow.source}.{other}", partitions=1)
        finally:
            allow_again(guarded, resource, operation)
        running.wait_for("partition.resumed", count=site.partitions, within_s=90)
    assert stopped["cause"] == "RightMissing"
    assert operation.name in stopped["reason"]
    assert resource[1] in stopped["reason"]
    assert not running.found("task.failed")
    with mirror(login(site), "--once") as again:
        assert again.wait() == 0, again.errors
    compared = site.compare()
    assert compared.exact, str(compared)
    assert compared.matched == load.count


def test_p5_a_full_queue_of_the_producer_is_waited_for(site: Site) -> None:
    """A transaction of a hundred times the client's queue arrives once and in order."""
    site.produce(50_000)
    config = site.config(transaction_boundary_interval_ms=10_000)
    with config.open("a") as file:
        file.write(f"{site.flow.target}.producer.queue.buffering.max.messages = 500\n")

    with mirror(config, "--once") as running:
        assert running.wait() == 0, running.errors

    assert not running.found("task.restarting")
    compared = site.compare()
    assert compared.exact, str(compared)
    assert compared.matched == 50_000


def test_a_target_that_refuses_to_configure_a_topic_is_told_of(
    tmp_path: Path, guarded: KafkaCluster
) -> None:
    """The refusal is reported, and the records of the topic are mirrored."""
    site = make_site(tmp_path, guarded, guarded)
    config = login(site)
    with config.open("a") as file:
        file.write("sync.topic.configs.enabled = true\nconfig.properties.exclude = x\n")
    guarded.create_topic(site.remote, site.partitions)
    guarded.tool(
        "ConfigCommand", "--alter", "--topic", site.topic, "--add-config", "flush.ms=123456789"
    )
    deny(guarded, (ResourceType.TOPIC, site.remote, LITERAL), AclOperation.ALTER_CONFIGS)
    with mirror(config) as running:
        refused = running.wait_for("topic.alter-failed", topic=site.remote)
        assert refused["set"] == {"flush.ms": "123456789"}
        assert "AUTHORIZATION" in refused["reason"]
        site.produce(100)
        site.wait_caught_up()
        assert running.stop() == 0, running.errors


@pytest.mark.parametrize("operation", [AclOperation.READ, AclOperation.DESCRIBE])
def test_groups_are_followed_also_when_commits_cannot_be_heard(
    tmp_path: Path, guarded: KafkaCluster, operation: AclOperation
) -> None:
    """The missing right is reported once, and the interval still emits the checkpoints."""
    site = make_site(tmp_path, guarded, guarded)
    site.produce(400)
    group = f"readers of {site.topic}"
    commits: Resource = (ResourceType.TOPIC, "__consumer_offsets", LITERAL)
    config = login(
        site,
        emit_checkpoints_enabled="true",
        emit_checkpoints_interval_seconds=1,
        sync_group_offsets_enabled="true",
        sync_group_offsets_interval_seconds=1,
    )
    partitions = {
        TopicPartition(site.topic, p): GroupOffset(position=Position(10, None), metadata="")
        for p in range(site.partitions)
    }
    deny(guarded, commits, operation)
    try:
        with mirror(config) as running:
            running.wait_for("group-commits.unreadable")
            set_group_offsets(guarded.admin(), group, partitions, side=Side.SOURCE)
            told = len(running.found("checkpoints.emitted"))
            running.wait_for("checkpoints.emitted", count=told + 3)
            assert running.stop() == 0, running.errors
    finally:
        allow_again(guarded, commits, operation)

    (unheard,) = running.found("group-commits.unreadable")
    assert "authorization" in unheard["reason"].lower()
    assert not running.found("checkpoints.failed")


def test_a_source_connector_needs_no_group_on_the_source(
    tmp_path: Path, guarded: KafkaCluster
) -> None:
    """MirrorMaker 2 has none either, so its principal has no right on one."""
    site = make_site(tmp_path, guarded, guarded)
    resource = resource_of("source group", site.flow, site)
    deny(guarded, resource, AclOperation.ALL)
    try:
        site.produce(1_000)
        with mirror(login(site, connector_type="source"), "--once") as running:
            assert running.wait() == 0, running.errors
    finally:
        allow_again(guarded, resource, AclOperation.ALL)

    assert site.compare().matched == 1_000


def test_a_source_connector_needs_the_group_of_the_drivers(
    tmp_path: Path, guarded: KafkaCluster
) -> None:
    """Nothing else keeps the tasks of two runs apart, so a missing right is a fault."""
    site = make_site(tmp_path, guarded, guarded)
    resource = (ResourceType.GROUP, site.flow.drivers_group, LITERAL)
    deny(guarded, resource, AclOperation.READ)
    try:
        with mirror(login(site, connector_type="source"), "--once") as refused:
            assert refused.wait() == 2
    finally:
        allow_again(guarded, resource, AclOperation.READ)

    (line,) = refused.errors
    assert f"READ on group {site.flow.drivers_group}" in line
