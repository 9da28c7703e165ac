"""A password that is changed during a run: the login is repeated slowly, and the run recovers."""

from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest

from eos_mirror.testing import KafkaCluster, Security, fault_proxies
from eos_mirror.testing.clients import create_scram_users
from eos_mirror.testing.external import Cluster
from eos_mirror.testing.faults import Api
from tests.mirror.conftest import Site, make_site
from tests.mirror.surgery import produce_values
from tests.mirror.toolbox import mirror

pytestmark = [pytest.mark.brokers, pytest.mark.long]

USER = "mirror"
SETTLED_S = 60.0
"""Until every task has exited, and the clients of the start are gone."""
WINDOW_S = 30.0
CLIENTS = 6
"""More than the driver has at the target; no task runs."""
REFUSED = "ailed authentication with"


@pytest.fixture
def guarded(own_brokers: None) -> Iterator[KafkaCluster]:  # noqa: ARG001 (skips without)
    """A target with passwords that may change, behind a proxy that can cut connections."""
    with KafkaCluster(
        name="guarded", security=Security.SASL_SCRAM, users={USER: "pw"}, proxied=True
    ) as cluster:
        yield cluster


def config_of(site: Site, guarded: KafkaCluster) -> Path:
    """Write a configuration that logs in at the target, through the proxy."""
    config = site.config(tasks_max=2)
    alias = site.flow.target
    text = config.read_text().replace(guarded.bootstrap, guarded.proxied_bootstrap)
    keys = guarded.java_properties(USER)
    del keys["bootstrap.servers"]
    config.write_text(text + "".join(f"{alias}.{key} = {value}\n" for key, value in keys.items()))
    return config


def refusals(guarded: KafkaCluster) -> int:
    """Return how often the broker refused a login so far."""
    return guarded.log().read_text(errors="replace").count(REFUSED)


def test_a_refused_login_is_repeated_once_in_ten_seconds(
    tmp_path: Path, source_cluster: Cluster, guarded: KafkaCluster
) -> None:
    """Each client for itself, and the tasks wait: a directory may lock the account."""
    site = make_site(tmp_path, source_cluster, guarded)
    site.produce(1_000)
    with fault_proxies(guarded.proxy_ports) as proxies, mirror(config_of(site, guarded)) as run:
        run.wait_for("ready")
        site.wait_caught_up()
        create_scram_users(guarded.admin(), {USER: "other"})
        proxies[1].cut_all()
        produce_values(site.source, site.topic, [b"x"] * 1_000)  # the other task has nothing to do
        outage = run.wait_for("cluster.unreachable", cluster=site.flow.target)
        assert "invalid credentials" in outage["reason"]
        run.wait_for("task.restarting", count=2)
        Event().wait(SETTLED_S)
        logged_in, failed = proxies[1].seen(Api.SASL_HANDSHAKE), refusals(guarded)
        restarts = len(run.found("task.restarting"))
        Event().wait(WINDOW_S)

        attempts = proxies[1].seen(Api.SASL_HANDSHAKE) - logged_in
        assert 0 < attempts <= CLIENTS * WINDOW_S / 10
        assert refusals(guarded) - failed <= attempts
        assert len(run.found("task.restarting")) == restarts
        create_scram_users(guarded.admin(), {USER: "pw"})
        run.wait_for("cluster.recovered", cluster=site.flow.target)
        site.produce(1_000, start=2_000)
        site.wait_caught_up()
        assert run.stop() == 0, run.errors
    assert site.compare().exact
