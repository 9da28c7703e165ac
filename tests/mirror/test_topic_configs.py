"""Remote topics have the configuration of their source topics, on real brokers."""

import json
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

import pytest
from confluent_kafka import Producer

from eos_mirror.core.side import Side
from eos_mirror.kafka.topics import Topics
from eos_mirror.testing import wait_until
from eos_mirror.testing.external import Cluster
from tests.mirror.command_line import checked, status, status_and_code
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
"""Copies keep their own message limits and cleanup policies."""

DEFAULT_LIMIT, LIMIT, LARGE = 1_048_588, 2_000_000, 1_500_000
"""Message limits: the default, a raised one; and a record that needs the raised one."""

SOON = timedelta(seconds=60)


def alter(cluster: Cluster, topic: str, *, put: str = "", drop: str = "") -> None:
    """Change a topic's configuration with Kafka's own tool."""
    options = ["--add-config", put] if put else []
    options += ["--delete-config", drop] if drop else []
    done = cluster.tool("ConfigCommand", "--alter", "--topic", topic, *options)
    assert "Completed updating config" in done.stdout, done.stdout + done.stderr


def described(cluster: Cluster, topic: str) -> dict[str, str]:
    """Return the effective configuration of a topic."""
    return Topics(cluster.client_config(), side=Side.TARGET).configs([topic])[topic]


def wait_for(cluster: Cluster, topic: str, name: str, value: str) -> None:
    """Wait until the topic has this value."""
    wait_until(
        lambda: described(cluster, topic)[name] == value,
        within=SOON,
        what=f"{name}={value} on {topic}",
    )


def offer(site: Site, topic: str, sizes: Iterable[int], *, key: bytes | None = b"key") -> None:
    """Produce records of these sizes into partition 0."""
    producer = Producer({**site.source.client_config(), "message.max.bytes": 20_000_000})
    for size in sizes:
        producer.produce(topic, b"x" * size, key, partition=0)
    assert producer.flush(30) == 0


def test_a_remote_topic_follows_its_source_topic(site: Site) -> None:
    """From its creation on it gets what is set and what is reset, and nothing that is excluded."""
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
    """Return the drift that `status` reports; `status` changes nothing."""
    return json.loads(status(config, "--json"))["drift"]


@pytest.mark.long
def test_what_is_as_it_should_be_is_not_touched(site: Site) -> None:
    """Later checks of the configuration change nothing."""
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


@pytest.mark.long
def test_what_is_excluded_is_never_set_on_a_copy(site: Site) -> None:
    """`max.message.bytes` and `cleanup.policy` can be excluded, at creation and at every sync."""
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
    assert not running.found("topic.refused")
    assert {frozenset(event["set"]) for event in running.found("topic.altered")} == {
        frozenset({"flush.ms"})
    }
    assert drift(config) == {}


@pytest.mark.long
def test_a_topic_whose_copy_has_a_smaller_limit_waits_alone(site: Site) -> None:
    """The reason names both limits, others are mirrored, and it starts when the limit is raised."""
    other = f"{site.topic}-other"
    site.source.create_topic(other, site.partitions)
    site.target.create_topic(site.remote, site.partitions)
    alter(site.source, site.topic, put=f"max.message.bytes={LIMIT}")
    offer(site, site.topic, [10, LARGE, 10])
    offer(site, other, [10])
    reason = (
        f"{site.flow} {site.topic} to {site.remote}: {site.remote} accepts messages of "
        f"{DEFAULT_LIMIT} bytes, {site.topic} of {LIMIT}, and config.properties.exclude excludes "
        f"max.message.bytes. Set max.message.bytes={LIMIT} on {site.remote}, or do not exclude it."
    )

    config = site.config(**OWN)
    refused, plan = checked(config)
    assert (refused["event"], refused["topic"]) == ("topic.refused", site.topic)
    assert plan["refused"] == {site.topic: reason}
    assert refused["reason"] == reason
    assert list(plan["topics"]) == [other]
    with mirror(config) as running:
        running.wait_for("degraded")
        site.view.wait_caught_up(other, f"{site.flow.source}.{other}", partitions=site.partitions)
        assert set(site.view.positions(site.remote, site.partitions).values()) == {-1}
        shown, code = status_and_code(config)
        assert (code, f"  not mirrored: {reason}\n" in shown) == (1, True), shown
        alter(site.target, site.remote, put=f"max.message.bytes={LIMIT}")
        site.wait_caught_up()
        running.wait_for("ready")
        assert running.stop() == 0, running.errors

    assert [event["reason"] for event in running.found("topic.refused")] == [reason]
    assert not running.found("partition.stopped")
    compared = site.compare()
    assert compared.exact, str(compared)
    assert compared.matched == 3


