"""
The failure matrix, row by row, where a fake can stop a task between any two requests.

Rows that need real processes, networks or brokers (C6, G1, G3, G5, G6, O3 to O5, S and T) are in
tests/mirror and tests/chaos. P5, a full queue, happens below the port: the producer waits it out.
"""

from collections.abc import Iterator

import pytest

from eos_mirror.core.records import TopicPartition
from tests.engine.checked_scenario import CheckedScenario
from tests.engine.gate import Fate
from tests.engine.schedules import (
    ORDERS,
    finish,
    mirror_all,
    reach,
    settled,
    with_open_transaction,
)
from tests.engine.stage import KEEPALIVE, Process, remote_of
from tests.engine.target_cluster import GROUP
from tests.engine.target_log import Record

pytestmark = pytest.mark.usefixtures("one_core")


@pytest.fixture
def scenario() -> Iterator[CheckedScenario]:
    """Two slots, three partitions with two records each. The oracle checks every step."""
    with_records = CheckedScenario(slots=2)
    for partition in with_records.stage.partitions:
        with_records.stage.produce(partition)
        with_records.stage.produce(partition)
    yield with_records
    with_records.close()


def fenced_by(process: Process) -> int:
    """Return how many incarnations it has fenced."""
    return len(process.events("incarnation.fenced"))


def take_over(scenario: CheckedScenario, slot: int = 0) -> Process:
    """Start a successor, which must mirror everything."""
    process = settled(scenario, slot)
    assert process.actor.error is None
    assert all(map(scenario.oracle.reached, scenario.stage.partitions))
    return process


def assert_only_claims_of(scenario: CheckedScenario, process: Process) -> None:
    """Assert that the process has a claim on every partition, and earlier incarnations none."""
    own = process.events("incarnation.started")[-1]["transactional_id"]
    live = scenario.stage.target.live_claims()
    assert len(live) == len(scenario.stage.partitions)
    assert all(str(own) in key for key in live)


def test_c0_crash_before_the_claim_is_harmless(scenario: CheckedScenario) -> None:
    """Nothing is in the claims log, so the successor fences nothing."""
    process = scenario.start(0)
    reach(scenario, process, "claim")
    scenario.crash(process)
    assert scenario.stage.target.live_claims() == set()

    assert fenced_by(take_over(scenario)) == 0


def test_c1_crash_after_the_claim_is_fenced_and_buried(scenario: CheckedScenario) -> None:
    """The next incarnation finds the claims of a dead one, fences it and tombstones them."""
    process = scenario.start(0)
    reach(scenario, process, "read the claims")
    scenario.crash(process)
    assert len(scenario.stage.target.live_claims()) == 3

    successor = take_over(scenario)

    assert fenced_by(successor) == 1
    assert_only_claims_of(scenario, successor)


def test_c2_crash_between_fence_and_tombstone_is_fenced_again(scenario: CheckedScenario) -> None:
    """A claim that was fenced and not tombstoned costs one more fence, and does no harm."""
    scenario.crash(settled(scenario))
    second = scenario.start(0)
    reach(scenario, second, "tombstone")
    scenario.crash(second)

    third = take_over(scenario)

    assert (fenced_by(second), fenced_by(third)) == (1, 2)
    assert_only_claims_of(scenario, third)


@pytest.mark.parametrize("point", ["add A.orders", "produce", "offsets", "map sent", "end"])
def test_c3_crash_inside_a_transaction_leaves_nothing_visible(
    scenario: CheckedScenario, point: str
) -> None:
    """The successor aborts what was open and mirrors it again."""
    process = with_open_transaction(scenario)
    before = scenario.stage.target.decided_offsets()
    reach(scenario, process, point)
    scenario.crash(process)
    assert scenario.stage.target.decided_offsets() == before

    assert fenced_by(take_over(scenario)) == 1


@pytest.mark.parametrize("fate", [Fate.NOT_SENT, Fate.NOT_ANSWERED, Fate.DELAYED])
def test_c4_an_unanswered_commit_is_decided_one_way(scenario: CheckedScenario, fate: Fate) -> None:
    """The successor finds out whether the commit arrived, early or late, and continues."""
    process = with_open_transaction(scenario)
    reach(scenario, process, "end")
    scenario.step(process, 1, fate)
    assert process.is_over
    assert "CommitOutcomeUnknown" in scenario.endings[-1]

    take_over(scenario)
    scenario.deliver_late(0)
    scenario.drain()


def test_c5_crash_after_the_commit_costs_one_fence(scenario: CheckedScenario) -> None:
    """The committed transaction is kept; the claims of the dead task are fenced and tombstoned."""
    process = settled(scenario)
    process.context.stop.set()
    reach(scenario, process, "tombstone")
    committed = scenario.stage.target.decided_offsets()
    scenario.crash(process)

    successor = take_over(scenario)

    assert fenced_by(successor) == 1
    assert scenario.stage.target.decided_offsets() == committed
    assert_only_claims_of(scenario, successor)


