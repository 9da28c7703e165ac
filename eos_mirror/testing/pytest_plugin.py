"""
Fixtures for tests that need brokers: `pytest_plugins = ["eos_mirror.testing.pytest_plugin"]`.

Clusters live as long as the session. Names keep tests apart: every topic, group and
transactional id of a test starts with its `ns`. A machine without brokers skips such tests and
prints why; with CI=true they fail, so that green never means "no broker".
"""

import os
import re
import uuid
from collections.abc import Generator, Iterator
from typing import NoReturn

import pytest

from eos_mirror.testing.backend import Backend, Choice, choose_backend, cluster_pair
from eos_mirror.testing.cluster import running_clusters
from eos_mirror.testing.external import Cluster
from eos_mirror.testing.run_folder import kept_logs_folder

NS_CHARACTERS = 40
TAIL_LINES, TAIL_CHARACTERS = 5, 160
"""How much of a broker's log is shown below a failed test; more would hide the failure."""


@pytest.fixture(scope="session")
def broker_backend(pytestconfig: pytest.Config) -> Choice:
    """Return the backend of this machine, and print one line that says which and why."""
    choice = choose_backend()
    reporter = pytestconfig.pluginmanager.getplugin("terminalreporter")
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    if reporter is not None and capture is not None:
        with capture.global_and_fixture_disabled():
            reporter.ensure_newline()
            reporter.write_line(str(choice))
    return choice


@pytest.fixture(scope="session")
def broker_pair(broker_backend: Choice) -> Iterator[tuple[Cluster, Cluster]]:
    """Yield the two clusters that tests share; they start at the same time."""
    if broker_backend.backend is None:
        give_up(broker_backend.reason)
    with cluster_pair(broker_backend.backend) as pair:
        yield pair


@pytest.fixture(scope="session")
def source_cluster(broker_pair: tuple[Cluster, Cluster]) -> Cluster:
    """Return the cluster to mirror from. Do not kill it: other tests use it too."""
    return broker_pair[0]


@pytest.fixture(scope="session")
def target_cluster(broker_pair: tuple[Cluster, Cluster]) -> Cluster:
    """Return the cluster to mirror to. Do not kill it: other tests use it too."""
    return broker_pair[1]


@pytest.fixture(scope="session")
def own_brokers(broker_backend: Choice) -> None:
    """Require brokers that a test may start itself, to kill them or to give them users."""
    if broker_backend.backend is not Backend.JVM:
        give_up(f"needs brokers of its own, but has {broker_backend}")


@pytest.fixture
def ns(request: pytest.FixtureRequest) -> str:
    """Return a unique prefix for the names of this test, also on an external cluster."""
    name = re.sub(r"[^A-Za-z0-9]+", "-", request.node.name).strip("-")
    return f"{name[:NS_CHARACTERS]}-{uuid.uuid4().hex[:8]}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Attach the last log lines of every running broker to a failure, and keep the logs."""
    report = yield
    if report.failed and item.get_closest_marker("brokers"):
        for cluster in running_clusters:
            cluster.keep_logs = True
            for node, tail in cluster.log_tails().items():
                report.sections.append((f"log of {cluster.spec.name} node {node}", shorter(tail)))
        report.sections.append(("logs of the brokers", f"kept in {kept_logs_folder()}"))
    return report


def shorter(tail: str) -> str:
    """Return as much of the end of a log as fits below a failure."""
    return "\n".join(line[:TAIL_CHARACTERS] for line in tail.splitlines()[-TAIL_LINES:])


def give_up(reason: str) -> NoReturn:
    """Skip the test; in CI, fail it."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)
