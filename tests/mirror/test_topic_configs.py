"""Remote topics are configured as their source topics are, on real brokers."""

import json
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from eos_mirror.kafka.topics import Topics
from eos_mirror.testing import wait_until
from eos_mirror.testing.external import Cluster
from tests.mirror.conftest import Site
from tests.mirror.toolbox import mirror

pytestmark = pytest.mark.brokers

EXCLUDED = "min.insync.replicas, unclean.*"
SYNC = {
    "sync_topic_configs_enabled": "true",
    "sync_topic_configs_interval_seconds": 1,
    "config_properties_exclude": EXCLUDED,
}
OWN = {**SYNC, "config_properties_exclude": f"{EXCLUDED}, max.message.bytes, cleanup.policy"}
"""Copies have their own limits and policies."""

DEFAULT_LIMIT, LIMIT = 1_048_588, 2_000_000
"""Of a topic by default, and of one whose copy has to follow."""

SOON = timedelta(seconds=60)


def alter(cluster: Cluster, topic: str, *, put: str = "", drop: str = "") -> None:
    """With Kafka's own tool."""
    options = ["--add-config", put] if put else []
    options += ["--delete-config", drop] if drop else []
    done = cluster.tool("ConfigCommand", "--alter", "--topic", topic, *options)
    assert "Completed updating config" in done.stdout, done.stdout + done.stderr


def described(cluster: Cluster, topic: str) -> dict[str, str]:
    """What is in effect."""
    return Topics(cluster.client_config(), source=False).configs([topic])[topic]


def wait_for(cluster: Cluster, topic: str, name: str, value: str) -> None:
    """Until the topic has it."""
    wait_until(
        lambda: described(cluster, topic)[name] == value,
        within=SOON,
        what=f"{name}={value} on {topic}",
    )


def test_a_remote_topic_follows_its_source_topic(site: Site) -> None:
    """From its creation on: what is set, what is set no more, and nothing that is excluded."""
    alter(site.source, site.topic, put="flush.ms=123456789,min.insync.replicas=2")
    config = site.config(**SYNC)

    def follows(name: str, value: str) -> None:
        wait_for(site.target, site.remote, name, value)

    with mirror(config) as running:
        running.wait_for("ready")
        created = described(site.target, site.remote)
        assert created["flush.ms"] == "123456789"
        assert created["min.insync.replicas"] == "1"
        assert created["message.timestamp.after.max.ms"] == str(2**63 - 1)

        alter(site.source, site.topic, put="segment.ms=7654321", drop="flush.ms")
        follows("segment.ms", "7654321")
        follows("flush.ms", described(site.source, site.topic)["flush.ms"])

        alter(site.target, site.remote, put="flush.messages=17,min.insync.replicas=1")
        follows("flush.messages", described(site.source, site.topic)["flush.messages"])
        assert described(site.target, site.remote)["min.insync.replicas"] == "1"
        told = running.found("topic.altered", topic=site.remote)
        assert told[-1]["deleted"] == ["flush.messages"]
        assert running.stop() == 0, running.errors
    assert drift(config) == {}
    alter(site.target, site.remote, put="segment.ms=17,flush.messages=17")
    wanted = {"set": {"segment.ms": "7654321"}, "delete": ["flush.messages"]}
    assert drift(config) == {site.remote: wanted}


def drift(config: Path) -> object:
    """What `status` says is not as it should be; it changes nothing."""
    command = [sys.executable, "-m", "eos_mirror.cli.main", "status", str(config), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return json.loads(done.stdout)["drift"]


def test_what_is_as_it_should_be_is_not_touched(site: Site) -> None:
    """A second look, and a third, change nothing."""
    alter(site.source, site.topic, put="flush.ms=123456789")
    config = site.config(**SYNC, summary_interval_seconds=1)
    with mirror(config) as running:
        running.wait_for("ready")
        alter(site.target, site.remote, put="segment.ms=17")
        running.wait_for("topic.altered")
        summaries = len(running.found("flow.summary"))
        running.wait_for("flow.summary", count=summaries + 4)
        assert running.stop() == 0, running.errors
    assert len(running.found("topic.altered")) == 1


def test_what_is_excluded_is_never_set_on_a_copy(site: Site) -> None:
    """`max.message.bytes` and `cleanup.policy`, too: at its creation, and at every sync."""
    archived = f"{site.topic}-archived"
    archive = f"{site.flow.source}.{archived}"
    theirs = {"cleanup.policy": "compact", "max.message.bytes": "500000"}
    ours = {"cleanup.policy": "delete", "max.message.bytes": str(DEFAULT_LIMIT)}
    kept = {"cleanup.policy": "delete", "max.message.bytes": "3000000"}
    site.source.create_topic(archived, site.partitions, config=theirs)
    site.target.create_topic(archive, site.partitions, config=kept)
    alter(site.source, site.topic, put="cleanup.policy=compact,max.message.bytes=500000")

    config = site.config(**OWN)
    with mirror(config) as running:
        running.wait_for("ready")
        alter(site.source, archived, put=f"max.message.bytes={LIMIT}")
        for topic, remote in ((site.topic, site.remote), (archived, archive)):
            alter(site.source, topic, put="flush.ms=123456789")
            wait_for(site.target, remote, "flush.ms", "123456789")
        assert running.stop() == 0, running.errors

    assert ours.items() <= described(site.target, site.remote).items()
    assert kept.items() <= described(site.target, archive).items()
    assert {frozenset(event["set"]) for event in running.found("topic.altered")} == {
        frozenset({"flush.ms"})
    }
    assert drift(config) == {}
