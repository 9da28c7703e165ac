"""`eos-mirror brokers`."""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import pytest

from eos_mirror.cli import brokers
from eos_mirror.testing import ExternalCluster
from eos_mirror.testing.external import Cluster
from eos_mirror.testing.jars import jars_folder
from eos_mirror.testing.releases import DEFAULT

MAIN = (
    "import argparse, sys\n"
    "from eos_mirror.cli import brokers\n"
    "parser = argparse.ArgumentParser()\n"
    "brokers.register(parser.add_subparsers())\n"
    "sys.exit(brokers.run(parser.parse_args()))\n"
)


def parse(*arguments: str) -> argparse.Namespace:
    """Parse the arguments as the command line does."""
    parser = argparse.ArgumentParser()
    brokers.register(parser.add_subparsers())
    return parser.parse_args(["brokers", *arguments])


@pytest.fixture
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use a folder of this test, so that it does not find another `up`."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


@pytest.mark.brokers
@pytest.mark.usefixtures("own_brokers", "own_state")
def test_up_prints_two_clusters_and_down_stops_them(capsys: pytest.CaptureFixture[str]) -> None:
    """Both addresses answer between `ready` and `down`; a second `up` is refused meanwhile."""
    up = [sys.executable, "-c", MAIN, "brokers", "up"]
    with subprocess.Popen(up, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline().strip() for _ in range(3)]
        assert lines[2] == "ready"
        addresses = dict(line.split("=") for line in lines[:2])
        assert list(addresses) == ["A.bootstrap.servers", "B.bootstrap.servers"]
        for address in addresses.values():
            ExternalCluster(address).check()
        assert brokers.run(parse("up")) == 1
        assert "already up" in capsys.readouterr().err

        assert brokers.run(parse("down")) == 0

        assert process.wait(timeout=30) == 0


@pytest.mark.usefixtures("own_state")
def test_down_without_up_is_done(capsys: pytest.CaptureFixture[str]) -> None:
    """`down` succeeds, because nothing runs afterwards, as requested."""
    assert brokers.run(parse("down")) == 0
    assert "no brokers are up" in capsys.readouterr().err


@pytest.mark.brokers
def test_tool_is_the_tool_of_kafka(ns: str, source_cluster: Cluster) -> None:
    """Its output and its exit code are its own."""
    topic = f"{ns}-orders"
    source_cluster.create_topic(topic, 1)
    told = subprocess.run(
        [sys.executable, "-c", MAIN, "brokers", "tool", "kafka-topics.sh",
         "--bootstrap-server", source_cluster.bootstrap, "--describe", "--topic", topic],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert f"Topic: {topic}" in told.stdout
    assert "PartitionCount: 1" in told.stdout
    assert brokers.run(parse("tool", "kafka-topics", "--no-such-option")) == 1


def test_a_tool_that_does_not_exist_is_refused_with_those_that_do(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A name is written with or without `.sh`."""
    assert brokers.run(parse("tool", "kafka-topic.sh", "--list")) == 1
    said = capsys.readouterr().err
    assert said.startswith("no tool 'kafka-topic.sh'; there are kafka-acls, ")
    assert said.count("\n") == 1


def test_doctor_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without Java and Docker it fails and names what to install; --json says the same."""
    monkeypatch.setenv("EOS_MIRROR_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none")
    for variable in ("JAVA_HOME", "EOS_MIRROR_TEST_BOOTSTRAP_SRC", "EOS_MIRROR_TEST_BOOTSTRAP_DST"):
        monkeypatch.delenv(variable, raising=False)

    assert brokers.run(parse("doctor")) == 1
    text = capsys.readouterr().out
    assert "missing    java: no Java 17" in text
    assert f"is not in {jars_folder(DEFAULT, tmp_path)}" in text

    assert brokers.run(parse("doctor", "--json")) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["backend"] is None
    assert {finding["name"] for finding in report["findings"]} >= {"java", "docker"}


def test_up_wants_at_least_one_node() -> None:
    """A mistake is found before anything starts."""
    with pytest.raises(SystemExit):
        parse("up", "--nodes", "0")
