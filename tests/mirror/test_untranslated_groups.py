"""If no group can be translated on one partition, groups on other partitions are synced."""

import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AclOperation

from eos_mirror.core.records import TopicPartition
from eos_mirror.testing import KafkaCluster, wait_until
from eos_mirror.testing.external import Cluster
from tests.mirror.command_line import groups
from tests.mirror.conftest import Site, make_site
from tests.mirror.group_sync import SYNCED, commit, mirrored, moved, wait_moved, wait_rounds
from tests.mirror.rights import allow_again, deny, guarded_cluster, login, resource_of
from tests.mirror.surgery import create_on, edit_position
from tests.mirror.toolbox import mirror, produce
from tests.mirror.translation import Truth, everywhere

pytestmark = [pytest.mark.brokers, pytest.mark.long]

NODE = 3
"""The broker that is killed."""

SOON = timedelta(seconds=90)
KEPT = {
    "replication_factor": 2,
    "internal_topic_replication_factor": 3,
    "checkpoints_topic_replication_factor": 3,
    "offset-syncs_topic_replication_factor": 3,
}


@pytest.fixture(scope="module")
def guarded(own_brokers: None) -> Iterator[KafkaCluster]:  # noqa: ARG001 (skips without)
    """Source and target in one, with users and access control."""
    with guarded_cluster() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def trio(own_brokers: None) -> Iterator[KafkaCluster]:  # noqa: ARG001 (skips without)
    """Three brokers of which any may die without an election of controllers."""
    with KafkaCluster(3, name="trio", controllers="separate") as cluster:
        yield cluster


def test_a_position_that_was_edited_keeps_no_group_waiting_on_other_partitions(site: Site) -> None:
    """Without its metadata an edited position has no map end; other partitions are still synced."""
    site.produce(400)
    commit(site.source, "readers", everywhere(site, 10))
    with mirrored(site, site.config(**SYNCED, groups="readers")) as running:
        truth = Truth(site)
        wait_moved(site, "readers", truth.of(everywhere(site, 10)))
        edit_position(site, 1, 7)
        commit(site.source, "readers", everywhere(site, 50))
        others = {p: at for p, at in truth.of(everywhere(site, 50)).items() if p.partition != 1}
        wait_until(lambda: moved(site, "readers", others), within=SOON, what="the others")
        told = running.wait_for("groups.untranslated")
        wait_rounds(running, 3)
        assert told["partition"] == f"{site.remote}-1"
        assert "not written by eos_mirror" in told["reason"]
        assert len(running.found("groups.untranslated")) == 1
        assert not running.found("checkpoints.failed")
        site.produce(400, start=400)  # the task's next commit writes the metadata again
        wait_moved(site, "readers", truth.of(everywhere(site, 50)))


