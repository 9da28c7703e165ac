"""The failure matrix, bookkeeping: positions and claims that expire, are edited or deleted."""

import os
import signal
from collections.abc import Callable
from datetime import timedelta

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions
from confluent_kafka import TopicPartition as ClientPartition

from eos_mirror.testing import wait_until
from tests.mirror.conftest import Site
from tests.mirror.surgery import delete_topic
from tests.mirror.toolbox import Mirror, mirror

pytestmark = pytest.mark.brokers

UNSAFE = 4


def wait_caught_up(site: Site) -> None:
    """Until the shadow offsets are at the ends of the source."""
    site.view.wait_caught_up(site.topic, site.remote, partitions=site.partitions)


def positions_of(site: Site) -> set[int]:
    """The shadow offsets; -1 is none."""
    return set(site.view.positions(site.remote, site.partitions).values())


def assert_exact(site: Site, count: int) -> None:
    """So many records, once, in order, all fields."""
    compared = site.compare()
    assert compared.exact, str(compared)
    assert compared.matched == count


def edit_position(site: Site, partition: int, offset: int) -> None:
    """As a person with an admin client would."""
    edited = ConsumerGroupTopicPartitions(
        site.flow.shadow_group, [ClientPartition(site.remote, partition, offset)]
    )
    for answer in site.target.admin().alter_consumer_group_offsets([edited]).values():
        answer.result(10)


def delete_shadow_group(site: Site) -> None:
    """Every position is gone."""
    group = site.flow.shadow_group
    site.target.admin().delete_consumer_groups([group])[group].result(10)


@pytest.mark.parametrize(
    "interfere",
    [delete_shadow_group, lambda site: edit_position(site, 1, 7)],
    ids=["group deleted", "offset edited"],
)
def test_o3_positions_changed_under_a_running_task_are_written_again(
    site: Site, interfere: Callable[[Site], None]
) -> None:
    """The task knows better: its next commit, at the latest on the stop, overwrites them."""
    site.produce(400)
    with mirror(site.config()) as running:
        running.wait_for("ready")
        wait_caught_up(site)
        interfere(site)
        site.produce(400, start=400)
        wait_caught_up(site)
        interfere(site)
        assert running.stop() == 0, running.errors
    assert positions_of(site) == {200}

    site.produce(400, start=800)
    with mirror(site.config(), "--once") as again:
        assert again.wait() == 0, again.errors
    assert_exact(site, 1_200)


def kill_the_task(running: Mirror) -> None:
    """Its successor has to claim everything again."""
    os.kill(running.pid(), signal.SIGKILL)


def create_claims_topic(site: Site) -> None:
    """An empty one, with the right settings."""
    site.target.create_topic(site.flow.claims_topic, 1, config={"cleanup.policy": "compact"})


def test_o4_a_flow_whose_claims_topic_is_gone_is_not_started(site: Site) -> None:
    """An older writer could not be fenced; nothing is created or written."""
    site.produce(400)
    with mirror(site.config(), "--once") as first:
        assert first.wait() == 0, first.errors
    delete_topic(site.target, site.flow.claims_topic)
    site.produce(400, start=400)

    with mirror(site.config(), "--once") as second:
        assert second.wait() == UNSAFE, (second.errors, second.events)

    assert f"{site.flow.claims_topic} is gone" in second.errors[-1]
    assert site.flow.claims_topic not in site.target.admin().list_topics(timeout=10).topics
    assert positions_of(site) == {100}


def test_o4_a_claims_topic_created_again_between_two_runs_fails_the_task(site: Site) -> None:
    """The positions say under which claims topic they were committed."""
    site.produce(400)
    with mirror(site.config(), "--once") as first:
        assert first.wait() == 0, first.errors
    delete_topic(site.target, site.flow.claims_topic)
    create_claims_topic(site)
    site.produce(400, start=400)

    with mirror(site.config(), "--once") as second:
        assert second.wait() == 1, (second.errors, second.events)

    (failed,) = second.found("task.failed")
    assert "FatalError" in failed["reason"]
    assert site.flow.claims_topic in failed["reason"]
    assert positions_of(site) == {100}


@pytest.mark.parametrize("again", [False, True], ids=["deleted", "created again"])
def test_o4_a_claims_topic_lost_while_the_flow_runs_fails_the_next_claimer(
    site: Site, *, again: bool
) -> None:
    """Who cannot see the earlier claims must not write."""
    site.produce(400)
    with mirror(site.config()) as running:
        running.wait_for("ready")
        wait_caught_up(site)
        delete_topic(site.target, site.flow.claims_topic)
        if again:
            create_claims_topic(site)
        kill_the_task(running)
        site.produce(400, start=400)
        failed = running.wait_for("task.failed", within_s=30)
        assert running.wait() == 1, running.errors

    assert site.flow.claims_topic in failed["reason"]
    assert "docs/operations.md" in failed["reason"]
    assert positions_of(site) == {100}, "mirrored without knowing the earlier claims"


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_o5_a_consumer_with_the_shadow_groups_id_is_refused_at_the_start(
    site: Site, protocol: str
) -> None:
    """The line names the group and the consumer; without it the flow starts."""
    site.produce(400)
    site.target.create_topic(f"{site.topic}-for-the-intruder")
    intruder = Consumer(
        {
            **site.target.client_config(),
            "group.id": site.flow.shadow_group,
            "group.protocol": protocol,
            "client.id": "intruder",
        }
    )
    intruder.subscribe([f"{site.topic}-for-the-intruder"])
    wait_until(
        lambda: intruder.poll(0.1) is None and bool(intruder.assignment()),
        within=timedelta(seconds=20),
        what="the intruder to join",
    )

    with mirror(site.config(), "--once") as refused:
        assert refused.wait() == UNSAFE, (refused.errors, refused.events)
    intruder.close()
    with mirror(site.config(), "--once") as accepted:
        assert accepted.wait() == 0, accepted.errors

    assert site.flow.shadow_group in refused.errors[-1]
    assert "intruder" in refused.errors[-1]
    assert_exact(site, 400)
