"""Embedded clusters, on real brokers."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from eos_mirror.testing import ClusterFailed, KafkaCluster, Security, start_clusters, wait_until
from eos_mirror.testing.processes import is_running
from eos_mirror.testing.run_folder import NODE_PROCESS
from eos_mirror.testing.tools import find_tool

pytestmark = [pytest.mark.brokers, pytest.mark.usefixtures("own_brokers")]

SOON = timedelta(seconds=30)
AT_ONCE = timedelta(seconds=3)


@pytest.fixture(scope="module")
def single() -> Iterator[KafkaCluster]:
    """A single node that the tests of this file may kill."""
    with KafkaCluster(name="single") as cluster:
        yield cluster


def produce(cluster: KafkaCluster, topic: str, *values: str) -> None:
    """Write through Kafka's own producer."""
    done = cluster.tool("ConsoleProducer", "--topic", topic, stdin="\n".join(values) + "\n")
    assert done.returncode == 0, done.stderr


def consume(cluster: KafkaCluster, topic: str, count: int) -> list[str]:
    """Read committed records through Kafka's own consumer."""
    options = ["--topic", topic, "--from-beginning", "--isolation-level", "read_committed"]
    options += ["--max-messages", str(count), "--timeout-ms", "20000"]
    return cluster.tool("ConsoleConsumer", *options).stdout.split()


def test_acknowledged_records_and_the_address_survive_a_kill(single: KafkaCluster, ns: str) -> None:
    """A kill of the broker loses nothing, and clients find it at the same address."""
    single.create_topic(ns)
    produce(single, ns, "before")
    address = single.bootstrap

    single.kill(1)
    with pytest.raises(ClusterFailed, match="not running"):
        single.pause(1)
    single.start_node(1)

    assert single.bootstrap == address
    produce(single, ns, "after")
    assert consume(single, ns, 2) == ["before", "after"]


def test_a_paused_broker_hangs_and_continues(single: KafkaCluster) -> None:
    """A paused broker keeps its connections open, and answers nothing until it is resumed."""
    admin = single.admin()
    admin.list_topics(timeout=10)

    single.pause(1)
    try:
        with pytest.raises(KafkaException):
            admin.list_topics(timeout=0.5)
    finally:
        single.resume(1)

    admin.list_topics(timeout=10)


def test_a_terminated_broker_shuts_down_in_order(single: KafkaCluster) -> None:
    """SIGTERM is a controlled shutdown, as the log says."""
    single.terminate(1)

    assert "shut down completed" in single.log(1).read_text(encoding="utf-8")
    single.start_node(1)


def test_a_transaction_that_was_committed_is_on_the_disk(single: KafkaCluster, ns: str) -> None:
    """A test can read the data folder of a node with Kafka's own tools."""
    single.create_topic(ns)
    producer = Producer({**single.client_config(), "transactional.id": ns})
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce(ns, b"v")
    producer.commit_transaction(20)

    log = single.data(1) / f"{ns}-0" / "00000000000000000000.log"
    dump = single.tool("DumpLogSegments", "--print-data-log", "--files", str(log))
    assert "endTxnMarker: COMMIT" in dump.stdout
    assert ns in single.tool("TransactionsCommand", "list").stdout


def test_an_unknown_tool_lists_the_known_ones() -> None:
    """A typing error does not start a JVM."""
    with pytest.raises(KeyError, match="ConsoleConsumer"):
        find_tool("ConsolConsumer")


@pytest.mark.parametrize("security", [Security.SASL_PLAIN, Security.SASL_SCRAM])
def test_access_control_stops_a_user_without_rights(security: Security, ns: str) -> None:
    """A logged-in user may do what an ACL allows, and a wrong password is refused."""
    with KafkaCluster(security=security, users={"mirror": "pw"}, authorizer=True) as cluster:
        cluster.create_topic(ns)
        config = {**cluster.client_config("mirror"), "transactional.id": ns, "log_level": 0}
        with pytest.raises(KafkaException) as caught:
            Producer(config).init_transactions(20)
        error: KafkaError = caught.value.args[0]
        assert error.code() == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED

        allow(cluster, ResourceType.TRANSACTIONAL_ID, ns)
        allow(cluster, ResourceType.TOPIC, ns)
        producer = Producer(config)
        producer.init_transactions(20)
        producer.begin_transaction()
        producer.produce(ns, b"v")
        producer.commit_transaction(20)

        java = cluster.java_properties("mirror")
        assert 'password="pw"' in java["sasl.jaas.config"]
        with pytest.raises(KafkaException):
            Producer({**config, "sasl.password": "wrong"}).init_transactions(1)


