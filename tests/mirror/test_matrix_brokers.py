"""
Brokers that die, freeze, move or restart: rows G3 to G6 of the failure matrix.

Killed target brokers, and a group coordinator killed inside a transaction, are in
test_target_faults.py.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import ElectionType
from confluent_kafka import TopicPartition as ClientPartition

from eos_mirror.core.flow import Flow
from eos_mirror.core.records import TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.kafka.groups import CommittedOffsets
from eos_mirror.kafka.retry import retrying
from eos_mirror.testing import KafkaCluster, wait_until
from eos_mirror.testing.entry import environ_for
from eos_mirror.testing.external import Cluster
from eos_mirror.testing.faults import Action, Api, Fault
from eos_mirror.testing.proxy import fault_proxies
from tests.mirror.configurations import config_for_three_brokers, detour
from tests.mirror.conftest import Site, make_site
from tests.mirror.crashes import assert_copied, drain, hold_a_writer, undecided, wake
from tests.mirror.load import Load
from tests.mirror.raw import NOT_COORDINATOR, coordinator_named_by, fetch_error
from tests.mirror.toolbox import mirror

pytestmark = [pytest.mark.brokers, pytest.mark.long]

COORDINATORS = ("__transaction_state", "__consumer_offsets")
FROZEN_S = 8.0
"""Longer than a broker's session with its controller, and than the transactions below last."""


@pytest.fixture(scope="module")
def trio(own_brokers: None) -> Iterator[KafkaCluster]:  # noqa: ARG001 (skips without)
    """Three brokers that survive the loss of one, and that are also reached through proxies."""
    with KafkaCluster(3, name="trio", controllers="separate", proxied=True) as cluster:
        yield cluster


@pytest.fixture
def onto_trio(tmp_path: Path, source_cluster: Cluster, trio: KafkaCluster) -> Site:
    """A flow onto three brokers."""
    return make_site(tmp_path, source_cluster, trio)


# ---------------------------------------------------------------------- G3, G4: leaders


def test_g3_a_transaction_coordinator_killed_inside_a_transaction_loses_nothing(
    onto_trio: Site, trio: KafkaCluster
) -> None:
    """The next coordinator has the transaction; the task or its successor resumes."""
    site = onto_trio
    with mirror(config_for_three_brokers(site), env=environ_for(pause_at="flushed:4")) as running:
        with Load(site).running() as load:
            task = hold_a_writer(running)
            assert undecided(site), "no transaction is open: the test proves nothing"
            node = trio.leader_of("__transaction_state", 0)
            assert node is not None
            trio.kill(node)
            os.kill(task, signal.SIGCONT)
            load.wait_for(5_000)
            trio.start_node(node)
            load.wait_for(5_000)
        drain(site, running)
        assert running.stop() == 0, running.errors
    assert_copied(site, load.count)
    reasons = " ".join(event["reason"] for event in running.found("task.restarting"))
    assert "stood still" not in reasons, reasons
    assert "FENCED_LEADER_EPOCH" not in reasons, "it continued to ask the former leader"


def move_leader(cluster: KafkaCluster, topic: str, folder: Path) -> None:
    """Make another replica of partition 0 its leader, with all brokers alive."""
    old = cluster.leader_of(topic)
    assert old is not None
    replicas = [*(node for node in cluster.spec.broker_ids if node != old), old]
    plan = folder / "plan.json"
    partition = {"topic": topic, "partition": 0, "replicas": replicas}
    plan.write_text(json.dumps({"version": 1, "partitions": [partition]}))
    cluster.tool(
        "ReassignPartitionsCommand", "--reassignment-json-file", str(plan), "--execute"
    )  # fmt: skip

    def is_moved() -> bool:
        where = [ClientPartition(topic, 0)]
        cluster.admin().elect_leaders(ElectionType.PREFERRED, where).result(10)
        return cluster.leader_of(topic) != old

    wait_until(is_moved, within=timedelta(seconds=20), what=f"another leader of {topic}")


@pytest.mark.parametrize("topic", COORDINATORS)
def test_g3_a_coordinator_that_moves_under_load_loses_nothing(
    onto_trio: Site, trio: KafkaCluster, topic: str
) -> None:
    """Its clients find the new one; a slow commit costs a new incarnation but no record."""
    site = onto_trio
    with mirror(config_for_three_brokers(site, tasks_max=2)) as running:
        with Load(site).running() as load:
            running.wait_for("ready")
            for _ in range(2):
                move_leader(trio, topic, site.folder)
                load.wait_for(5_000)
        drain(site, running)
        assert running.stop() == 0, running.errors
    assert_copied(site, load.count)


