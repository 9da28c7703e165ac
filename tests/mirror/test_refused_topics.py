"""A topic that cannot be mirrored is refused alone, at the start and during a run."""

import json
from collections.abc import Callable

import pytest

from eos_mirror.testing.checker import read_topic
from tests.mirror.command_line import check, status
from tests.mirror.conftest import Site
from tests.mirror.surgery import delete_topic, produce_values
from tests.mirror.toolbox import EVERY_SECOND, mirror, produce, wait_for_checks

pytestmark = [pytest.mark.brokers, pytest.mark.long]


def too_long(site: Site) -> tuple[str, str]:
    """Create a source topic whose remote name is too long for Kafka; return it and the reason."""
    topic = site.topic + "-" + "x" * (249 - len(site.topic) - 1)
    site.source.create_topic(topic, site.partitions)
    return topic, f"the name has {249 + len(site.flow.source) + 1} characters, Kafka allows 249"


def colliding(site: Site) -> tuple[str, str]:
    """Create a source topic whose remote name differs from a target topic only in `.` and `_`."""
    topic = f"{site.topic}-twin"
    site.target.create_topic(twin_of(site, topic), 1)
    site.source.create_topic(topic, site.partitions)
    return topic, f"in the way: {twin_of(site, topic)}"


def too_small(site: Site) -> tuple[str, str]:
    """Create a source topic whose copy was created by another client, with fewer partitions."""
    topic = f"{site.topic}-small"
    site.target.create_topic(f"{site.flow.source}.{topic}", 2)
    site.source.create_topic(topic, site.partitions)
    return topic, "it has 2 partitions"


def foreign(site: Site) -> tuple[str, str]:
    """Create a source topic whose copy has a record of another producer."""
    topic = f"{site.topic}-foreign"
    remote = f"{site.flow.source}.{topic}"
    site.target.create_topic(remote, site.partitions)
    produce_values(site.target, remote, [b"foreign"], partition=2)
    site.source.create_topic(topic, site.partitions)
    return topic, f"records that this flow never wrote ({remote}-2 ends at 1"


def twin_of(site: Site, topic: str) -> str:
    """Return a topic name that collides with the topic's copy: `_` in place of `.`."""
    return f"{site.flow.source}_{topic}"


BAD = pytest.mark.parametrize("bad", [too_long, colliding, too_small, foreign])


@BAD
def test_a_start_refuses_an_impossible_topic_alone(
    site: Site, bad: Callable[[Site], tuple[str, str]]
) -> None:
    """The check passes and names it, every other topic is mirrored, and the exit code is 1."""
    topic, why = bad(site)
    site.produce(400)

    code, [warning, plan] = check(site.config())
    assert code == 0
    assert (warning["event"], warning["level"]) == ("topic.refused", "warning")
    assert warning["topic"] == topic
    assert why in warning["reason"]
    assert plan["topics"] == {site.topic: site.remote}
    assert plan["refused"] == {topic: warning["reason"]}

    with mirror(site.config(), "--once") as running:
        assert running.wait() == 1, running.errors
    assert [one["topic"] for one in running.found("topic.refused")] == [topic]
    assert running.found("flow.summary")[-1]["refused"] == 1
    lines = [line for line in running.errors if line.startswith("eos-mirror: ")]
    assert lines == [f"eos-mirror: not mirrored: {warning['reason']}\n"]
    assert site.compare().exact
    assert site.compare().matched == 400


@BAD
def test_an_impossible_topic_that_appears_later_is_reported_once(
    site: Site, bad: Callable[[Site], tuple[str, str]]
) -> None:
    """It is reported once per run however often topics are checked; other topics are mirrored."""
    config = site.config(**EVERY_SECOND)
    with mirror(config) as running:
        running.wait_for("ready")
        topic, why = bad(site)
        running.wait_for("topic.refused", topic=topic)
        wait_for_checks(running)
        site.produce(400)
        site.wait_caught_up()
        assert running.stop() == 1, running.errors
    (refused,) = running.found("topic.refused")
    assert why in refused["reason"]

    site.produce(400, start=400)
    with mirror(config, "--once") as again:
        assert again.wait() == 1, again.errors
    (repeated,) = again.found("topic.refused")
    assert repeated["reason"] == refused["reason"]
    assert site.compare().exact
    assert site.compare().matched == 800


