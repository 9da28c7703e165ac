"""A partition that cannot be read or written now waits alone, with growing pauses."""

import pytest

from eos_mirror.core.topic_limits import TopicLimits
from tests.engine.checked_scenario import CheckedScenario
from tests.engine.schedules import ORDERS, mirror_all, settled
from tests.engine.stage import Process, remote_of

pytestmark = pytest.mark.usefixtures("one_core")

MANY = 400


def questions(scenario: CheckedScenario, process: Process, seconds: float) -> int:
    """Return how often it asks about topics of the target in this many seconds."""
    asked, until = 0, scenario.stage.clock() + seconds
    while scenario.stage.clock() < until:
        asked += process.actor.at == "partitions"
        scenario.step(process)
        scenario.stage.clock.advance(0.05)
    return asked


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_partition_without_a_leader_is_waited_for_while_others_are_mirrored(
    scenario: CheckedScenario, side: str
) -> None:
    """A partition without a leader causes one event, and is claimed only once it has a leader."""
    stage = scenario.stage
    leaderless = stage.source.leaderless if side == "source" else stage.target.leaderless
    leaderless.add(ORDERS if side == "source" else remote_of(ORDERS))
    process = scenario.start(0)
    for _ in range(MANY):
        scenario.step(process)
    others = [partition for partition in stage.partitions if partition != ORDERS]

    assert all(map(scenario.oracle.reached, others))
    (waiting,) = process.events("partition.waiting")
    assert waiting["partition"] == str(ORDERS)
    assert "has no leader on" in str(waiting["reason"])
    assert process.context.reports[-1].waiting == {ORDERS: waiting["reason"]}
    assert len(stage.target.live_claims()) == len(others)

    leaderless.clear()
    stage.clock.advance(60)
    mirror_all(scenario, process)
    assert process.actor.error is None
    assert all(map(scenario.oracle.reached, stage.partitions))
    assert not process.context.reports[-1].waiting


def test_an_owned_partition_that_loses_its_leader_is_waited_for(scenario: CheckedScenario) -> None:
    """Without a record that fails, nothing else would show it."""
    process = settled(scenario)
    scenario.stage.source.leaderless.add(ORDERS)
    scenario.stage.clock.advance(6)
    scenario.step(process, MANY)
    assert process.context.reports[-1].waiting == {ORDERS: f"{ORDERS} has no leader on A"}

    scenario.stage.source.leaderless.clear()
    scenario.stage.clock.advance(6)
    scenario.step(process, MANY)
    assert not process.context.reports[-1].waiting


@pytest.mark.parametrize(("least", "waits"), [(1, False), (2, True)])
def test_a_remote_partition_with_too_few_replicas_in_sync_is_waited_for(
    scenario: CheckedScenario, least: int, waits: bool
) -> None:
    """A replica that is away matters only if the topic needs it for a write."""
    stage = scenario.stage
    remote = remote_of(ORDERS)
    stage.target.shrunk.add(remote)
    stage.target.limits[remote.topic] = TopicLimits(max_message_bytes=1_048_588, min_in_sync=least)
    process = scenario.start(0)
    for _ in range(MANY):
        scenario.step(process)

    assert scenario.oracle.reached(ORDERS) is not waits
    assert all(scenario.oracle.reached(one) for one in stage.partitions if one != ORDERS)
    reasons = [str(event["reason"]) for event in process.events("partition.waiting")]
    assert ["has 1 of 3 replicas in sync" in reason for reason in reasons] == [True] * waits

    stage.target.shrunk.clear()
    stage.clock.advance(60)
    mirror_all(scenario, process)
    assert all(map(scenario.oracle.reached, stage.partitions))


def test_the_pauses_between_two_questions_grow(scenario: CheckedScenario) -> None:
    """The pauses grow, so a cluster in trouble is not asked once a second by every task."""
    scenario.stage.source.leaderless.add(ORDERS)
    process = scenario.start(0)
    while not process.events("partition.waiting"):
        scenario.step(process)

    first, later = questions(scenario, process, 60), questions(scenario, process, 600)

    assert first > 3
    assert later <= 600 / 30 + 1