READER = """
import sys
from contextlib import suppress
from eos_mirror.core.records import TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.errors import RestartTask
from eos_mirror.kafka.groups import CommittedOffsets

offsets = CommittedOffsets({"bootstrap.servers": sys.argv[1]}, sys.argv[2], side=Side.TARGET)
print(offsets.read([TopicPartition("t", 0)]), flush=True)
while True:
    with suppress(RestartTask):
        offsets.read([TopicPartition("t", 0)])
"""


def test_g3_a_process_that_reads_a_groups_offsets_outlives_a_move_of_its_coordinator(
    trio: KafkaCluster, ns: str, tmp_path: Path
) -> None:
    """A driver reads them periodically with `--once`; an admin client would crash the process."""
    command = [sys.executable, "-c", READER, trio.bootstrap, ns]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "{}\n"  # the group's coordinator is known by now
        for _ in range(3):
            move_leader(trio, "__consumer_offsets", tmp_path)
        reader.terminate()
    assert reader.returncode == -signal.SIGTERM


def wait_for_the_move(cluster: KafkaCluster, group: str, old: int) -> None:
    """Wait until the old coordinator refuses the group, and every broker names another one."""
    brokers = cluster.admin().list_topics(timeout=10).brokers
    addresses = {node: (str(one.host), one.port) for node, one in brokers.items()}

    def is_moved() -> bool:
        named = [coordinator_named_by(one, group) for one in addresses.values()]
        is_known = all(isinstance(one, tuple) and one != addresses[old] for one in named)
        return is_known and fetch_error(addresses[old], group) == NOT_COORDINATOR

    wait_until(is_moved, within=timedelta(seconds=30), what="the new coordinator to be known")


TWICE = """
import sys
from eos_mirror.core.flow import Flow
from eos_mirror.core.records import TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.kafka.group_offsets import GroupOffsets
from eos_mirror.kafka.target import KafkaTarget

config, flow, asked = {"bootstrap.servers": sys.argv[1]}, Flow("A", sys.argv[2]), sys.argv[3]
groups, target = GroupOffsets(config, side=Side.TARGET), KafkaTarget(flow, client_config=config)
ask = {
    "groups": lambda: groups.read([flow.shadow_group]),
    "shadow": lambda: target.shadow_offsets([TopicPartition("t", 0)]),
}
print(ask[asked](), flush=True)
sys.stdin.readline()
print(ask[asked](), groups.refused, flush=True)
"""


@pytest.mark.parametrize("asked", ["groups", "shadow"])
def test_g3_an_admin_client_asks_the_coordinator_that_a_group_has_now(
    trio: KafkaCluster, ns: str, tmp_path: Path, asked: str
) -> None:
    """An answer from a remembered coordinator that has moved would crash the process."""
    flow = Flow("A", ns)
    quiet = {**trio.client_config(), "log_level": "0"}
    first = CommittedOffsets(quiet, flow.shadow_group, side=Side.TARGET)
    retrying(partial(first.read, [TopicPartition("t", 0)]))
    command = [sys.executable, "-c", TWICE, trio.bootstrap, ns, asked]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as reader:
        assert reader.stdout is not None
        before = reader.stdout.readline()
        old = trio.leader_of("__consumer_offsets")
        assert old is not None
        move_leader(trio, "__consumer_offsets", tmp_path)
        wait_for_the_move(trio, flow.shadow_group, old)
        after, _ = reader.communicate("again\n", timeout=60)
    assert reader.returncode == 0, "it crashed"
    assert after.split() == [*before.split(), "{}"]


def test_g4_a_claim_whose_leader_dies_before_it_answers_still_fences(
    onto_trio: Site, trio: KafkaCluster
) -> None:
    """The claim is sent again to the next leader; no partition is acquired before."""
    site = onto_trio
    site.produce(20_000)
    config = config_for_three_brokers(site, transaction_boundary_records=2_000)
    with mirror(config, env=environ_for(pause_at="flushed:3")) as first:
        sleeper = hold_a_writer(first)
        first.kill()
        leader = trio.leader_of(site.flow.claims_topic)
        assert leader is not None
        with fault_proxies(trio.proxy_ports) as proxies, mirror(detour(config, trio)) as second:
            lost = proxies[leader].inject(Fault(Api.PRODUCE, Action.DROP_RESPONSE))
            lost.wait_hit()
            assert not second.found("partitions.acquired"), "the fault did not hit the claim"
            trio.kill(leader)
            second.wait_for("partitions.acquired")
            drain(site, second)
            wake(sleeper)
            trio.start_node(leader)
            assert second.stop() == 0, second.errors
    assert_copied(site, 20_000)
    assert second.found("incarnation.fenced"), "nothing was fenced: the test proves nothing"


