"""
One partition without a leader: it has a reason, and requests for the others are answered.

Three brokers; `lonely` has its only replica on the third, which is killed.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from confluent_kafka.admin import OffsetSpec

from eos_mirror.core.records import TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.errors import RestartTask, SourceUnavailable, TargetUnavailable
from eos_mirror.kafka import topic_reader
from eos_mirror.kafka.metadata import ClusterMetadata
from eos_mirror.kafka.topic_reader import TopicReader
from eos_mirror.testing import KafkaCluster, read_topic, wait_until
from eos_mirror.testing.external import Cluster
from tests.mirror.conftest import Site, make_site
from tests.mirror.surgery import create_on
from tests.mirror.toolbox import mirror, produce

pytestmark = [pytest.mark.brokers, pytest.mark.long]

NODE = 3
"""The broker that is killed."""

ELECTED = COPIED = timedelta(seconds=60)


@pytest.fixture(scope="module")
def trio(own_brokers: None) -> Iterator[KafkaCluster]:  # noqa: ARG001 (skips without)
    """Three brokers of which any may die without an election of controllers."""
    with KafkaCluster(3, name="trio", controllers="separate") as cluster:
        yield cluster


@pytest.fixture
def lost_leader(trio: KafkaCluster, ns: str) -> Iterator[tuple[str, str]]:
    """Names of two topics with 5 records each: one with a leader, one whose leader is killed."""
    good, lonely = f"{ns}.good", f"{ns}.lonely"
    create_on(trio, good, 1, 2)
    create_on(trio, lonely, NODE)
    for topic in (good, lonely):
        produce(trio, topic, 5, partitions=1)
    trio.kill(NODE)
    wait_until(
        lambda: trio.leader_of(lonely) is None,
        within=timedelta(seconds=30),
        what=f"{lonely} without a leader",
    )
    yield good, lonely
    if trio.leader_of(lonely) is None:
        trio.start_node(NODE)


def test_offsets_come_for_the_partitions_that_have_a_leader(
    trio: KafkaCluster, lost_leader: tuple[str, str]
) -> None:
    """Every other partition has a reason that names it and says whether to retry."""
    good, lonely = (TopicPartition(topic, 0) for topic in lost_leader)
    missing, beyond = TopicPartition(f"{good.topic}.gone", 0), TopicPartition(good.topic, 7)
    metadata = ClusterMetadata(trio.client_config(), side=Side.SOURCE)

    found, reasons = metadata.offsets_or_reasons(
        [good, lonely, missing, beyond], OffsetSpec.latest()
    )

    assert found == {good: 5}
    assert reasons.keys() == {lonely, missing, beyond}
    assert type(reasons[lonely]) is SourceUnavailable
    assert f"{lonely}: LEADER_NOT_AVAILABLE" in str(reasons[lonely])
    assert type(reasons[missing]) is RestartTask
    assert f"{missing}: UNKNOWN_TOPIC_OR_PART" in str(reasons[missing])
    assert f"{beyond}: _UNKNOWN_PARTITION" in str(reasons[beyond])


def test_a_partition_without_a_leader_has_its_own_reason_when_it_is_asked_alone(
    trio: KafkaCluster, lost_leader: tuple[str, str]
) -> None:
    """Asked alone, each has its reason, although the client says "No leaders found" for both."""
    lonely = TopicPartition(lost_leader[1], 0)
    missing = TopicPartition(f"{lonely.topic}.gone", 0)
    metadata = ClusterMetadata(trio.client_config(), side=Side.SOURCE)

    found, reasons = metadata.offsets_or_reasons([lonely, missing], OffsetSpec.earliest())

    assert not found
    assert f"{lonely}: LEADER_NOT_AVAILABLE" in str(reasons[lonely])
    assert f"{missing}: UNKNOWN_TOPIC_OR_PART" in str(reasons[missing])


def test_a_partition_whose_leader_is_back_is_answered_for(
    trio: KafkaCluster, lost_leader: tuple[str, str]
) -> None:
    """The same client finds the new leader and returns the offset."""
    lonely = TopicPartition(lost_leader[1], 0)
    metadata = ClusterMetadata(trio.client_config(), side=Side.SOURCE)
    assert metadata.offsets_or_reasons([lonely], OffsetSpec.latest()).reasons

    trio.start_node(NODE)

    wait_until(
        lambda: metadata.offsets_or_reasons([lonely], OffsetSpec.latest()).found == {lonely: 5},
        within=timedelta(seconds=30),
        what=f"the end offset of {lonely}",
    )


def test_an_internal_topic_without_a_leader_is_named(
    trio: KafkaCluster, lost_leader: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader does not wait for a minute to say only that it has not read everything."""
    monkeypatch.setattr(topic_reader, "ELECTED", timedelta(seconds=1))
    reader = TopicReader(trio.client_config(), lost_leader[1], group="readers")
    with pytest.raises(TargetUnavailable, match=f"{lost_leader[1]}-0 has no leader: start the"):
        list(reader.updates())


