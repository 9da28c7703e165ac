"""A new incarnation must be taken before anything else is done, whatever was suspicious."""

from collections.abc import Iterator

import pytest

from tests.engine.drama import Drama
from tests.engine.gate import Fate
from tests.engine.schedules import ORDERS, finish, mirror_all, reach, settled
from tests.engine.stage import Process

pytestmark = pytest.mark.usefixtures("one_core")


@pytest.fixture
def drama() -> Iterator[Drama]:
    """Two slots. The oracle looks at every step."""
    empty = Drama(slots=2)
    yield empty
    empty.close()


def started_with_a_suspicious_commit(drama: Drama) -> Process:
    """Its first commit, the one with the start positions, was sent twice."""
    process = drama.start(0)
    reach(drama, process, "end")
    drama.step(process, 1, Fate.TWICE_SLOW)
    return process


def test_a_position_from_before_the_renewal_is_not_committed_after_it(drama: Drama) -> None:
    """Somebody else had the partition meanwhile: the old position would repeat its records."""
    drama.produce_aborted(ORDERS)
    process = started_with_a_suspicious_commit(drama)
    reach(drama, process, "init")
    for _ in range(3):
        drama.stage.produce(ORDERS)
    other = drama.start(1)
    drama.stage.group.expire(0, 1)
    mirror_all(drama, other)

    finish(drama, process)
    drama.drain()


def test_a_suspicious_first_commit_costs_an_incarnation_and_no_restart(drama: Drama) -> None:
    """Records that are ready at once do not turn the light step into an exit."""
    for partition in drama.stage.partitions:
        drama.stage.produce(partition)
    process = started_with_a_suspicious_commit(drama)

    mirror_all(drama, process)

    assert not process.is_over, drama.endings
    assert len(process.events("incarnation.started")) == 2


def test_a_stop_after_a_suspicious_commit_is_graceful(drama: Drama) -> None:
    """Everything is committed already: what is left to do is to release."""
    process = settled(drama)
    drama.stage.produce(ORDERS)
    mirror_all(drama, process)
    drama.stage.clock.advance(61)
    reach(drama, process, "end")
    process.context.stop.set()
    drama.step(process, 1, Fate.TWICE_SLOW)
    finish(drama, process)

    assert process.actor.error is None, drama.endings
    assert drama.stage.target.live_claims() == set()