def test_a_copy_that_is_not_ours_is_not_touched(site: Site) -> None:
    """A copy of another client is neither grown nor written; it is used when it is large enough."""
    topic, _ = too_small(site)
    remote = f"{site.flow.source}.{topic}"
    other, _ = foreign(site)
    produce(site.source, topic, 400, partitions=site.partitions)
    produce(site.source, other, 400, partitions=site.partitions)
    with mirror(site.config(**EVERY_SECOND)) as running:
        (flow,) = running.wait_for("degraded")["flows"]
        assert {one["topic"] for one in running.found("topic.refused")} == {topic, other}
        assert flow["reasons"].keys() == {topic, other}
        wait_for_checks(running)
        assert len(site.target.admin().list_topics(timeout=10).topics[remote].partitions) == 2
        site.target.tool(
            "TopicCommand", "--alter", "--topic", remote, "--partitions", str(site.partitions)
        )
        site.view.wait_caught_up(topic, remote, partitions=site.partitions)
        assert running.stop() == 1, running.errors
    assert len(running.found("topic.refused")) == 2
    assert not running.found("topic.grown")
    assert not running.found("partition.stopped")
    assert site.compare(topic, remote).exact
    assert site.compare(topic, remote).matched == 400
    copy = read_topic(site.target.client_config(), f"{site.flow.source}.{other}", partitions=4)
    assert [record.value for partition in copy for record in partition] == [b"foreign"]


def test_a_copy_grows_with_a_topic_that_grew_while_nothing_ran(site: Site) -> None:
    """At least once, the source group shows that the copy is the flow's own, so it is grown."""
    config = site.config(transaction_producer="false")
    site.produce(400)
    with mirror(config, "--once") as first:
        assert first.wait() == 0, first.errors
    site.source.tool("TopicCommand", "--alter", "--topic", site.topic, "--partitions", "6")
    grown = Site(**{**vars(site), "partitions": 6})
    grown.produce(600, start=400)

    with mirror(config, "--once") as second:
        assert second.wait() == 0, second.errors
    assert second.found("topic.grown", topic=site.remote, partitions=6)
    assert grown.compare().matched == 1000
    assert grown.compare().exact


def test_a_refused_topic_is_mirrored_when_its_obstacle_is_gone(site: Site) -> None:
    """The same run detects it, creates the copy, and mirrors every record of the topic."""
    topic, _ = colliding(site)
    remote = f"{site.flow.source}.{topic}"
    produce(site.source, topic, 400, partitions=site.partitions)
    with mirror(site.config(**EVERY_SECOND)) as running:
        running.wait_for("degraded")
        assert [one["topic"] for one in running.found("topic.refused")] == [topic]
        assert not running.found("ready")
        for answer in site.target.admin().delete_topics([twin_of(site, topic)]).values():
            answer.result(10)
        running.wait_for("topic.created", topic=remote)
        site.view.wait_caught_up(topic, remote, partitions=site.partitions)
        running.wait_for("ready")
        assert running.stop() == 0, running.errors
    assert len(running.found("topic.refused")) == 1
    assert site.compare(topic, remote).exact
    assert site.compare(topic, remote).matched == 400


@pytest.mark.parametrize("exactly_once", [True, False], ids=["exactly once", "at least once"])
def test_of_several_topics_for_one_name_the_newer_one_is_refused(
    site: Site, exactly_once: bool
) -> None:
    """A topic that is mirrored continues, also after a restart; of two new ones neither starts."""
    older, newer, *pair = (f"{site.topic}-{name}" for name in ("v1", "v2", "w1", "w2"))
    remote = f"{site.topic}-v"
    renames = f"{site.topic}-v[12]:{remote}, {site.topic}-w[12]:{site.topic}-w"
    for topic in (older, *pair):
        site.source.create_topic(topic, site.partitions)
    config = site.config(
        replication_policy_topics_map=renames,
        transaction_producer=str(exactly_once).lower(),
        **EVERY_SECOND,
    )
    produce(site.source, older, 400, partitions=site.partitions)
    with mirror(config) as running:
        running.wait_for("degraded")
        assert {one["topic"] for one in running.found("topic.refused")} == set(pair)
        site.source.create_topic(newer, site.partitions)
        refused = running.wait_for("topic.refused", topic=newer)
        assert "several source topics for one remote topic" in refused["reason"]
        wait_for_checks(running)
        assert running.stop() == 1, running.errors
    assert len(running.found("topic.refused")) == 3

    for topic in (older, newer):
        produce(site.source, topic, 400, partitions=site.partitions, start=400)
    with mirror(config, "--once") as again:
        assert again.wait() == 1, again.errors
    assert {one["topic"] for one in again.found("topic.refused")} == {newer, *pair}
    assert json.loads(status(config, "--json"))["refused"].keys() == {newer, *pair}
    assert site.compare(older, remote).exact
    assert site.compare(older, remote).matched == 800


def test_status_names_refused_topics(site: Site) -> None:
    """`status` names colliding and deleted copies, whether or not the flow runs."""
    config = site.config()
    with mirror(config, "--once") as first:
        assert first.wait() == 0, first.errors
    assert json.loads(status(config, "--json"))["refused"] == {}
    delete_topic(site.target, site.remote)
    topic, why = colliding(site)

    found = json.loads(status(config, "--json"))
    assert found["partitions"] == []
    assert found["refused"].keys() == {topic, site.topic}
    assert why in found["refused"][topic]
    assert "the copy was deleted" in found["refused"][site.topic]
    for reason in found["refused"].values():
        assert f"  not mirrored: {reason}\n" in status(config)