def test_an_internal_topic_whose_leader_dies_while_it_is_read_is_named(
    trio: KafkaCluster, ns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The brokers name the frozen leader when reading starts, and no leader some seconds later."""
    monkeypatch.setattr(topic_reader, "ELECTED", timedelta(seconds=2))
    frozen = f"{ns}.frozen"
    create_on(trio, frozen, NODE)
    trio.pause(NODE)
    try:
        assert trio.leader_of(frozen) == NODE
        reader = TopicReader(trio.client_config(), frozen, group="readers")
        with pytest.raises(TargetUnavailable, match=f"{frozen}-0 has no leader: start the"):
            list(reader.updates())
    finally:
        trio.resume(NODE)


def test_a_leader_that_stands_still_keeps_nobody_waiting(trio: KafkaCluster, ns: str) -> None:
    """A frozen leader accepts requests and never answers; only its partition has no offset."""
    good, frozen = TopicPartition(f"{ns}.good", 0), TopicPartition(f"{ns}.frozen", 0)
    create_on(trio, good.topic, 1, 2)
    create_on(trio, frozen.topic, NODE)
    metadata = ClusterMetadata(trio.client_config(), side=Side.SOURCE)
    assert metadata.ends([good, frozen]) == {good: 0, frozen: 0}
    trio.pause(NODE)
    try:
        found, reasons = metadata.offsets_or_reasons(
            [good, frozen], OffsetSpec.latest(), within=timedelta(seconds=2)
        )
    finally:
        trio.resume(NODE)

    assert found == {good: 0}
    assert type(reasons[frozen]) is SourceUnavailable
    assert str(frozen) in str(reasons[frozen])


def test_a_cluster_that_is_gone_is_no_reason_of_a_partition() -> None:
    """An unreachable cluster raises, instead of giving every partition a reason."""
    metadata = ClusterMetadata(
        {"bootstrap.servers": "127.0.0.1:1", "log_level": "0"}, side=Side.SOURCE
    )

    with pytest.raises(SourceUnavailable):
        metadata.offsets_or_reasons(
            [TopicPartition("t", 0)], OffsetSpec.latest(), within=timedelta(seconds=1)
        )


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_partition_without_a_leader_waits_alone(
    tmp_path: Path, trio: KafkaCluster, request: pytest.FixtureRequest, side: str
) -> None:
    """It is reported from the start on, the others are mirrored, and it follows with its leader."""
    source = trio if side == "source" else request.getfixturevalue("source_cluster")
    target = trio if side == "target" else request.getfixturevalue("target_cluster")
    site = make_site(tmp_path, source, target, partitions=1)
    lonely = f"{site.topic}-lonely"
    remote = f"{site.flow.source}.{lonely}"
    if side == "source":
        create_on(trio, lonely, NODE)
    else:
        source.create_topic(lonely, 1)
        create_on(trio, remote, NODE)
    produce(source, lonely, 5, partitions=1)
    site.produce(20)
    trio.kill(NODE)
    config = site.config(refresh_topics_interval_seconds=1)
    wait_until(lambda: is_leaderless(trio, lonely, remote), within=ELECTED, what="no leader")
    try:
        with mirror(config, "--once") as once:
            assert once.wait() == 1, once.errors
            assert f"{lonely}-0 has no leader on" in once.wait_for("partition.waiting")["reason"]
            assert any("has no leader on" in line for line in once.errors), once.errors
        assert site.compare().exact
        with mirror(config) as running:
            running.wait_for("partition.waiting", partition=f"{lonely}-0")
            site.produce(20, start=20)
            site.view.wait_caught_up(site.topic, site.remote, partitions=1)
            assert_status_shows_the_others(config, site, lonely, is_known=side == "target")
            trio.start_node(NODE)
            site.view.wait_caught_up(lonely, remote, partitions=1)
            running.wait_for("ready")
            assert not running.found("task.restarting")
            assert running.stop() == 0, running.errors
    finally:
        if is_leaderless(trio, lonely, remote):
            trio.start_node(NODE)
    assert site.compare(lonely, remote).exact
    assert site.compare().exact


@pytest.mark.parametrize("exactly_once", [True, False], ids=["exactly once", "at least once"])
def test_a_remote_partition_with_too_few_replicas_in_sync_waits_alone(
    tmp_path: Path, source_cluster: Cluster, trio: KafkaCluster, exactly_once: bool
) -> None:
    """The others are mirrored, without a restart, and it follows when its replica is back."""
    site = make_site(tmp_path, source_cluster, trio, partitions=1)
    few = f"{site.topic}-few"
    remote = f"{site.flow.source}.{few}"
    source_cluster.create_topic(few, 1)
    create_on(trio, remote, 1, NODE)  # min.insync.replicas of the brokers is 2
    produce(source_cluster, few, 5, partitions=1)
    site.produce(20)
    config = site.config(
        transaction_producer=str(exactly_once).lower(),
        refresh_topics_interval_seconds=1,
        replication_factor=3,
        internal_topic_replication_factor=3,
    )
    with mirror(config, "--once") as once:
        assert once.wait() == 0, once.errors
    produce(source_cluster, few, 5, partitions=1, start=5)
    trio.kill(NODE)
    wait_until(lambda: trio.in_sync(remote) == 1, within=ELECTED, what="one replica in sync")
    try:
        with mirror(config, "--once") as once:
            assert once.wait() == 1, once.errors
        with mirror(config) as running:
            waiting = running.wait_for("partition.waiting", partition=f"{few}-0")
            site.produce(20, start=20)
            wait_until(lambda: site.compare().exact, within=COPIED, what="the other records")
            trio.start_node(NODE)
            wait_until(lambda: site.compare(few, remote).exact, within=COPIED, what="the last 5")
            running.wait_for("ready")
            assert not running.found("task.restarting")
            assert running.stop() == 0, running.errors
    finally:
        if trio.in_sync(remote) == 1:
            trio.start_node(NODE)
    assert f"{remote}-0 has 1 of 2 replicas in sync" in waiting["reason"]
    assert "min.insync.replicas" in waiting["reason"]


def test_replicas_lost_while_a_task_runs_hold_up_one_partition_at_least_once(
    tmp_path: Path, source_cluster: Cluster, trio: KafkaCluster
) -> None:
    """One batch is lost, the other partitions continue, and no record is lost."""
    site = make_site(tmp_path, source_cluster, trio, partitions=1)
    few = f"{site.topic}-few"
    remote = f"{site.flow.source}.{few}"
    source_cluster.create_topic(few, 1)
    create_on(trio, remote, 1, NODE)
    config = site.config(
        transaction_producer="false", replication_factor=3, internal_topic_replication_factor=3
    )
    with mirror(config) as running:
        running.wait_for("ready")
        trio.kill(NODE)
        try:
            wait_until(lambda: trio.in_sync(remote) == 1, within=ELECTED, what="one in sync")
            produce(source_cluster, few, 5, partitions=1)
            running.wait_for("partition.waiting", partition=f"{few}-0")
            site.produce(20)
            wait_until(lambda: site.compare().exact, within=COPIED, what="the other records")
        finally:
            trio.start_node(NODE)
        wait_until(lambda: arrived(trio, remote) == set(range(5)), within=COPIED, what="the last 5")
        # they may arrive before the partition is tried again
        running.wait_for("ready", count=2)
        # our own lane replaces the producer, and the client library the process
        lost = [*running.found("task.restarting"), *running.found("transaction.lost")]
        assert len(lost) == 1, lost
        assert running.stop() == 0, running.errors


def arrived(cluster: Cluster, topic: str) -> set[int]:
    """Return the numbers of the records that a topic has, from its values."""
    (records,) = read_topic(cluster.client_config(), topic, partitions=1)
    return {int(record.value.removeprefix(b"value-")) for record in records if record.value}


def test_verify_compares_what_has_a_leader(tmp_path: Path, trio: KafkaCluster) -> None:
    """A partition without a leader is reported as not compared; the other copies are proven."""
    site = make_site(tmp_path, trio, trio, partitions=1)
    lonely = f"{site.topic}-lonely"
    create_on(trio, lonely, NODE)
    produce(trio, lonely, 5, partitions=1)
    site.produce(20)
    config = site.config(replication_factor=3, internal_topic_replication_factor=3)
    with mirror(config, "--once") as once:
        assert once.wait() == 0, once.errors
    trio.kill(NODE)
    try:
        wait_until(lambda: is_leaderless(trio, lonely), within=ELECTED, what="no leader")
        command = [sys.executable, "-m", "eos_mirror.cli.main", "verify", str(config)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    finally:
        trio.start_node(NODE)
    assert f"not compared: {lonely}-0: {lonely}-0 has no leader on" in done.stdout, done.stderr
    assert "20 records match" in done.stdout


def is_leaderless(trio: KafkaCluster, *topics: str) -> bool:
    """Return whether the brokers know that one of these topics has no leader."""
    known = ClusterMetadata(trio.client_config(), side=Side.SOURCE).topics(topics)
    return any(topic.leaderless for topic in known.values())


def assert_status_shows_the_others(
    config: Path, site: Site, lonely: str, *, is_known: bool
) -> None:
    """Assert that `status` has a lag for each partition with a leader, and a reason for others."""
    command = [sys.executable, "-m", "eos_mirror.cli.main", "status", str(config), str(site.flow)]
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr  # it waits, and continues by itself
    found = {one["source"]: one for one in json.loads(done.stdout)["partitions"]}
    assert found[f"{site.topic}-0"]["lag"] == 0
    waiting = found[f"{lonely}-0"]
    assert waiting["state"] == "waiting"
    assert "has no leader on" in waiting["reason"]
    assert (waiting["lag"] is not None) is is_known