def test_a_refused_topic_begins_when_its_limit_is_not_excluded_any_more(site: Site) -> None:
    """A running flow reloads the list, raises the limit, and has enough tasks for the topic."""
    site.target.create_topic(site.remote, site.partitions)
    alter(site.source, site.topic, put=f"max.message.bytes={LIMIT}")
    offer(site, site.topic, [LARGE])

    config = site.config(**OWN, tasks_max=2)
    with mirror(config) as running:
        running.wait_for("degraded")
        assert running.found("topic.refused", topic=site.topic)
        running.wait_for("task.started", task=1)
        config.write_text(config.read_text().replace(", max.message.bytes, cleanup.policy", ""))
        site.wait_caught_up()
        assert running.stop() == 0, running.errors

    compared = site.compare()
    assert compared.exact, str(compared)
    assert compared.matched == 1


def test_a_copy_created_with_a_smaller_limit_stays_empty(site: Site) -> None:
    """A copy whose limit is the target's default, below the source's limit, gets no record."""
    alter(site.source, site.topic, put=f"max.message.bytes={LIMIT}")
    offer(site, site.topic, [10])

    config = site.config(**OWN)
    refused, plan = checked(config)
    assert (plan["topics"], plan["create"]) == ({}, [site.remote])
    with mirror(config, "--once") as running:
        assert running.wait() == 1, running.errors

    assert running.found("topic.created", topic=site.remote)
    told = [(event["topic"], event["reason"]) for event in running.found("topic.refused")]
    assert told == [(site.topic, refused["reason"])]
    assert f"of {DEFAULT_LIMIT} bytes, {site.topic} of {LIMIT}, and config.prop" in told[0][1]
    assert set(site.view.positions(site.remote, site.partitions).values()) == {-1}


def test_without_the_sync_a_smaller_limit_refuses_its_topic_alone(site: Site) -> None:
    """The reason names the setting, and the other topic is mirrored."""
    other = f"{site.topic}-other"
    site.source.create_topic(other, site.partitions)
    site.target.create_topic(site.remote, site.partitions, config={"max.message.bytes": "1000"})
    offer(site, other, [10])

    with mirror(site.config(), "--once") as running:
        assert running.wait() == 1, running.errors

    assert f"eos-mirror: not mirrored: {site.flow} {site.topic} " in "".join(running.errors)
    (refused,) = running.found("topic.refused")
    assert refused["reason"].endswith(
        f"{site.remote} accepts messages of 1000 bytes, {site.topic} of {DEFAULT_LIMIT}, and "
        f"sync.topic.configs.enabled = false. Set max.message.bytes={DEFAULT_LIMIT} on "
        f"{site.remote}, or sync.topic.configs.enabled = true."
    )
    compared = site.compare(other, f"{site.flow.source}.{other}")
    assert compared.exact, str(compared)
    assert compared.matched == 1


@pytest.mark.long
def test_a_start_raises_the_limit_of_a_copy_before_it_copies(site: Site) -> None:
    """The limit is raised before the first record; the periodic sync would raise it too late."""
    config = site.config(**{**SYNC, "sync_topic_configs_interval_seconds": 600})
    offer(site, site.topic, [10] * 10)
    with mirror(config, "--once") as first:
        assert first.wait() == 0, first.errors
    alter(site.source, site.topic, put=f"max.message.bytes={LIMIT}")
    offer(site, site.topic, [LARGE, *[10] * 100])

    (plan,) = checked(config)
    assert plan["topics"] == {site.topic: site.remote}
    with mirror(config, "--once") as running:
        assert running.wait() == 0, running.errors

    (altered,) = running.found("topic.altered", topic=site.remote)
    assert altered["set"] == {"max.message.bytes": str(LIMIT)}
    assert not running.found("partition.stopped")
    compared = site.compare()
    assert compared.exact, str(compared)
    assert compared.matched == 111


def test_a_start_ends_a_compaction_that_the_source_does_not_have(site: Site) -> None:
    """A compacted copy that would refuse keyless records is changed before the first record."""
    site.target.create_topic(site.remote, site.partitions, config={"cleanup.policy": "compact"})
    offer(site, site.topic, [10] * 3, key=None)

    with mirror(site.config(**SYNC), "--once") as running:
        assert running.wait() == 0, running.errors

    assert described(site.target, site.remote)["cleanup.policy"] == "delete"
    compared = site.compare()
    assert compared.exact, str(compared)
    assert compared.matched == 3


def test_a_compaction_that_only_the_copy_keeps_is_reported(site: Site) -> None:
    """The configuration asks for it, so the topic is mirrored with a warning."""
    site.target.create_topic(site.remote, site.partitions, config={"cleanup.policy": "compact"})
    offer(site, site.topic, [10] * 3)

    config = site.config(**OWN)
    warning, plan = checked(config)
    assert warning["event"] == "flow.warning"
    assert warning["reason"].startswith(f"{site.flow}: {site.remote} is compacted and {site.topic}")
    assert plan["topics"] == {site.topic: site.remote}
    with mirror(config, "--once") as running:
        assert running.wait() == 0, running.errors

    assert described(site.target, site.remote)["cleanup.policy"] == "compact"
    assert site.view.positions(site.remote, site.partitions)[0] == 3
