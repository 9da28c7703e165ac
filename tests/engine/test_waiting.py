"""A partition that cannot be read or written now waits alone, with growing pauses."""

from collections.abc import Iterator

import pytest

from tests.engine.drama import Drama
from tests.engine.schedules import ORDERS, mirror_all
from tests.engine.stage import Process, remote_of

pytestmark = pytest.mark.usefixtures("one_core")

MANY = 400


@pytest.fixture
def drama() -> Iterator[Drama]:
    """One slot, three partitions with a record each."""
    made = Drama(slots=1)
    for partition in made.stage.partitions:
        made.stage.produce(partition)
    yield made
    made.close()


def questions(drama: Drama, process: Process, seconds: float) -> int:
    """How often it asks about topics of the target in so many seconds."""
    asked, until = 0, drama.stage.clock() + seconds
    while drama.stage.clock() < until:
        asked += process.actor.at == "partitions"
        drama.step(process)
        drama.stage.clock.advance(0.05)
    return asked


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_partition_without_a_leader_is_waited_for_while_others_are_mirrored(
    drama: Drama, side: str
) -> None:
    """One event says so; it is claimed only when it has a leader."""
    stage = drama.stage
    leaderless = stage.source.leaderless if side == "source" else stage.target.leaderless
    leaderless.add(ORDERS if side == "source" else remote_of(ORDERS))
    process = drama.start(0)
    for _ in range(MANY):
        drama.step(process)
    others = [partition for partition in stage.partitions if partition != ORDERS]

    assert all(map(drama.oracle.reached, others))
    (waiting,) = process.events("partition.waiting")
    assert waiting["partition"] == str(ORDERS)
    assert "has no leader on" in str(waiting["reason"])
    assert process.context.reports[-1].waiting == {ORDERS: waiting["reason"]}
    assert len(stage.target.live_claims()) == len(others)

    leaderless.clear()
    stage.clock.advance(60)
    mirror_all(drama, process)
    assert process.actor.error is None
    assert all(map(drama.oracle.reached, stage.partitions))
    assert not process.context.reports[-1].waiting


def test_the_pauses_between_two_questions_grow(drama: Drama) -> None:
    """A cluster that is in trouble is not asked once a second by every task."""
    drama.stage.source.leaderless.add(ORDERS)
    process = drama.start(0)
    while not process.events("partition.waiting"):
        drama.step(process)

    first, later = questions(drama, process, 60), questions(drama, process, 600)

    assert first > 3
    assert later <= 600 / 30 + 1
