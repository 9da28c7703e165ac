"""After any suspicious commit, a task takes a new incarnation before it does anything else."""

from collections.abc import Iterator

import pytest

from eos_mirror.core.topic_limits import TopicLimits
from eos_mirror.errors import RestartTask
from eos_mirror.replication.incarnation import MOST_LOST
from tests.engine.checked_scenario import CheckedScenario
from tests.engine.gate import Fate
from tests.engine.schedules import ORDERS, finish, mirror_all, reach, settled
from tests.engine.stage import Process, remote_of

pytestmark = pytest.mark.usefixtures("one_core")

MANY = 400


@pytest.fixture
def scenario() -> Iterator[CheckedScenario]:
    """Two slots. The oracle checks every step."""
    empty = CheckedScenario(slots=2)
    yield empty
    empty.close()


def started_with_a_suspicious_commit(scenario: CheckedScenario) -> Process:
    """Start a process whose first commit, the one with the start positions, is sent twice."""
    process = scenario.start(0)
    reach(scenario, process, "end")
    scenario.step(process, 1, Fate.TWICE_SLOW)
    return process


def test_a_position_from_before_the_renewal_is_not_committed_after_it(
    scenario: CheckedScenario,
) -> None:
    """A position is dropped if another task had the partition: it would repeat its records."""
    scenario.produce_aborted(ORDERS)
    process = started_with_a_suspicious_commit(scenario)
    reach(scenario, process, "init")
    for _ in range(3):
        scenario.stage.produce(ORDERS)
    other = scenario.start(1)
    scenario.stage.group.expire(0, 1)
    mirror_all(scenario, other)

    finish(scenario, process)
    scenario.drain()


def test_a_suspicious_first_commit_costs_an_incarnation_and_no_restart(
    scenario: CheckedScenario,
) -> None:
    """A suspicious first commit causes no exit, even if records are ready immediately."""
    for partition in scenario.stage.partitions:
        scenario.stage.produce(partition)
    process = started_with_a_suspicious_commit(scenario)

    mirror_all(scenario, process)

    assert not process.is_over, scenario.endings
    assert len(process.events("incarnation.started")) == 2


def test_a_stop_after_a_suspicious_commit_is_graceful(scenario: CheckedScenario) -> None:
    """A stop after a suspicious last commit releases the claims and exits without an error."""
    process = settled(scenario)
    scenario.stage.produce(ORDERS)
    mirror_all(scenario, process)
    scenario.stage.clock.advance(61)
    reach(scenario, process, "end")
    process.context.stop.set()
    scenario.step(process, 1, Fate.TWICE_SLOW)
    finish(scenario, process)

    assert process.actor.error is None, scenario.endings
    assert scenario.stage.target.live_claims() == set()


def test_a_task_that_loses_every_transaction_exits() -> None:
    """Its supervisor waits before the next process. A commit between losses ends the series."""
    scenario = CheckedScenario(slots=1, own_lane=True)
    try:
        process = settled(scenario)
        for _ in range(2):
            scenario.stage.produce(ORDERS)
            lose_transactions(scenario, process, MOST_LOST - 1)
            mirror_all(scenario, process)
        assert not process.is_over, scenario.endings

        scenario.stage.produce(ORDERS)
        lose_transactions(scenario, process, MOST_LOST)
        finish(scenario, process)
        assert type(process.actor.error) is RestartTask
        assert str(process.actor.error).startswith("5 transactions were lost in a row: ")
    finally:
        scenario.close()


def lose_transactions(scenario: CheckedScenario, process: Process, count: int) -> None:
    """Let the offsets of so many transactions never arrive."""
    for _ in range(count):
        reach(scenario, process, "offsets")
        scenario.step(process, 1, Fate.NOT_SENT)


@pytest.mark.parametrize("fault", ["no leader", "too few replicas"])
def test_only_the_partition_that_cannot_be_written_waits_after_the_renewal(fault: str) -> None:
    """Our own lane loses the transaction, not the process; the other partitions continue."""
    scenario = CheckedScenario(slots=1, own_lane=True)
    try:
        process, target = settled(scenario), scenario.stage.target
        remote = remote_of(ORDERS)
        target.limits[remote.topic] = TopicLimits(max_message_bytes=1_048_588, min_in_sync=2)
        unwritable = target.leaderless if fault == "no leader" else target.shrunk
        unwritable.add(remote)
        for partition in scenario.stage.partitions:
            scenario.stage.produce(partition)
        for _ in range(MANY):
            scenario.step(process)

        assert len(process.events("transaction.lost")) == 1
        (waiting,) = process.events("partition.waiting")
        assert waiting["partition"] == str(ORDERS)
        others = [one for one in scenario.stage.partitions if one != ORDERS]
        assert all(map(scenario.oracle.reached, others))
        assert not scenario.oracle.reached(ORDERS)

        unwritable.clear()
        scenario.stage.clock.advance(60)
        mirror_all(scenario, process)
        assert not process.is_over, scenario.endings
        assert all(map(scenario.oracle.reached, scenario.stage.partitions))
    finally:
        scenario.close()
