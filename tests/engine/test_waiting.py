"""A partition that cannot be read or written now waits alone, with growing pauses."""

from collections.abc import Iterator

import pytest

from tests.engine.checked_scenario import CheckedScenario
from tests.engine.schedules import ORDERS, mirror_all
from tests.engine.stage import Process, remote_of

pytestmark = pytest.mark.usefixtures("one_core")

MANY = 400


@pytest.fixture
def scenario() -> Iterator[CheckedScenario]:
    """One slot, three partitions with a record each."""
    made = CheckedScenario(slots=1)
    for partition in made.stage.partitions:
        made.stage.produce(partition)
    yield made
    made.close()


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


def test_the_pauses_between_two_questions_grow(scenario: CheckedScenario) -> None:
    """The pauses grow, so a cluster in trouble is not asked once a second by every task."""
    scenario.stage.source.leaderless.add(ORDERS)
    process = scenario.start(0)
    while not process.events("partition.waiting"):
        scenario.step(process)

    first, later = questions(scenario, process, 60), questions(scenario, process, 600)

    assert first > 3
    assert later <= 600 / 30 + 1