def allow(cluster: KafkaCluster, kind: ResourceType, name: str) -> None:
    """Let the user `mirror` do everything with one resource."""
    acl = AclBinding(
        kind,
        name,
        ResourcePatternType.LITERAL,
        "User:mirror",
        "*",
        AclOperation.ALL,
        AclPermissionType.ALLOW,
    )
    for future in cluster.admin().create_acls([acl]).values():
        future.result(20)


def test_a_leader_that_dies_is_replaced_and_comes_back(ns: str) -> None:
    """With three brokers and a separate controller, any broker may die."""
    with KafkaCluster(3, controllers="separate") as cluster:
        cluster.create_topic(ns)
        cluster.wait_isr(ns)
        leader = cluster.leader_of(ns)
        assert leader in {1, 2, 3}

        cluster.kill(leader)
        wait_until(
            lambda: cluster.leader_of(ns) not in {None, leader}, within=SOON, what="a new leader"
        )
        produce(cluster, ns, "through the new leader")
        cluster.start_node(leader)
        cluster.wait_isr(ns)

        assert set(cluster.log_tails()) == {1, 2, 3, 100}


def test_the_old_transaction_protocol_can_be_asked_for() -> None:
    """The same jars run transactions as before KIP-890, for targets that are that old."""
    with KafkaCluster(features={"transaction.version": 1}) as cluster:
        options = ["describe"]
        shown = cluster.tool("FeatureCommand", *options).stdout

    line = next(line for line in shown.splitlines() if "transaction.version" in line)
    assert "FinalizedVersionLevel: 1" in line


def test_a_broker_that_does_not_start_fast_has_all_of_its_heap() -> None:
    """Such a broker has a fixed heap: one that grows and shrinks is collected more often."""
    with KafkaCluster(fast_start=False, heap="256m") as cluster:
        pid = (cluster.log(1).parent / NODE_PROCESS).read_text().split()[0]
        flags = Path(f"/proc/{pid}/cmdline").read_text().split("\0")

    assert {"-Xms256m", "-Xmx256m", "-XX:+UseG1GC"} <= set(flags)


def test_a_broken_configuration_fails_with_the_log_and_leaves_nothing() -> None:
    """All clusters of a parallel start are stopped when one of them fails."""
    good = KafkaCluster(name="good")
    bad = KafkaCluster(name="bad", broker_config={"log.retention.ms": "never"})

    with pytest.raises(ClusterFailed, match=r"node 1 exited with code 1[\s\S]*log\.retention\.ms"):
        start_clusters(good, bad)

    with pytest.raises(ClusterFailed, match="not running"):
        _ = good.bootstrap


def test_no_broker_outlives_a_killed_test_process(tmp_path: Path) -> None:
    """SIGKILL of the process that owns a cluster also kills the broker."""
    address = tmp_path / "broker"
    script = (
        "from pathlib import Path\n"
        "from eos_mirror.testing import KafkaCluster\n"
        "cluster = KafkaCluster()\n"
        "cluster.start()\n"
        f"address = Path({str(address)!r})\n"
        "text = (cluster.log(1).parent / 'process').read_text()\n"
        "address.with_suffix('.new').write_text(text)\n"
        "address.with_suffix('.new').rename(address)\n"
        "import threading; threading.Event().wait()\n"
    )
    with subprocess.Popen([sys.executable, "-c", script]) as owner:
        wait_until(address.exists, within=SOON * 2, what="the cluster is up")
        broker = address.read_text(encoding="utf-8")
        assert is_running(broker)
        owner.send_signal(signal.SIGKILL)

    # immediately, that is: by the kernel, not by the sweep of another test's next cluster
    wait_until(lambda: not is_running(broker), within=AT_ONCE, what="the broker is gone")
