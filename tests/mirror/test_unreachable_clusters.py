"""Clusters that do not answer, or refuse the login, before a verb starts and during a run."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from eos_mirror.testing import KafkaCluster, Security
from eos_mirror.testing.external import Cluster
from eos_mirror.testing.proxy import fault_proxies
from eos_mirror.testing.tcp_ports import PortLease
from tests.mirror.command_line import CONFIGURATION, fails, refused
from tests.mirror.conftest import Site, make_site
from tests.mirror.toolbox import mirror

pytestmark = [pytest.mark.brokers, pytest.mark.long]

VERBS = {
    "run": ("run", "FILE"),
    "run --check": ("run", "FILE", "--check"),
    "run --once": ("run", "FILE", "--once"),
    "status": ("status", "FILE"),
    "status --groups": ("status", "FILE", "--groups"),
    "status --ledger": ("status", "FILE", "--ledger"),
    "verify": ("verify", "FILE"),
    "translate": ("translate", "FILE", "FLOW", "orders", "0", "5"),
    "adopt": ("adopt", "FILE", "FLOW", "--from", "mode:alo"),
    "bench": ("bench", "FILE", "FLOW"),
}


@pytest.fixture
def nothing_there() -> Iterator[str]:
    """An address at which nothing listens."""
    lease = PortLease()
    yield f"127.0.0.1:{lease.port}"
    lease.release()


@pytest.fixture(scope="module")
def guarded(own_brokers: None) -> Iterator[KafkaCluster]:  # noqa: ARG001 (skips without)
    """A cluster with passwords."""
    with KafkaCluster(name="guarded", security=Security.SASL_PLAIN) as cluster:
        yield cluster


@pytest.fixture
def proxied(own_brokers: None) -> Iterator[KafkaCluster]:  # noqa: ARG001 (skips without)
    """A target whose network may be cut. A killed broker could lose markers (KAFKA-20734)."""
    with KafkaCluster(name="proxied", proxied=True) as cluster:
        yield cluster


def silent(site: Site, *clusters: Cluster, at: str) -> Path:
    """Write a configuration with another address in place of these clusters'."""
    config = site.config(cluster_connect_timeout_ms=1000)
    text = config.read_text()
    for cluster in clusters:
        text = text.replace(cluster.bootstrap, at)
    config.write_text(text)
    return config


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_names_both_clusters_that_do_not_answer(
    site: Site, nothing_there: str, verb: str
) -> None:
    """Two lines on stderr: key, address and cause of each cluster. No line of the client."""
    config = silent(site, site.source, site.target, at=nothing_there)
    words = {"FILE": str(config), "FLOW": str(site.flow)}

    code, lines = fails(*(words.get(word, word) for word in VERBS[verb]))

    assert code == CONFIGURATION
    assert len(lines) == 2, lines
    for line, alias in zip(lines, (site.flow.source, site.flow.target), strict=True):
        assert line.startswith(f"eos-mirror: {config}:")
        assert f"cluster {alias} does not answer at" in line
        assert f"{alias}.bootstrap.servers={nothing_there}: Connect to {nothing_there}" in line
        assert "Connection refused" in line


@pytest.mark.parametrize("verb", ["status --ledger", "translate"])
def test_a_verb_that_reads_the_target_needs_no_source(
    site: Site, nothing_there: str, verb: str
) -> None:
    """After a failover the source may be gone; what is asked is on the target."""
    site.produce(10)
    with mirror(site.config(), "--once") as running:
        assert running.wait() == 0, running.errors
    config = silent(site, site.source, at=nothing_there)
    words = {"FILE": str(config), "FLOW": str(site.flow), "orders": site.topic, "5": "0"}

    assert fails(*(words.get(word, word) for word in VERBS[verb])) == (0, [])


def test_a_wrong_password_is_said_in_a_line(
    tmp_path: Path, source_cluster: Cluster, guarded: KafkaCluster
) -> None:
    """The wait ends with the refusal: the same password would be refused again."""
    site = make_site(tmp_path, source_cluster, guarded)
    config = site.config(cluster_connect_timeout_ms=60_000)
    with config.open("a") as file:
        for key, value in guarded.java_properties().items():
            if key != "bootstrap.servers":
                wrong = value.replace('password="admin"', 'password="wrong"')
                file.write(f"{site.flow.target}.{key} = {wrong}\n")

    at = f"cluster {site.flow.target} at {site.flow.target}.bootstrap.servers={guarded.bootstrap}"
    says = [at, "refuses the login", "Invalid username or password", "sasl.jaas.config"]
    refused(config, code=CONFIGURATION, says=says)


def test_an_outage_during_a_run_is_two_events_and_no_line_of_the_client(
    tmp_path: Path, source_cluster: Cluster, proxied: KafkaCluster
) -> None:
    """Each of the clients notices it several times a second; the operator reads it once."""
    site = make_site(tmp_path, source_cluster, proxied)
    config = site.config()
    config.write_text(config.read_text().replace(proxied.bootstrap, proxied.proxied_bootstrap))
    site.produce(10)
    with ExitStack() as network:
        network.enter_context(fault_proxies(proxied.proxy_ports))
        with mirror(config) as running:
            site.wait_caught_up()
            network.close()
            outage = running.wait_for("cluster.unreachable")
            assert outage["cluster"] == site.flow.target
            assert outage["servers"] == proxied.proxied_bootstrap
            assert "Connection refused" in outage["reason"]
            network.enter_context(fault_proxies(proxied.proxy_ports))
            running.wait_for("cluster.recovered", cluster=site.flow.target)
            site.produce(10, start=10)
            site.wait_caught_up()
            assert running.stop() == 0, running.errors
    assert len(running.found("cluster.unreachable")) == 1
    assert [line for line in running.errors if not line.startswith("eos-mirror watchdog: ")] == []
