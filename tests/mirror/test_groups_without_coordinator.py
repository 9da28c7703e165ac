"""
A broker that coordinates some groups is killed: the offsets of the others are still synced.

Three brokers, and one replica of each partition of `__consumer_offsets`; the third broker is
killed, and the groups on it have no coordinator until it is back.
"""

import itertools
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from eos_mirror.core.records import TopicPartition
from eos_mirror.core.retries import LONGEST_PAUSE_S
from eos_mirror.testing import KafkaCluster, wait_until
from eos_mirror.testing.external import Cluster
from tests.mirror.conftest import Site, make_site
from tests.mirror.group_sync import SYNCED, commit, mirrored, moved, wait_moved
from tests.mirror.raw import commit_raw
from tests.mirror.toolbox import Mirror
from tests.mirror.translation import Truth, everywhere

pytestmark = [pytest.mark.brokers, pytest.mark.long]

COORDINATORS = "__consumer_offsets"
NODE = 3
"""The broker that is killed."""
SOON = timedelta(seconds=90)
KEPT = {
    "replication_factor": 3,
    "internal_topic_replication_factor": 3,
    "checkpoints_topic_replication_factor": 3,
}


@pytest.fixture
def trio(own_brokers: None) -> Iterator[KafkaCluster]:  # noqa: ARG001 (skips without)
    """Three brokers; everything except the offsets of groups survives the loss of one."""
    spread = {"offsets.topic.replication.factor": 1, "offsets.topic.num.partitions": 9}
    with KafkaCluster(3, name="trio", controllers="separate", broker_config=spread) as cluster:
        cluster.create_topic("some", 1)
        # the first commit creates the topic of the coordinators
        commit_raw(cluster.admin(), "first", {TopicPartition("some", 0): (0, "")})
        yield cluster


def java_hash(text: str) -> int:
    """Return Java's `String.hashCode` of an ASCII text."""
    value = 0
    for char in text:
        value = (31 * value + ord(char)) & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def coordinator_of(cluster: KafkaCluster, group: str) -> int | None:
    """Return the leader of the group's partition of `__consumer_offsets`."""
    count = 0

    def is_known() -> bool:  # a broker that has just started knows no partition yet
        nonlocal count
        topic = cluster.admin().list_topics(COORDINATORS, timeout=10).topics[COORDINATORS]
        count = len(topic.partitions)
        return count > 0

    wait_until(is_known, within=SOON, what=f"the partitions of {COORDINATORS}")
    return cluster.leader_of(COORDINATORS, abs(java_hash(group)) % count)


def named(cluster: KafkaCluster, stem: str, is_wanted: Callable[[int | None], bool]) -> str:
    """Return the name of a group whose coordinator is wanted."""
    names = (f"{stem}-{number}" for number in itertools.count())
    return next(name for name in names if is_wanted(coordinator_of(cluster, name)))


def site_of(folder: Path, source: Cluster, target: Cluster, trio: KafkaCluster) -> Site:
    """Return a site whose flow has groups that survive the loss of the broker."""
    while True:
        site = make_site(folder, source, target)
        own = (site.flow.source_group, site.flow.shadow_group)
        if NODE not in {coordinator_of(trio, group) for group in own}:
            return site


def in_step(config: Path) -> set[str]:
    """Return the groups that `status` reports in step; stderr has the client's own log."""
    command = [sys.executable, "-m", "eos_mirror.cli.main", "status", str(config)]
    done = subprocess.run(
        [*command, "--groups"], capture_output=True, text=True, timeout=60, check=True
    )
    assert "Traceback" not in done.stderr
    return set(re.findall(r"^  (\S+): \d+ partitions?, in step$", done.stdout, re.MULTILINE))


def crashes(running: Mirror) -> int:
    """Return how often the client library crashed a task (docs/architecture.md, issue 5040)."""
    restarts = running.found("task.restarting")
    return sum(one["reason"] == "killed by signal 11" for one in restarts)


def lose_node(trio: KafkaCluster, group: str) -> None:
    """Kill the broker, and wait until the group has no coordinator."""
    trio.kill(NODE)
    wait_until(lambda: coordinator_of(trio, group) is None, within=SOON, what="no coordinator")


def test_groups_of_the_source_whose_coordinator_is_away_keep_nobody_waiting(
    tmp_path: Path, trio: KafkaCluster, target_cluster: Cluster
) -> None:
    """The group is skipped once with its reason, and synced when the broker is back."""
    site = site_of(tmp_path, trio, target_cluster, trio)
    good = named(trio, f"good-{site.topic}", lambda node: node != NODE)
    lost = named(trio, f"lost-{site.topic}", lambda node: node == NODE)
    site.produce(400)
    for group in (good, lost):
        commit(trio, group, everywhere(site, 10))
    config = site.config(**SYNCED, groups=f".*-{site.topic}-.*")
    with mirrored(site, config) as running:
        truth = Truth(site)
        at = {offset: truth.of(everywhere(site, offset)) for offset in (10, 50, 90)}
        for group in (good, lost):
            wait_moved(site, group, at[10])
        lose_node(trio, lost)
        commit(trio, good, everywhere(site, 50))
        wait_moved(site, good, at[50])
        skipped = running.wait_for("group.skipped", group=lost, within_s=90)
        assert skipped["reason"]
        assert in_step(config) >= {good}
        trio.start_node(NODE)
        # with a raw request: a client that did not find the coordinator searches again late
        commit_raw(trio.admin(), lost, dict.fromkeys(everywhere(site, 90), (90, "")))
        wait_moved(site, lost, at[90])
        # a new process of the checkpoint task names it again
        assert len(running.found("group.skipped")) <= 1 + crashes(running)
        assert not [one["reason"] for one in running.found("checkpoints.failed")]


def test_groups_of_the_target_whose_coordinator_is_away_keep_nobody_waiting(
    tmp_path: Path, source_cluster: Cluster, trio: KafkaCluster
) -> None:
    """The group waits with its reason, and its offsets are synced when the broker is back."""
    site = site_of(tmp_path, source_cluster, trio, trio)
    good = named(trio, f"good-{site.topic}", lambda node: node != NODE)
    lost = named(trio, f"lost-{site.topic}", lambda node: node == NODE)
    site.produce(400)
    for group in (good, lost):
        commit(source_cluster, group, everywhere(site, 10))
    config = site.config(**{**SYNCED, **KEPT}, groups=f".*-{site.topic}-.*")
    with mirrored(site, config) as running:
        truth = Truth(site)
        at = {offset: truth.of(everywhere(site, offset)) for offset in (10, 50)}
        for group in (good, lost):
            wait_moved(site, group, at[10])
        lose_node(trio, lost)
        for group in (good, lost):
            commit(source_cluster, group, everywhere(site, 50))
        wait_moved(site, good, at[50])
        waiting = running.wait_for("group.waiting", group=lost, within_s=90)
        assert waiting["reason"]
        trio.start_node(NODE)
        wait_until(
            lambda: moved(site, lost, at[50]),
            within=timedelta(seconds=2 * LONGEST_PAUSE_S),
            what=f"the offsets of {lost}",
        )
        assert not [one["reason"] for one in running.found("checkpoints.failed")]