def test_c7_an_incarnation_that_the_target_forgot_ends(scenario: CheckedScenario) -> None:
    """A task whose transactional id expired during a pause exits instead of getting a new one."""
    process = settled(scenario)
    scenario.expire_id(0)
    scenario.stage.produce(ORDERS)
    finish(scenario, process)
    assert "MAPPING" in scenario.endings[-1]

    take_over(scenario)


@pytest.mark.parametrize("point", ["poll", "produce", "offsets", "end", "claim", "fetch offsets"])
def test_c8_a_jump_of_the_clock_does_no_harm(scenario: CheckedScenario, point: str) -> None:
    """A clock jump of a year, at any moment, causes early commits and restarts at worst."""
    process = scenario.start(0)
    reach(scenario, process, point)
    scenario.stage.clock.advance(365 * 86_400)
    finish(scenario, process)

    scenario.drain()


def test_g2_a_target_out_of_reach_is_waited_for(scenario: CheckedScenario) -> None:
    """Every process exits at its first lost request; the one after the repair continues."""
    for point in ("init", "partitions", "claim", "read the claims", "produce", "end"):
        process = scenario.start(0)
        reach(scenario, process, point)
        scenario.step(process, 1, Fate.NOT_SENT)
        scenario.step(process, 1)
        assert process.is_over, point

    take_over(scenario)


def test_g4_a_claim_without_an_answer_is_one_claim_too_many(scenario: CheckedScenario) -> None:
    """The claim is in the log, and the successor fences and tombstones it."""
    process = scenario.start(0)
    reach(scenario, process, "claim")
    scenario.step(process, 1, Fate.NOT_ANSWERED)
    assert process.is_over
    assert len(scenario.stage.target.live_claims()) == 1

    assert_only_claims_of(scenario, take_over(scenario))


@pytest.mark.parametrize("request_twice", ["offsets", "end"])
@pytest.mark.parametrize("sign", [Fate.TWICE_CUT, Fate.TWICE_SLOW])
@pytest.mark.parametrize("point", ["produce", "offsets", "map sent", "end"])
def test_g7_a_late_duplicate_finds_nothing_to_commit(
    scenario: CheckedScenario, request_twice: str, sign: Fate, point: str
) -> None:
    """A slow or cut commit makes a new incarnation, wherever the late copy arrives."""
    process = with_open_transaction(scenario)
    reach(scenario, process, request_twice)
    scenario.step(process, 1, sign)
    assert scenario.stage.target.network
    scenario.stage.produce(ORDERS)
    reach(scenario, process, "init")
    reach(scenario, process, point)
    scenario.deliver_late(0)
    mirror_all(scenario, process)

    assert len(process.events("incarnation.started")) == 2
    assert process.actor.error is None
    scenario.drain()


def test_g8_lost_markers_stop_the_partition_and_are_named(scenario: CheckedScenario) -> None:
    """
    A decided transaction whose marker never comes stops its partition after 30 s.

    The oracle is not used: the target has not kept what it acknowledged.
    """
    process = with_open_transaction(scenario)
    scenario.hold_markers()
    reach(scenario, process, "end")
    scenario.step(process)
    scenario.stage.target.coordinator.lose_markers(remote_of(ORDERS))
    scenario.stage.target.write_markers()
    scenario.crash(process)

    successor = scenario.start(0)
    for _ in range(60):
        successor.actor.step()
    assert not successor.events("partition.stopped")
    scenario.stage.clock.advance(31)
    for _ in range(20):
        successor.actor.step()

    (stopped,) = successor.events("partition.stopped")
    assert (stopped["partition"], stopped["cause"]) == (str(ORDERS), "MarkersLost")
    assert len(scenario.stage.target.live_claims()) == 2


def with_half_a_commit(scenario: CheckedScenario, lost: TopicPartition) -> Process:
    """
    Return A, which continues after half a commit.

    Its commit of two records is decided, but one participant never gets the marker.
    """
    process = with_open_transaction(scenario)
    scenario.hold_markers()
    reach(scenario, process, "end")
    scenario.step(process)
    coordinator = scenario.stage.target.coordinator
    coordinator.lose_markers(lost)
    scenario.stage.target.write_markers()
    coordinator.auto_markers = True
    scenario.stage.produce(ORDERS)
    for _ in range(80):
        if process.actor.at == "offsets":
            break
        process.actor.step()
    assert process.actor.at == "offsets"
    return process


