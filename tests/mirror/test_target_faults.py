"""A target that dies, hangs, or answers late: no record is lost or doubled, and nothing stalls."""

import os
import random
import signal
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from eos_mirror.testing import KafkaCluster, wait_until
from eos_mirror.testing.entry import environ_for
from eos_mirror.testing.external import Cluster
from eos_mirror.testing.faults import Action, Api, Fault
from eos_mirror.testing.proxy import fault_proxies
from tests.mirror.configurations import config_for_three_brokers
from tests.mirror.conftest import Site, make_site
from tests.mirror.crashes import hold_a_writer, undecided
from tests.mirror.load import Load
from tests.mirror.toolbox import Mirror, mirror

pytestmark = [pytest.mark.brokers, pytest.mark.long]

KILLS = int(os.environ.get("EOS_MIRROR_KILLS", "3"))
"""Number of broker kills; 10 for the figures of a release."""

DOWN = timedelta(seconds=2)
SETTLED = timedelta(seconds=60)


@pytest.fixture(scope="module")
def three_brokers(own_brokers: None) -> Iterator[KafkaCluster]:  # noqa: ARG001 (skips without)
    """A target that survives the loss of a broker: replication factor 3, two in sync."""
    with KafkaCluster(3, name="trio", controllers="separate") as cluster:
        yield cluster


def assert_exact(site: Site, load: Load, running: Mirror) -> None:
    """Assert that every record of the load arrives once and in order."""
    try:
        site.view.wait_caught_up(site.topic, site.remote, partitions=site.partitions, within_s=90)
    except TimeoutError as exc:
        positions = site.view.positions(site.remote, site.partitions)
        exc.add_note(f"{positions} {running.events[-20:]} {running.errors[-9:]}")
        raise
    assert running.stop() == 0, running.errors
    compared = site.compare()
    assert compared.exact, str(compared)
    assert compared.matched == load.count


def restart(cluster: KafkaCluster, node: int) -> None:
    """Start a killed node again after its down time, and wait until it serves."""
    threading.Event().wait(DOWN.total_seconds())
    cluster.start_node(node)


def test_killed_target_brokers_lose_and_double_nothing(
    tmp_path: Path,
    source_cluster: Cluster,
    three_brokers: KafkaCluster,
    record_property: Callable[[str, object], None],
) -> None:
    """Random brokers that are killed under load and back after two seconds lose no record."""
    seed = random.randrange(2**32)
    record_property("seed", seed)
    dice = random.Random(seed)
    site = make_site(tmp_path, source_cluster, three_brokers)
    with mirror(config_for_three_brokers(site, tasks_max=2)) as running:
        running.wait_for("ready")
        with Load(site).running() as load:
            for _ in range(KILLS):
                load.wait_for(dice.randrange(2_000, 16_000))
                node = dice.randrange(1, 4)
                three_brokers.kill(node)
                restart(three_brokers, node)
                three_brokers.wait_isr(site.remote)
        assert_exact(site, load, running)


def test_a_broker_killed_between_flush_and_offsets_loses_nothing(
    tmp_path: Path, source_cluster: Cluster, three_brokers: KafkaCluster
) -> None:
    """The coordinator dies when records are written and their offsets are not: nothing is lost."""
    site = make_site(tmp_path, source_cluster, three_brokers)
    with mirror(config_for_three_brokers(site), env=environ_for(pause_at="flushed:4")) as running:
        with Load(site).running() as load:
            task = hold_a_writer(running)
            node = three_brokers.leader_of("__consumer_offsets", 0)
            assert node is not None
            three_brokers.kill(node)
            os.kill(task, signal.SIGCONT)
            restart(three_brokers, node)
            load.wait_for(8_000)
        assert_exact(site, load, running)


@pytest.fixture(scope="module")
def proxied(own_brokers: None) -> Iterator[KafkaCluster]:  # noqa: ARG001 (skips without)
    """A target whose brokers are reached through a proxy that understands Kafka."""
    with KafkaCluster(name="proxied", proxied=True) as cluster:
        yield cluster


def through_the_proxy(site: Site, target: KafkaCluster, **extra: object) -> Path:
    """Write a configuration in which the mirror has only the proxy's address of the target."""
    config = site.config(**extra)
    text = config.read_text().replace(target.bootstrap, target.proxied_bootstrap)
    config.write_text(text)
    return config


def test_a_blocked_transactional_call_is_ended_by_the_watchdog(
    tmp_path: Path, source_cluster: Cluster, proxied: KafkaCluster
) -> None:
    """The client would wait indefinitely: the process exits, and its successor resumes."""
    site = make_site(tmp_path, source_cluster, proxied)
    config = through_the_proxy(site, proxied, data_path="client")  # our own requests have an end
    with fault_proxies(proxied.proxy_ports) as proxies:
        with mirror(config) as running, Load(site).running() as load:
            running.wait_for("ready")
            load.wait_for(4_000)
            fault = proxies[1].inject(Fault(Api.TXN_OFFSET_COMMIT, Action.HOLD_REQUEST))
            fault.wait_hit()
            ended = running.wait_for("task.restarting", within_s=30)
            fault.release()
            assert "commit" in ended["reason"], ended
            assert_successor_goes_on(running)
            load.wait_for(5_000)
        with mirror(site.config(), "--once") as last:
            assert last.wait() == 0, last.errors
    compared = site.compare()
    assert compared.exact, str(compared)
    assert compared.matched == load.count