# ---------------------------------------------------------------------- G5, G6: brokers


def test_g5_a_target_that_is_away_longer_than_a_transaction_lasts_only_causes_lag(
    onto_trio: Site, trio: KafkaCluster
) -> None:
    """
    While the target is away nothing is committed; afterwards every record arrives.

    The coordinator aborts the transaction that was open. The run does not stop either: its
    session in the group of the drivers has expired, but no other run leads instead.
    """
    site = onto_trio
    lasting = {"transaction_timeout_ms": 5_000, "session_timeout_ms": 6_000}
    with mirror(config_for_three_brokers(site, tasks_max=2, **lasting)) as running:
        with Load(site).running() as load:
            running.wait_for("ready")
            load.wait_for(5_000)
            freeze(trio, *trio.spec.broker_ids)
            load.wait_for(5_000)
        # our own lane replaces the incarnation, and the client library the process
        lost = running.found("task.restarting") or running.found("transaction.lost")
        assert lost, "no transaction was lost: the test proves nothing"
        drain(site, running)
        assert not running.found("driver.superseded")
        assert running.stop() == 0, running.errors
    assert_copied(site, load.count)


def freeze(cluster: KafkaCluster, *nodes: int) -> None:
    """Pause brokers for a while with every connection open."""
    with ExitStack() as thaw:
        for node in nodes:
            cluster.pause(node)
            thaw.callback(cluster.resume, node)
        threading.Event().wait(FROZEN_S)


def roll(cluster: KafkaCluster, topic: str) -> None:
    """Restart the brokers one by one, each when the previous one is in sync again."""
    there = cluster.admin().list_topics(timeout=10).topics
    for node in cluster.spec.broker_ids:
        cluster.terminate(node)
        cluster.start_node(node)
        for one in (topic, *there.keys() & COORDINATORS):  # a source may have had no transaction
            cluster.wait_isr(one)


def kill_leader(cluster: KafkaCluster, topic: str) -> None:
    """Kill the leader of a partition, and start it again immediately."""
    node = cluster.leader_of(topic)
    assert node is not None
    cluster.kill(node)
    cluster.start_node(node)
    cluster.wait_isr(topic)


def freeze_leader(cluster: KafkaCluster, topic: str) -> None:
    """Freeze the leader of a partition for longer than its session with the controller."""
    node = cluster.leader_of(topic)
    assert node is not None
    freeze(cluster, node)
    cluster.wait_isr(topic)


@pytest.mark.parametrize("harm", [roll, freeze_leader])
def test_g6_target_brokers_that_go_and_come_lose_nothing(
    onto_trio: Site, trio: KafkaCluster, harm: Callable[[KafkaCluster, str], None]
) -> None:
    """While brokers restart or freeze under load, tasks wait or are replaced, and then resume."""
    site = onto_trio
    with mirror(config_for_three_brokers(site, tasks_max=2)) as running:
        with Load(site).running() as load:
            running.wait_for("ready")
            load.wait_for(5_000)
            harm(trio, site.remote)
            load.wait_for(5_000)
        drain(site, running)
        assert running.stop() == 0, running.errors
    assert_copied(site, load.count)


@pytest.mark.parametrize("harm", [roll, kill_leader, freeze_leader])
def test_g6_source_brokers_that_go_and_come_lose_nothing(
    tmp_path: Path,
    trio: KafkaCluster,
    target_cluster: Cluster,
    harm: Callable[[KafkaCluster, str], None],
) -> None:
    """While brokers restart, die or freeze under load, tasks resume at their positions."""
    site = make_site(tmp_path, trio, target_cluster)
    with mirror(site.config(tasks_max=2)) as running:
        with Load(site).running() as load:
            running.wait_for("ready")
            load.wait_for(5_000)
            harm(trio, site.topic)
            load.wait_for(5_000)
        drain(site, running)
        assert running.stop() == 0, running.errors
    compared = site.compare()
    assert compared.exact, str(compared)
    assert compared.matched >= load.count  # the load's producer may repeat records
