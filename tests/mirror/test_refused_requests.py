"""A topic for which a cluster denies a request is refused alone, and retried."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AclOperation, ResourcePatternType, ResourceType

from eos_mirror.testing import KafkaCluster
from tests.mirror.command_line import CONFIGURATION, check, refused
from tests.mirror.conftest import Site, make_site
from tests.mirror.rights import Resource, allow_again, deny, guarded_cluster, login
from tests.mirror.toolbox import EVERY_SECOND, mirror, produce, wait_for_checks

pytestmark = [pytest.mark.brokers, pytest.mark.long]


@pytest.fixture(scope="module")
def guarded(own_brokers: None) -> Iterator[KafkaCluster]:  # noqa: ARG001 (skips without)
    """Source and target in one, with users and access control."""
    with guarded_cluster() as cluster:
        yield cluster


@pytest.fixture
def mine(tmp_path: Path, guarded: KafkaCluster) -> Site:
    """A flow on the guarded cluster."""
    return make_site(tmp_path, guarded, guarded)


def topic(name: str) -> Resource:
    """Return the resource of one topic."""
    return ResourceType.TOPIC, name, ResourcePatternType.LITERAL


def remote_of(site: Site, name: str) -> str:
    """Return the remote topic of a source topic."""
    return f"{site.flow.source}.{name}"


def test_a_start_refuses_a_topic_that_the_target_would_not_create(
    mine: Site, guarded: KafkaCluster
) -> None:
    """The check names the topic with the reason, and every other topic is mirrored."""
    bad = f"{mine.topic}-bad"
    mine.source.create_topic(bad, mine.partitions)
    mine.produce(400)
    config = login(mine)
    deny(guarded, topic(remote_of(mine, bad)), AclOperation.CREATE)

    code, [warning, plan] = check(config)
    assert code == 0
    assert warning["topic"] == bad
    assert "CREATE on the topic or the cluster is not granted" in warning["reason"]
    assert plan["create"] == [mine.remote]
    assert plan["refused"] == {bad: warning["reason"]}

    with mirror(config, "--once") as running:
        assert running.wait() == 1, running.errors
    (told,) = running.found("topic.refused")
    assert told["reason"] == warning["reason"]
    assert mine.compare().exact
    assert mine.compare().matched == 400


def test_a_topic_that_the_target_does_not_create_waits_alone(
    mine: Site, guarded: KafkaCluster
) -> None:
    """It is reported once, other new topics are mirrored, and it follows when it may be created."""
    bad, good, late = (f"{mine.topic}-{name}" for name in ("bad", "good", "late"))
    config = login(mine, **EVERY_SECOND)
    deny(guarded, topic(remote_of(mine, bad)), AclOperation.CREATE)
    with mirror(config) as running:
        running.wait_for("ready")
        for name in (bad, good):
            mine.source.create_topic(name, mine.partitions)
        running.wait_for("topic.refused", topic=bad)
        running.wait_for("topic.created", topic=remote_of(mine, good))
        wait_for_checks(running)
        mine.source.create_topic(late, mine.partitions)
        running.wait_for("topic.created", topic=remote_of(mine, late))
        for name in (mine.topic, bad, good, late):
            produce(mine.source, name, 400, partitions=mine.partitions)
        for name in (mine.topic, good, late):
            mine.view.wait_caught_up(name, remote_of(mine, name), partitions=mine.partitions)
        assert len(running.found("topic.refused")) == 1

        allow_again(guarded, topic(remote_of(mine, bad)), AclOperation.CREATE)
        running.wait_for("topic.created", topic=remote_of(mine, bad))
        mine.view.wait_caught_up(bad, remote_of(mine, bad), partitions=mine.partitions)
        assert running.stop() == 0, running.errors
    assert len(running.found("topic.refused")) == 1
    assert not running.found("chore.failed")
    for name in (mine.topic, bad, good, late):
        compared = mine.compare(name, remote_of(mine, name))
        assert compared.exact, compared
        assert compared.matched == 400


def test_a_copy_that_may_not_grow_is_mirrored_as_far_as_it_goes(
    mine: Site, guarded: KafkaCluster
) -> None:
    """Its new partitions wait, new topics do not, and `--once` exits and names what is missing."""
    grown, new = Site(**{**vars(mine), "partitions": 6}), f"{mine.topic}-new"
    config = login(mine, **EVERY_SECOND)
    with mirror(config) as running:
        running.wait_for("ready")
        deny(guarded, topic(mine.remote), AclOperation.ALTER)
        guarded.tool("TopicCommand", "--alter", "--topic", mine.topic, "--partitions", "6")
        told = running.wait_for("topic.refused", topic=mine.topic)
        assert "partitions from 4 on are not mirrored" in told["reason"]
        assert "ALTER on the topic is not granted" in told["reason"]
        mine.source.create_topic(new, mine.partitions)
        grown.produce(600)
        produce(mine.source, new, 400, partitions=mine.partitions)
        mine.view.wait_caught_up(new, remote_of(mine, new), partitions=mine.partitions)
        mine.view.wait_caught_up(mine.topic, mine.remote, partitions=mine.partitions)
        wait_for_checks(running)
        assert running.stop() == 1, running.errors
    assert len(running.found("topic.refused")) == 1
    assert not running.found("flow.rejoining")
    with mirror(config, "--once") as again:
        assert again.wait() == 1, again.errors
    assert again.found("degraded")
    assert [one["reason"] for one in again.found("topic.refused")] == [told["reason"]]

    with mirror(config) as last:
        last.wait_for("degraded")
        allow_again(guarded, topic(mine.remote), AclOperation.ALTER)
        last.wait_for("topic.grown", topic=mine.remote, partitions=6)
        last.wait_for("ready")
        grown.view.wait_caught_up(grown.topic, grown.remote, partitions=6)
        assert last.stop() == 0, last.errors
    assert grown.compare().exact
    assert grown.compare().matched == 600


def test_a_limit_that_may_not_be_raised_keeps_its_topic_back(
    mine: Site, guarded: KafkaCluster
) -> None:
    """The topic waits until the right is granted; the other topics of the flow are mirrored."""
    other = f"{mine.topic}-other"
    guarded.create_topic(other, mine.partitions)
    guarded.create_topic(mine.remote, mine.partitions, config={"max.message.bytes": "1000"})
    for name in (mine.topic, other):
        produce(guarded, name, 100, partitions=mine.partitions)
    deny(guarded, topic(mine.remote), AclOperation.ALTER_CONFIGS)
    config = login(mine, **EVERY_SECOND)
    with config.open("a") as file:
        file.write("sync.topic.configs.enabled = true\n")
    with mirror(config) as running:
        told = running.wait_for("topic.refused", topic=mine.topic)
        assert f"messages of 1000 bytes, {mine.topic} of 1048588" in told["reason"]
        assert "AUTHORIZATION" in told["reason"]
        mine.view.wait_caught_up(other, remote_of(mine, other), partitions=mine.partitions)
        wait_for_checks(running)
        allow_again(guarded, topic(mine.remote), AclOperation.ALTER_CONFIGS)
        mine.view.wait_caught_up(mine.topic, mine.remote, partitions=mine.partitions)
        assert running.stop() == 0, running.errors
    assert len(running.found("topic.refused")) == 1
    assert not running.found("topic.alter-failed")
    assert running.found("topic.altered", topic=mine.remote)
    compared = mine.compare()
    assert compared.exact, str(compared)
    assert compared.matched == 100


def test_a_new_topic_whose_copy_is_not_described_waits_alone(
    mine: Site, guarded: KafkaCluster
) -> None:
    """An existing copy with an unknown message limit is refused until it may be described."""
    bad, good = (f"{mine.topic}-{name}" for name in ("bad", "good"))
    guarded.create_topic(remote_of(mine, bad), mine.partitions)
    deny(guarded, topic(remote_of(mine, bad)), AclOperation.DESCRIBE_CONFIGS)
    with mirror(login(mine, **EVERY_SECOND)) as running:
        running.wait_for("ready")
        for name in (bad, good):
            mine.source.create_topic(name, mine.partitions)
            produce(mine.source, name, 100, partitions=mine.partitions)
        told = running.wait_for("topic.refused", topic=bad)
        assert "DESCRIBE_CONFIGS on the topic is not granted" in told["reason"]
        mine.view.wait_caught_up(good, remote_of(mine, good), partitions=mine.partitions)
        allow_again(guarded, topic(remote_of(mine, bad)), AclOperation.DESCRIBE_CONFIGS)
        mine.view.wait_caught_up(bad, remote_of(mine, bad), partitions=mine.partitions)
        assert running.stop() == 0, running.errors
    assert not running.found("chore.failed")
    compared = mine.compare(bad, remote_of(mine, bad))
    assert compared.exact, str(compared)
    assert compared.matched == 100


@pytest.mark.parametrize("side", ["source", "remote"])
def test_a_topic_that_may_not_be_described_any_more_is_not_taken_for_deleted(
    mine: Site, guarded: KafkaCluster, side: str
) -> None:
    """Other topics continue; when the right is granted again, the topic resumes at its position."""
    keep, hidden = f"{mine.topic}-keep", mine.topic if side == "source" else mine.remote
    mine.source.create_topic(keep, mine.partitions)
    mine.produce(400)
    with mirror(login(mine, **EVERY_SECOND)) as running:
        running.wait_for("ready")
        mine.view.wait_caught_up(mine.topic, mine.remote, partitions=mine.partitions)
        deny(guarded, topic(hidden), AclOperation.DESCRIBE)
        try:
            told = running.wait_for("topic.refused", topic=mine.topic)
            assert f"DESCRIBE on {hidden} " in told["reason"]
            produce(mine.source, keep, 400, partitions=mine.partitions)
            mine.view.wait_caught_up(keep, remote_of(mine, keep), partitions=mine.partitions)
            wait_for_checks(running)
        finally:
            allow_again(guarded, topic(hidden), AclOperation.DESCRIBE)
        mine.produce(400, start=400)
        mine.view.wait_caught_up(mine.topic, mine.remote, partitions=mine.partitions)
        assert running.stop() == 0, running.errors
    assert len(running.found("topic.refused")) == 1
    assert not running.found("topic.deleted")
    for name, count in ((mine.topic, 800), (keep, 400)):
        compared = mine.compare(name, remote_of(mine, name))
        assert compared.exact, compared
        assert compared.matched == count


def test_a_start_without_any_right_to_create_is_refused(mine: Site, guarded: KafkaCluster) -> None:
    """A start that could mirror no topic is refused, even if the internal topics exist."""
    config = login(mine)
    for internal in (mine.flow.claims_topic, mine.flow.offset_map_topic):
        guarded.create_topic(internal, 1, config={"cleanup.policy": "compact"})
    prefix = (ResourceType.TOPIC, f"{mine.flow.source}.", ResourcePatternType.PREFIXED)
    deny(guarded, prefix, AclOperation.CREATE)

    refused(
        config, code=CONFIGURATION, says=["not authorized", "CREATE", mine.remote, "kafka-acls"]
    )


def test_an_internal_topic_that_the_target_refuses_is_a_fault_of_the_file(site: Site) -> None:
    """No flow can run without its internal topics; the start is refused with the key."""
    config = site.config(internal_topic_replication_factor=99)

    refused(
        config,
        code=CONFIGURATION,
        says=[site.flow.claims_topic, "INVALID_REPLICATION_FACTOR", "internal.topic.replication"],
    )
    assert site.remote not in site.target.admin().list_topics(timeout=10).topics


@pytest.mark.parametrize("side", ["source", "remote"])
def test_a_right_that_is_missing_for_one_topic_does_not_keep_the_others_from_starting(
    mine: Site, guarded: KafkaCluster, side: str
) -> None:
    """The check names the right; the partitions stop, and resume when the right is granted."""
    other = f"{mine.topic}-other"
    mine.source.create_topic(other, mine.partitions)
    config = login(mine)
    with mirror(config, "--once") as first:
        assert first.wait() == 0, first.errors
    denied = other if side == "source" else remote_of(mine, other)
    operation = AclOperation.READ if side == "source" else AclOperation.WRITE
    for name in (mine.topic, other):
        produce(mine.source, name, 400, partitions=mine.partitions)
    deny(guarded, topic(denied), operation)
    try:
        code, [warning, _] = check(config)
        assert code == 0
        assert warning["event"] == "flow.warning"
        assert f"not authorized: {operation.name} on topic {denied} " in warning["reason"]
        with mirror(config) as running:
            (flow,) = running.wait_for("degraded")["flows"]
            assert (flow["failed"], flow["mirroring"]) == (mine.partitions, mine.partitions)
            mine.view.wait_caught_up(mine.topic, mine.remote, partitions=mine.partitions)
            stopped = running.found("partition.stopped")
            assert {one["cause"] for one in stopped} == {"RightMissing"}
            assert {one["partition"].rpartition("-")[0] for one in stopped} == {other}
            allow_again(guarded, topic(denied), operation)
            mine.view.wait_caught_up(other, remote_of(mine, other), partitions=mine.partitions)
            running.wait_for("ready")
            assert running.stop() == 0, running.errors
    finally:
        allow_again(guarded, topic(denied), operation)
    for name in (mine.topic, other):
        compared = mine.compare(name, remote_of(mine, name))
        assert compared.exact, compared
        assert compared.matched == 400


@pytest.mark.parametrize("side", ["source", "remote"])
def test_a_topic_whose_configuration_may_not_be_described_is_refused_alone(
    mine: Site, guarded: KafkaCluster, side: str
) -> None:
    """Without the configuration it is unknown which records the copy accepts: refuse the topic."""
    other = f"{mine.topic}-other"
    mine.source.create_topic(other, mine.partitions)
    config = login(mine)
    with mirror(config, "--once") as first:
        assert first.wait() == 0, first.errors
    mine.produce(400)
    hidden = other if side == "source" else remote_of(mine, other)
    deny(guarded, topic(hidden), AclOperation.DESCRIBE_CONFIGS)
    try:
        code, [warning, _] = check(config)
        assert code == 0
        assert warning["topic"] == other
        assert "DESCRIBE_CONFIGS on the topic is not granted" in warning["reason"]
        assert hidden in warning["reason"]
        with mirror(config, "--once") as second:
            assert second.wait() == 1, second.errors
    finally:
        allow_again(guarded, topic(hidden), AclOperation.DESCRIBE_CONFIGS)
    assert [one["reason"] for one in second.found("topic.refused")] == [warning["reason"]]
    assert mine.compare().exact
    assert mine.compare().matched == 400