def test_records_of_others_in_the_offset_map_are_passed_over(site: Site) -> None:
    """Records whose keys are no partition of the flow are skipped, and the map is complete."""
    site.produce(400)
    commit(site.source, "readers", everywhere(site, 10))
    config = site.config(**SYNCED, groups="readers")
    with mirrored(site, config) as running:
        truth = Truth(site)
        wait_moved(site, "readers", truth.of(everywhere(site, 10)))
        producer = Producer(site.target.client_config())
        for key in (b"\xad", b"{}", b"[1]", b"7", b'["t",0,"x","y"]', b'["t",0,7]'):
            producer.produce(site.flow.offset_map_topic, b"nonsense", key)
        assert producer.flush(10) == 0
        commit(site.source, "readers", everywhere(site, 50))
        wait_moved(site, "readers", truth.of(everywhere(site, 50)))
        wait_rounds(running, 3)
        assert not running.found("checkpoints.failed")

    assert groups(config)["readers"]["partitions"][0]["upstream"] == 50
    flow = str(site.flow)
    file = str(config)
    for verb in (["translate", file, flow, site.topic, "0", "5"], ["verify", file, flow]):
        done = subprocess.run(
            [sys.executable, "-m", "eos_mirror.cli.main", *verb],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done


def test_a_right_on_one_copy_keeps_no_group_waiting_on_other_copies(
    tmp_path: Path, guarded: KafkaCluster
) -> None:
    """Groups on other copies are synced; this one follows when the right is granted again."""
    site = make_site(tmp_path, guarded, guarded)
    other = Site(**{**vars(site), "topic": f"{site.topic}-other"})
    guarded.create_topic(other.topic, other.partitions)
    names = {one.topic: f"readers-{one.topic}" for one in (site, other)}
    for one in (site, other):
        one.produce(400)
        commit(guarded, names[one.topic], everywhere(one, 10))
    config = login(site, **SYNCED, groups="readers-.*")
    resource = resource_of("remote topic", site.flow, site)
    with mirror(config) as running:
        for one in (site, other):
            one.wait_caught_up()
            wait_moved(one, names[one.topic], Truth(one).of(everywhere(one, 10)))
        deny(guarded, resource, AclOperation.DESCRIBE)
        try:
            for one in (site, other):
                commit(guarded, names[one.topic], everywhere(one, 50))
            wait_moved(other, names[other.topic], Truth(other).of(everywhere(other, 50)))
            wait_rounds(running, 3)
            assert not running.found("checkpoints.failed")
        finally:
            allow_again(guarded, resource, AclOperation.DESCRIBE)
        wait_until(
            lambda: moved(site, names[site.topic], Truth(site).of(everywhere(site, 50))),
            within=SOON,
            what="the offsets of the group after the right is granted again",
        )
        running.stop()


def test_a_copy_without_a_leader_keeps_no_group_waiting_on_other_copies(
    tmp_path: Path, source_cluster: Cluster, trio: KafkaCluster
) -> None:
    """At least once, a copy's end is read from its leader; groups on other copies are synced."""
    site = make_site(tmp_path, source_cluster, trio, partitions=1)
    lonely = Site(**{**vars(site), "topic": f"{site.topic}-lonely"})
    source_cluster.create_topic(lonely.topic, 1)
    create_on(trio, site.remote, 1, 2)
    create_on(trio, lonely.remote, NODE)
    names = {one.topic: f"readers-{one.topic}" for one in (site, lonely)}
    for one in (site, lonely):
        produce(source_cluster, one.topic, 100, partitions=1)
        commit(source_cluster, names[one.topic], {TopicPartition(one.topic, 0): 100})
    mode = {"emit_offset-syncs_enabled": "true", "transaction_producer": "false"}
    config = site.config(**{**SYNCED, **KEPT, **mode}, groups="readers-.*")
    with mirror(config) as running:
        for one in (site, lonely):
            wait_moved(one, names[one.topic], {TopicPartition(one.remote, 0): 100})
        trio.kill(NODE)
        wait_until(lambda: trio.leader_of(lonely.remote) is None, within=SOON, what="no leader")
        rounds = len(running.found("checkpoints.emitted"))
        produce(source_cluster, site.topic, 100, partitions=1, start=100)
        for one in (site, lonely):
            commit(source_cluster, names[one.topic], {TopicPartition(one.topic, 0): 200})
        wait_until(
            lambda: moved(site, names[site.topic], {TopicPartition(site.remote, 0): 200}),
            within=SOON,
            what="the offsets of the group on the copy with a leader",
        )
        running.wait_for("checkpoints.emitted", count=rounds + 2)
        told = running.wait_for("groups.untranslated")
        assert told["partition"] == f"{lonely.remote}-0"
        assert "LEADER_NOT_AVAILABLE" in told["reason"]
        assert not running.found("checkpoints.failed")
        trio.start_node(NODE)
        produce(source_cluster, lonely.topic, 100, partitions=1, start=100)
        wait_until(
            lambda: moved(lonely, names[lonely.topic], {TopicPartition(lonely.remote, 0): 200}),
            within=SOON,
            what="the offsets of the other group after its leader is back",
        )
        running.stop()
