"""If the source or a position was changed, the partition stops and nothing is skipped silently."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from confluent_kafka import TopicPartition as ClientPartition

from eos_mirror.core.records import Position, TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.kafka.groups import CommittedOffsets, set_group_offsets
from eos_mirror.testing import wait_until
from tests.mirror.conftest import Site
from tests.mirror.toolbox import mirror

pytestmark = [pytest.mark.brokers, pytest.mark.long]


def test_a_topic_created_again_is_not_taken_for_the_old_one(site: Site) -> None:
    """The new topic is detected even if its log is longer, so that no offset is out of range."""
    site.produce(400)
    with mirror(site.config(), "--once") as first:
        assert first.wait() == 0, first.errors
    admin = site.source.admin()
    admin.delete_topics([site.topic])[site.topic].result(10)
    wait_until(
        lambda: site.topic not in admin.list_topics(timeout=5).topics,
        within=timedelta(seconds=20),
        what="the topic to be gone",
    )
    site.source.create_topic(site.topic, site.partitions)
    site.produce(2_000)

    with mirror(site.config(), "--once") as second:
        assert second.wait() == 1, second.errors

    stopped = second.found("partition.stopped", cause="SourceDataLost")
    assert len(stopped) == site.partitions
    assert "created again" in stopped[0]["reason"]


def test_records_that_expired_before_they_were_read_are_reported(site: Site) -> None:
    """Retention that overtakes the mirror is reported as a loss and never skipped."""
    site.produce(400)
    with mirror(site.config(), "--once") as first:
        assert first.wait() == 0, first.errors
    site.produce(400, start=400)
    cut = [ClientPartition(site.topic, 0, 150)]
    for answer in site.source.admin().delete_records(cut).values():
        answer.result(10)

    with mirror(site.config(), "--once") as second:
        assert second.wait() == 1, second.errors

    stopped = second.found("partition.stopped", cause="SourceDataLost")
    assert [event["partition"] for event in stopped] == [f"{site.topic}-0"]
    assert "next_offset=100" in stopped[0]["reason"]
    assert "starts at 150" in stopped[0]["reason"]


def reset_with_kafkas_tool(site: Site, partition: int, offset: int) -> None:
    """Reset a shadow offset with Kafka's tool, which commits no metadata."""
    where = f"{site.remote}:{partition}"
    site.target.tool(
        "ConsumerGroupCommand", "--group", site.flow.shadow_group, "--topic", where,
        "--reset-offsets", "--to-offset", str(offset), "--execute",
    )  # fmt: skip


def change_the_number_only(site: Site, partition: int, offset: int) -> None:
    """Change a shadow offset and keep its metadata, as a tool that restores groups may do."""
    remote = TopicPartition(site.remote, partition)
    group = site.flow.shadow_group
    offsets = CommittedOffsets(site.target.client_config(), group, side=Side.TARGET)
    changed = {remote: replace(offsets.read([remote])[remote], position=Position(offset))}
    set_group_offsets(site.target.admin(), group, changed, side=Side.TARGET)


@pytest.mark.parametrize("change", [reset_with_kafkas_tool, change_the_number_only])
def test_a_shadow_offset_changed_by_hand_is_not_believed(
    site: Site, change: Callable[[Site, int, int], None]
) -> None:
    """The offset map shows that the offset was changed, so the partition stops."""
    site.produce(400)
    with mirror(site.config(), "--once") as first:
        assert first.wait() == 0, first.errors
    change(site, 1, 7)

    with mirror(site.config(), "--once") as second:
        assert second.wait() == 1, second.errors

    stopped = second.found("partition.stopped", cause="PositionLost")
    assert [event["partition"] for event in stopped] == [f"{site.topic}-1"]


def test_lost_shadow_offsets_are_rebuilt_from_the_map_after_a_clean_stop(site: Site) -> None:
    """Shadow offsets that have expired are rebuilt, because the map topic does not expire."""
    site.produce(400)
    with mirror(site.config(), "--once") as first:
        assert first.wait() == 0, first.errors
    site.target.admin().delete_consumer_groups([site.flow.shadow_group])[
        site.flow.shadow_group
    ].result(10)
    site.produce(400, start=400)

    with mirror(site.config(), "--once") as second:
        assert second.wait() == 0, second.errors

    compared = site.compare()
    assert compared.exact, str(compared)
    assert compared.matched == 800