@pytest.mark.parametrize(
    ("lost", "reason"), [(GROUP, "doubled"), (remote_of(ORDERS), "was aborted")]
)
def test_g8_half_a_commit_is_not_built_upon(
    scenario: CheckedScenario, lost: TopicPartition, reason: str
) -> None:
    """
    Half a commit stops the partition, although the next abort leaves nothing undecided.

    The oracle is not used: the target has not kept what it acknowledged.
    """
    process = with_half_a_commit(scenario, lost)
    scenario.crash(process)

    for _ in range(2):
        successor = scenario.start(0)
        for _ in range(80):
            successor.actor.step()
        (stopped,) = successor.events("partition.stopped")
        assert (stopped["partition"], stopped["cause"]) == (str(ORDERS), "MarkersLost")
        assert reason in str(stopped["reason"])
        scenario.crash(successor)
    decided = scenario.stage.target.decided_records(remote_of(ORDERS))
    assert len(decided) == (4 if lost == GROUP else 2)


def test_o2_what_a_transaction_on_the_map_may_hide_is_waited_for(scenario: CheckedScenario) -> None:
    """No partition begins as never mirrored while the map cannot be read to its end."""
    target = scenario.stage.target
    other, entry = target.coordinator.init("another"), Record(b'["another",0,0]', b"", None, 0)
    target.coordinator.add(other, [target.map_partition])
    target.produce(other, target.map_partition, [entry])
    process = scenario.start(0)

    for _ in range(60):
        process.actor.step()
    assert not process.events("partitions.acquired")
    assert not process.events("partition.stopped")

    target.coordinator.init("another")  # to initialise its id ends its transaction
    mirror_all(scenario, process)
    assert process.actor.error is None
    assert all(map(scenario.oracle.reached, scenario.stage.partitions))


def test_o1_keep_alive_commits_keep_idle_positions(scenario: CheckedScenario) -> None:
    """Every idle partition is committed again in time, at its current position."""
    process = settled(scenario)
    before = scenario.stage.target.decided_offsets()
    scenario.stage.clock.advance(KEEPALIVE.total_seconds() + 1)
    scenario.step(process, 20)

    after = scenario.stage.target.decided_offsets()
    assert {r: o.position for r, o in after.items()} == {r: o.position for r, o in before.items()}
    assert all(after[remote].metadata != before[remote].metadata for remote in before)


def test_o2_restarts_do_not_put_the_keep_alive_off(scenario: CheckedScenario) -> None:
    """Tasks that never live as long as the interval still keep idle partitions alive."""
    scenario.crash(settled(scenario))
    before = scenario.stage.target.decided_offsets()
    process = settled(scenario)
    scenario.stage.clock.advance(KEEPALIVE.total_seconds() / 2 + 1)
    scenario.step(process, 20)

    after = scenario.stage.target.decided_offsets()
    assert all(after[remote].metadata != before[remote].metadata for remote in before)


@pytest.mark.parametrize("point", ["produce", "offsets", "end", "read the claims", "fence"])
def test_p1_a_member_that_was_away_too_long_cannot_commit(
    scenario: CheckedScenario, point: str
) -> None:
    """A member that lost its partitions exits when it learns of that, or of its fence."""
    scenario.crash(settled(scenario))
    for partition in scenario.stage.partitions:
        scenario.stage.produce(partition)
    away = scenario.start(0)
    reach(scenario, away, point)
    other = scenario.start(1)
    scenario.stage.group.expire(0, 1)
    mirror_all(scenario, other)
    finish(scenario, away)

    assert away.is_over
    scenario.drain()


def test_p2_records_from_before_a_rebalance_are_read_again(scenario: CheckedScenario) -> None:
    """Records of a poll with a rebalance in it are dropped, and positions are rewound."""
    first = settled(scenario)
    other = scenario.start(1)
    scenario.stage.group.move(1, ORDERS)
    scenario.step(first, 40)
    mirror_all(scenario, other)
    for partition in scenario.stage.partitions:
        scenario.stage.produce(partition)
    scenario.stage.group.move(0, ORDERS)
    scenario.step(other, 40)
    scenario.step(first)
    scenario.step(first, 60)

    assert first.actor.error is None
    scenario.drain()


def test_p6_death_with_records_on_the_way_is_like_death_before_them(
    scenario: CheckedScenario,
) -> None:
    """A crash after some batches of a transaction were sent is like one before all of them."""
    process = with_open_transaction(scenario)
    for _ in range(4):
        scenario.stage.produce(ORDERS)
    scenario.step(process)
    process.target.producers[-1].send_in_background()
    scenario.crash(process)

    take_over(scenario)


def test_p7_an_exhausted_epoch_gets_a_new_producer_id(scenario: CheckedScenario) -> None:
    """The broker assigns a new producer id, and the fence holds all the same."""
    scenario.stage.target.coordinator.max_epoch = 1
    process = with_open_transaction(scenario)
    reach(scenario, process, "offsets")
    other = scenario.start(1)
    scenario.stage.group.expire(0, 1)
    mirror_all(scenario, other)
    finish(scenario, process)

    assert fenced_by(other) == 1
    assert process.is_over
    scenario.drain()
