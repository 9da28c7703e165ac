"""Heartbeats on real brokers, read by Kafka's own formatter."""

import re
from collections.abc import Iterator
from datetime import timedelta

import pytest

from eos_mirror.core.policy import HEARTBEATS_TOPIC
from eos_mirror.core.records import TopicPartition
from eos_mirror.testing import wait_until
from eos_mirror.testing.external import Cluster
from tests.mirror.conftest import Site
from tests.mirror.toolbox import mirror

pytestmark = pytest.mark.brokers

FORMATTER = "org.apache.kafka.connect.mirror.formatters.HeartbeatFormatter"
SETTINGS = {
    "emit_heartbeats_enabled": "true",
    "heartbeats_replication_enabled": "true",
    "heartbeats_topic_replication_factor": 1,
    "summary_interval_seconds": 1,
}
SOON = timedelta(seconds=60)


def printed(cluster: Cluster, topic: str) -> list[tuple[str, str]]:
    """Return source and target of each heartbeat, as Kafka's formatter prints them."""
    done = cluster.tool(
        "ConsoleConsumer",
        *("--topic", topic, "--from-beginning", "--timeout-ms", "5000"),
        *("--isolation-level", "read_committed", "--formatter", FORMATTER),
        timeout=SOON,
    )
    form = r"Heartbeat\{sourceClusterAlias=(\w+), targetClusterAlias=(\w+), timestamp=1\d{12}\}"
    return [(one[1], one[2]) for one in re.finditer(form, done.stdout)]


@pytest.fixture
def alone(site: Site) -> Iterator[Site]:
    """A site whose heartbeats and their copies are deleted after the test."""
    yield site
    for cluster in (site.source, site.target):
        admin = cluster.admin()
        found = admin.list_topics(timeout=10).topics
        for topic in [topic for topic in found if topic.endswith(HEARTBEATS_TOPIC)]:
            admin.delete_topics([topic])[topic].result(30)


@pytest.mark.long
def test_heartbeats_go_both_ways_and_come_back_as_copies(alone: Site) -> None:
    """
    Heartbeats are also written to the source, and mirrored from there to the target.

    A run that has just created their topic finds it without waiting for its next check.
    """
    source, target = alone.flow.source, alone.flow.target
    copy = f"{source}.{HEARTBEATS_TOPIC}"
    back = TopicPartition(copy, 0)
    with mirror(alone.config(**SETTINGS, refresh_topics_interval_seconds=600)) as running:
        running.wait_for("topic.created", topic=copy)
        wait_until(
            lambda: alone.view.target.ends([back])[back] >= 4,  # two, and their markers
            within=SOON,
            what="copies of two heartbeats",
        )
        assert running.stop() == 0, running.errors
        assert not running.found("heartbeats.failed")
    assert set(printed(alone.target, HEARTBEATS_TOPIC)) == {(source, target)}
    assert set(printed(alone.source, HEARTBEATS_TOPIC)) == {(target, source)}
    assert set(printed(alone.target, copy)) == {(target, source)}


@pytest.mark.long
def test_heartbeats_that_cannot_be_written_are_told_once_and_stop_nothing(alone: Site) -> None:
    """A heartbeats topic with too many replicas is reported once, and records are mirrored."""
    settings = {**SETTINGS, "heartbeats_topic_replication_factor": 3}
    with mirror(alone.config(**settings)) as running:
        running.wait_for("heartbeats.failed", flow=str(alone.flow))
        told = len(running.found("flow.summary"))
        running.wait_for("flow.summary", count=told + 4)
        alone.produce(100)
        alone.wait_caught_up()
        assert running.stop() == 0, running.errors
    failed = [event["flow"] for event in running.found("heartbeats.failed")]
    assert sorted(failed) == sorted({str(alone.flow), f"{alone.flow.target}->{alone.flow.source}"})
    assert all("replication" in e["reason"].lower() for e in running.found("heartbeats.failed"))
