"""If a copy is deleted on the target, only its own topic is no longer mirrored."""

from datetime import timedelta

import pytest
from confluent_kafka import Producer

from eos_mirror.core.records import Position, TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.errors import RestartTask
from eos_mirror.kafka.groups import set_group_offsets
from eos_mirror.kafka.topic_reader import read_compacted
from eos_mirror.ports import GroupOffset
from eos_mirror.testing import wait_until
from tests.mirror.command_line import check
from tests.mirror.conftest import Site
from tests.mirror.surgery import delete_topic
from tests.mirror.toolbox import EVERY_SECOND, mirror, produce, wait_for_checks

pytestmark = [pytest.mark.brokers, pytest.mark.long]

SOON_S = 20


@pytest.mark.parametrize("exactly_once", [True, False], ids=["exactly once", "at least once"])
def test_a_copy_deleted_while_the_flow_runs_ends_only_its_own_topic(
    site: Site, exactly_once: bool
) -> None:
    """The copy is reported once and not created again. Other and new topics are mirrored."""
    keep, new = f"{site.topic}-keep", f"{site.topic}-new"
    copies = {topic: f"{site.flow.source}.{topic}" for topic in (site.topic, keep, new)}
    site.source.create_topic(keep, site.partitions)
    for topic in (site.topic, keep):
        produce(site.source, topic, 400, partitions=site.partitions)
    config = site.config(transaction_producer=str(exactly_once).lower(), **EVERY_SECOND)

    def caught_up(topic: str, *, within_s: float = 60) -> None:
        if exactly_once:
            site.view.wait_caught_up(
                topic, copies[topic], partitions=site.partitions, within_s=within_s
            )
            return
        ends = site.view.ends(topic, site.partitions)
        wait_until(
            lambda: site.view.source_positions(topic, site.partitions) == ends,
            within=timedelta(seconds=within_s),
            what=f"offsets of {topic} at {ends}",
        )

    with mirror(config) as running:
        running.wait_for("ready")
        caught_up(site.topic)
        caught_up(keep)
        delete_topic(site.target, site.remote)
        refused = running.wait_for("topic.refused", topic=site.topic)
        assert f"deleted on {site.flow.target}" in refused["reason"]
        assert "docs/operations.md" in refused["reason"]
        site.source.create_topic(new, site.partitions)
        produce(site.source, new, 400, partitions=site.partitions)
        running.wait_for("topic.created", topic=copies[new], within_s=SOON_S)
        caught_up(new, within_s=SOON_S)
        produce(site.source, keep, 400, partitions=site.partitions, start=400)
        produce(site.source, site.topic, 400, partitions=site.partitions, start=400)
        caught_up(keep, within_s=SOON_S)
        wait_for_checks(running)
        assert running.stop() == 1, running.errors
    assert len(running.found("topic.refused")) == 1
    assert not running.found("chore.failed")
    assert site.remote not in site.target.admin().list_topics(timeout=10).topics
    for topic, count in ((keep, 800), (new, 400)):
        compared = site.compare(topic, copies[topic])
        assert compared.exact, compared
        assert compared.matched == count


def forget(site: Site, *, exactly_once: bool) -> None:
    """Follow the steps of docs/operations.md that let a topic be mirrored again from its start."""
    if not exactly_once:
        beginning = GroupOffset(position=Position(0, None), metadata="")
        offsets = {TopicPartition(site.topic, p): beginning for p in range(site.partitions)}

        def is_reset() -> bool:
            try:
                set_group_offsets(
                    site.source.admin(), site.flow.source_group, offsets, side=Side.SOURCE
                )
            except RestartTask:
                return False
            return True

        wait_until(is_reset, within=timedelta(seconds=30), what="the end of the last session")
        return
    maps = site.flow.offset_map_topic
    config = site.target.client_config()
    producer = Producer(config)
    for key in read_compacted(config, maps, group=site.flow.shadow_group):
        if key.startswith(f'["{site.remote}",'):
            producer.produce(maps, None, key.encode(), partition=0)
    assert producer.flush(10) == 0


@pytest.mark.parametrize("exactly_once", [True, False], ids=["exactly once", "at least once"])
def test_a_copy_deleted_between_two_runs_is_not_created_again(
    site: Site, exactly_once: bool
) -> None:
    """An empty copy would hide the loss. The steps of operations.md mirror the topic again."""
    site.produce(400)
    config = site.config(transaction_producer=str(exactly_once).lower(), session_timeout_ms=6000)
    with mirror(config, "--once") as first:
        assert first.wait() == 0, first.errors
    delete_topic(site.target, site.remote)
    site.produce(400, start=400)

    code, [warning, plan] = check(config)
    assert code == 0
    assert warning["topic"] == site.topic
    assert "the copy was deleted" in warning["reason"]
    assert plan["create"] == []
    with mirror(config, "--once") as second:
        assert second.wait() == 1, second.errors
    assert [one["reason"] for one in second.found("topic.refused")] == [warning["reason"]]
    assert site.remote not in site.target.admin().list_topics(timeout=10).topics

    forget(site, exactly_once=exactly_once)
    with mirror(config, "--once") as third:
        assert third.wait() == 0, third.errors
    assert site.compare().exact
    assert site.compare().matched == 800


def test_a_deleted_copy_starts_again_in_a_run_that_sees_the_commands(site: Site) -> None:
    """Without a restart, the topic is checked again after growing pauses."""
    keep = f"{site.topic}-keep"
    site.source.create_topic(keep, site.partitions)
    site.produce(400)
    with mirror(site.config()) as running:
        running.wait_for("ready")
        site.wait_caught_up()
        delete_topic(site.target, site.remote)
        running.wait_for("topic.refused", topic=site.topic)
        site.view.wait_caught_up(keep, f"{site.remote}-keep", partitions=site.partitions)
        forget(site, exactly_once=True)
        running.wait_for("topic.created", topic=site.remote, count=2, within_s=120)
        site.wait_caught_up()
        assert running.stop() == 0, running.errors
    assert len(running.found("topic.refused")) == 1
    assert site.compare().exact
    assert site.compare().matched == 400
