"""Which backend is used, and that a missing one never makes a test pass."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from eos_mirror.errors import ConfigError
from eos_mirror.testing import Backend, ClusterFailed, ExternalCluster, choose_backend
from eos_mirror.testing.backend import external_problem
from eos_mirror.testing.doctor import Finding, usable_backend


def probes(*usable: Backend) -> dict[Backend, Callable[[], str | None]]:
    """Return probes by which only these backends work."""

    def probe(backend: Backend) -> Callable[[], str | None]:
        return lambda: None if backend in usable else "broken"

    return {backend: probe(backend) for backend in Backend}


@pytest.mark.parametrize(
    ("usable", "expected"),
    [
        (tuple(Backend), Backend.EXTERNAL),
        ((Backend.JVM, Backend.DOCKER), Backend.JVM),
        ((Backend.DOCKER,), Backend.DOCKER),
        ((), None),
    ],
)
def test_external_comes_before_jvm_before_docker(
    usable: tuple[Backend, ...], expected: Backend | None
) -> None:
    """The reason names the backends that were skipped."""
    choice = choose_backend({}, probes=probes(*usable))

    assert choice.backend is expected
    assert str(choice).count("broken") == list(Backend).index(expected) if expected else 3
    assert "\n" not in str(choice)


def test_a_named_backend_is_used_or_nothing() -> None:
    """If Docker was requested, no other backend is used silently."""
    environ = {"EOS_MIRROR_TEST_BACKEND": "docker"}

    assert choose_backend(environ, probes=probes(*Backend)).backend is Backend.DOCKER
    assert choose_backend(environ, probes=probes(Backend.JVM)).backend is None
    with pytest.raises(ConfigError, match="use auto, external, jvm, docker"):
        choose_backend({"EOS_MIRROR_TEST_BACKEND": "podman"}, probes=probes())


def test_half_an_external_pair_is_an_error() -> None:
    """One address alone is a typing error, not a request for embedded brokers."""
    with pytest.raises(ConfigError, match="SRC is set alone"):
        external_problem({"EOS_MIRROR_TEST_BOOTSTRAP_SRC": "a:9092"})


def test_an_external_cluster_takes_its_logins_from_the_environment() -> None:
    """Both kinds of client take a JSON object; the error for anything else names the variable."""
    variable = "EOS_MIRROR_TEST_BOOTSTRAP_DST"
    environ = {
        variable: "b:9092",
        f"{variable}_CONFIG": '{"sasl.username": "u"}',
        f"{variable}_JAVA_CONFIG": '{"sasl.jaas.config": "j"}',
    }

    cluster = ExternalCluster.from_environment("DST", environ)

    assert cluster.client_config() == {"bootstrap.servers": "b:9092", "sasl.username": "u"}
    assert cluster.java_properties() == {"bootstrap.servers": "b:9092", "sasl.jaas.config": "j"}
    with pytest.raises(ClusterFailed, match="one user"):
        cluster.client_config("another")
    for wrong in ("[1]", "{", '{"a": 1}'):
        with pytest.raises(ConfigError, match=f"{variable}_CONFIG"):
            ExternalCluster.from_environment("DST", environ | {f"{variable}_CONFIG": wrong})


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ({"external clusters", "docker"}, Backend.EXTERNAL),
        ({"java", "jar fetcher", "docker"}, Backend.JVM),
        ({"java", "kafka jars"}, Backend.JVM),
        ({"kafka jars", "jar fetcher", "docker"}, Backend.DOCKER),
        ({"java"}, None),
    ],
)
def test_the_doctor_predicts_the_backend(found: set[str], expected: Backend | None) -> None:
    """Brokers need a Java, and jars or a way to get them."""
    findings = [Finding(name=name, found="yes") for name in found]

    assert usable_backend(findings) is expected


def run_pytest(folder: Path, body: str, **environ: str) -> str:
    """Run pytest over one test in its own process; return the output."""
    (folder / "conftest.py").write_text(
        'pytest_plugins = ["eos_mirror.testing.pytest_plugin"]\n', encoding="utf-8"
    )
    (folder / "test_it.py").write_text(f"import pytest\n{body}", encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = brokers\n", encoding="utf-8")
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-rs", "-p", "no:cacheprovider", str(folder)],
        env={**os.environ, "PYTHONPATH": str(root), **environ},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize(("ci", "outcome"), [("false", "1 skipped"), ("true", "1 error")])
def test_a_missing_backend_skips_at_home_and_fails_in_ci(
    tmp_path: Path, ci: str, outcome: str
) -> None:
    """Green in CI never means "no broker"."""
    output = run_pytest(
        tmp_path,
        "def test_it(source_cluster): pass\n",
        CI=ci,
        EOS_MIRROR_TEST_BACKEND="external",
        EOS_MIRROR_TEST_BOOTSTRAP_SRC="",
        EOS_MIRROR_TEST_BOOTSTRAP_DST="",
    )

    assert outcome in output
    assert "Kafka brokers: none (external: EOS_MIRROR_TEST_BOOTSTRAP_SRC and" in output


@pytest.mark.brokers
@pytest.mark.usefixtures("own_brokers")
def test_a_failure_shows_the_last_lines_of_the_brokers(tmp_path: Path) -> None:
    """The log is attached to the failure and kept; a passing test leaves nothing."""
    output = run_pytest(
        tmp_path,
        "@pytest.mark.brokers\ndef test_it(source_cluster, ns): assert ns == source_cluster\n",
        TMPDIR=str(tmp_path),
    )

    assert "Kafka brokers: jvm (" in output
    assert "log of source node 1" in output
    assert "log of target node 1" in output
    assert "Kafka Server started" in output
    kept = list(tmp_path.glob("eos-mirror-logs-*/source-*/node-1-server.log"))
    assert len(kept) == 1