def assert_successor_goes_on(running: Mirror) -> None:
    """Wait until a second process of the task has started and owns partitions."""
    running.wait_for("task.started", count=2)
    acquired = len(running.found("partitions.acquired"))
    running.wait_for("partitions.acquired", count=max(2, acquired))


@pytest.mark.parametrize("data_path", ["client", "auto"])
@pytest.mark.parametrize("exactly_once", [True, False])
def test_records_whose_acknowledgement_was_lost_are_sent_again(
    tmp_path: Path,
    source_cluster: Cluster,
    proxied: KafkaCluster,
    *,
    exactly_once: bool,
    data_path: str,
) -> None:
    """
    The same task sends them again, and continues.

    The client library repeats its request, and the target discards it. The lane sends the records
    with another producer: exactly once, nothing of the first can be committed.
    """
    site = make_site(tmp_path, source_cluster, proxied)
    mode = {"data_path": data_path}
    if not exactly_once:
        mode["transaction_producer"] = "false"

    def positions() -> dict[int, int]:
        if exactly_once:
            return site.view.positions(site.remote, site.partitions)
        return site.view.source_positions(site.topic, site.partitions)

    with (
        fault_proxies(proxied.proxy_ports) as proxies,
        mirror(through_the_proxy(site, proxied, **mode)) as running,
    ):
        running.wait_for("ready")
        lost = proxies[1].inject(Fault(Api.PRODUCE, Action.DROP_RESPONSE))
        site.produce(400)
        lost.wait_hit()
        wait_until(
            lambda: sum(positions().values()) == 400,
            within=timedelta(seconds=30),
            what="the records to be committed",
        )
        assert running.stop() == 0, running.errors
    assert not running.found("task.restarting")
    compared = site.compare()
    if exactly_once or data_path == "client":
        assert compared.exact, str(compared)
    else:
        assert (compared.missing, compared.altered) == (0, 0), str(compared)
        assert 0 < compared.duplicates <= 400, str(compared)


def test_a_late_duplicate_of_a_commit_is_harmless(
    tmp_path: Path, source_cluster: Cluster, proxied: KafkaCluster
) -> None:
    """KAFKA-17754: a commit that was sent twice, and whose first copy arrives last, is harmless."""
    site = make_site(tmp_path, source_cluster, proxied)
    with fault_proxies(proxied.proxy_ports) as proxies:
        config = through_the_proxy(site, proxied, data_path="client")  # only that sends it twice
        with mirror(config) as running, Load(site).running() as load:
            running.wait_for("ready")
            load.wait_for(4_000)
            fault = proxies[1].inject(Fault(Api.END_TXN, Action.STEAL_REQUEST))
            fault.wait_hit()
            running.wait_for("commit.suspicious", within_s=30)
            fault.release()
            load.wait_for(8_000)
        with mirror(site.config(), "--once") as last:
            assert last.wait() == 0, last.errors
    compared = site.compare()
    assert compared.exact, str(compared)
    assert compared.matched == load.count


def test_a_single_broker_target_drains_or_reports_lost_markers(
    tmp_path: Path,
    source_cluster: Cluster,
    own_brokers: None,  # noqa: ARG001 (skips without)
) -> None:
    """A target without replicas can lose transaction markers; even then no record is doubled."""
    with KafkaCluster(name="single") as target:
        site = make_site(tmp_path, source_cluster, target)
        with mirror(site.config()) as running:
            with Load(site).running() as load:
                running.wait_for("ready")
                load.wait_for(8_000)
                target.kill(1)
                restart(target, 1)
                load.wait_for(4_000)
            settle(site, running)
            code, logged = running.stop(), f"{running.events[-9:]} {running.errors[-9:]}"
            assert code == (1 if stopped(running) else 0), logged
            compared = site.compare()
            assert compared.exact or stopped(running), f"{compared} {logged}"
            assert compared.duplicates == 0, f"{compared} {logged}"


def settle(site: Site, running: Mirror) -> None:
    """Wait until everything has arrived, or partitions were stopped with a reason."""
    try:
        wait_until(lambda: drained(site) or stopped(running), within=SETTLED, what="a settled copy")
    except TimeoutError as exc:
        exc.add_note(f"{running.events[-9:]} {running.errors[-9:]}")
        raise


def drained(site: Site) -> bool:
    """Return whether every shadow offset is at the end of the source and nothing is undecided."""
    view = site.view
    ends = view.ends(site.topic, site.partitions)
    positions = view.positions(site.remote, site.partitions)
    return all(positions[p] >= end for p, end in ends.items()) and not undecided(site, view)


def stopped(running: Mirror) -> bool:
    """Return whether partitions were stopped because markers are lost."""
    return bool(running.found("partition.stopped", cause="MarkersLost"))
