"""
Schedules that expose one mutant each, written out because random play finds them too late.

The engine survives the same schedule. A is slot 0 and B is slot 1.
"""

from collections.abc import Callable, Mapping
from typing import Final

from eos_mirror.core.records import TopicPartition
from tests.engine.checked_scenario import CheckedScenario
from tests.engine.gate import Fate
from tests.engine.stage import SPILL_AFTER_COMMITS, Process, remote_of
from tests.engine.target_cluster import GROUP

Schedule = Callable[[CheckedScenario], None]
ORDERS: Final = TopicPartition("orders", 0)
LIMIT: Final = 400


def settled(scenario: CheckedScenario, slot: int = 0) -> Process:
    """Return a process that owns every partition and has mirrored everything."""
    process = scenario.start(slot)
    mirror_all(scenario, process)
    return process


def mirror_all(scenario: CheckedScenario, process: Process) -> None:
    """Run it until it has partitions and everything is mirrored, or until it exits."""
    for _ in range(LIMIT):
        done = all(map(scenario.oracle.reached, scenario.stage.partitions))
        is_idle = process.actor.at == "poll" and process.events("partitions.acquired")
        if process.is_over or (done and is_idle):
            return
        scenario.step(process)


def with_open_transaction(scenario: CheckedScenario, *, records: int = 2) -> Process:
    """Return A, which has read new records of one partition and sent nothing yet."""
    process = settled(scenario)
    for _ in range(records):
        scenario.stage.produce(ORDERS)
    scenario.step(process)
    return process


def reach(scenario: CheckedScenario, process: Process, point: str) -> None:
    """Run it to just before this request, which it must send."""
    assert scenario.run_to(process, point), f"{process.actor.at}: {point} did not come"


def finish(scenario: CheckedScenario, *processes: Process) -> None:
    """Let each of them continue, one after the other."""
    for process in processes:
        scenario.step(process, LIMIT)


def stalled_while_it_lets_go(scenario: CheckedScenario) -> None:
    """A stalls inside the revocation, before its records are sent; B takes over by force."""
    a = with_open_transaction(scenario)
    scenario.stage.group.move(1, *scenario.stage.partitions)
    reach(scenario, a, "produce")
    b = scenario.start(1)
    scenario.stage.group.expire(0, 1)
    finish(scenario, b, a)


def committed_between_claim_and_fence(scenario: CheckedScenario) -> None:
    """B is about to claim while A stalls before its offsets; then A commits, and B continues."""
    a = with_open_transaction(scenario)
    reach(scenario, a, "offsets")
    b = scenario.start(1)
    scenario.stage.group.expire(0, 1)
    reach(scenario, b, "claim")
    scenario.step(a, 3)
    finish(scenario, b, a)


def three_claims_in_a_row(scenario: CheckedScenario) -> None:
    """A claims and stalls; B claims, fences A, writes, stalls; A continues; C claims and writes."""
    a = scenario.start(0)
    for _ in range(2):
        scenario.stage.produce(ORDERS)
    reach(scenario, a, "read the claims")
    scenario.step(a)
    b = scenario.start(1)
    scenario.stage.group.expire(0, 1)
    reach(scenario, b, "produce")
    scenario.step(a)
    scenario.step(a, len(scenario.stage.partitions))
    c = scenario.start(2)
    scenario.stage.group.expire(1, 2)
    finish(scenario, c, b, a)


def two_claims_at_once(scenario: CheckedScenario) -> None:
    """B is about to claim when its session ends; A claims and reads, B does not know yet."""
    finish(scenario, *_stopped(settled(scenario)))
    b = scenario.start(1)
    scenario.stage.group.expire(0, 1)
    for _ in range(2):
        scenario.stage.produce(ORDERS)
    reach(scenario, b, "claim")
    scenario.stage.group.heartbeat_polls = 3
    a = scenario.start(0)
    scenario.stage.group.expire(1, 0)
    reach(scenario, a, "produce")
    reach(scenario, b, "produce")
    finish(scenario, a, b)


def _stopped(process: Process) -> list[Process]:
    process.context.stop.set()
    return [process]


def _moved_with_markers_held(scenario: CheckedScenario, written: TopicPartition) -> None:
    a = with_open_transaction(scenario)
    scenario.hold_markers()
    b = scenario.start(1)
    scenario.stage.group.move(1, ORDERS)
    scenario.step(a, 60)
    coordinator = scenario.stage.target.coordinator
    for txid, participant in coordinator.owed():
        if participant == written:
            coordinator.write_marker(txid, participant)
    for _ in range(8):
        scenario.stage.produce(ORDERS)
    scenario.step(b, 60)
    scenario.release_markers()
    finish(scenario, b, a)


def moved_with_the_offset_marker_late(scenario: CheckedScenario) -> None:
    """A commits and releases; its data is visible, its shadow offset is not yet."""
    _moved_with_markers_held(scenario, remote_of(ORDERS))


def moved_with_the_data_marker_late(scenario: CheckedScenario) -> None:
    """A commits, spills and releases; its shadow offset is visible, its data is not yet."""
    a = settled(scenario)
    for _ in range(SPILL_AFTER_COMMITS - 1):
        scenario.stage.produce(ORDERS)
        mirror_all(scenario, a)
    scenario.stage.produce(ORDERS)
    scenario.hold_markers()
    reach(scenario, a, "end")
    scenario.step(a)
    write_owed(scenario, GROUP)
    write_owed(scenario, scenario.stage.target.map_partition)
    b = scenario.start(1)
    scenario.stage.group.move(1, ORDERS)
    scenario.step(a, 10)
    for _ in range(6):
        scenario.stage.produce(ORDERS)
    if scenario.run_to(b, "produce"):
        scenario.step(b)
    scenario.release_markers()
    finish(scenario, b, a)


def write_owed(scenario: CheckedScenario, participant: TopicPartition) -> None:
    """Write every pending marker of one participant."""
    coordinator = scenario.stage.target.coordinator
    for txid, owed in coordinator.owed():
        if owed == participant:
            coordinator.write_marker(txid, owed)


def late_copy_of_a_commit(scenario: CheckedScenario) -> None:
    """A commit is sent twice; the second copy arrives when the next transaction is half done."""
    a = with_open_transaction(scenario)
    reach(scenario, a, "end")
    scenario.step(a, 1, Fate.TWICE_SLOW)
    scenario.stage.produce(ORDERS)
    reach(scenario, a, "offsets")
    scenario.deliver_late(0)
    finish(scenario, a)


def offsets_lost_before_the_commit(scenario: CheckedScenario) -> None:
    """The request with the shadow offsets of a transaction is lost."""
    a = with_open_transaction(scenario)
    reach(scenario, a, "offsets")
    scenario.step(a, 1, Fate.NOT_SENT)
    finish(scenario, a)


def renewed_and_overtaken(scenario: CheckedScenario) -> None:
    """A takes a new incarnation; B takes over; A's first transaction is half done."""
    a = with_open_transaction(scenario)
    reach(scenario, a, "end")
    scenario.step(a, 1, Fate.TWICE_SLOW)
    scenario.stage.produce(ORDERS)
    reach(scenario, a, "produce")
    b = scenario.start(1)
    scenario.stage.group.expire(0, 1)
    finish(scenario, b, a)


def overtaken_before_the_records_are_sent(scenario: CheckedScenario) -> None:
    """A stalls with records in its client; B takes over by force."""
    a = with_open_transaction(scenario)
    reach(scenario, a, "produce")
    b = scenario.start(1)
    scenario.stage.group.expire(0, 1)
    finish(scenario, b, a)


def overtaken_before_the_offsets_are_sent(scenario: CheckedScenario) -> None:
    """The schedule of KIP-656: A's records are there, its offsets are not; B takes over."""
    a = with_open_transaction(scenario)
    reach(scenario, a, "offsets")
    b = scenario.start(1)
    scenario.stage.group.expire(0, 1)
    scenario.step(b, 60)
    finish(scenario, a, b)


def uncarriable_record_at_the_end(scenario: CheckedScenario) -> None:
    """A record that cannot be carried is between a good one and the end of the log."""
    a = settled(scenario)
    scenario.stage.produce(ORDERS)
    scenario.produce_uncarriable(ORDERS)
    finish(scenario, a)


SCHEDULES: Final[Mapping[str, Schedule]] = {
    "naive": overtaken_before_the_offsets_are_sent,
    "stable only": overtaken_before_the_offsets_are_sent,
    "suspicious commit ignored": late_copy_of_a_commit,
    "released before the last commit": stalled_while_it_lets_go,
    "position from before the fence": committed_between_claim_and_fence,
    "committed again after an error": offsets_lost_before_the_commit,
    "claims not made again": renewed_and_overtaken,
    "no writer fenced": overtaken_before_the_records_are_sent,
    "unread claims buried": three_claims_in_a_row,
    "claims read before the own": two_claims_at_once,
    "unstable offsets taken": moved_with_the_offset_marker_late,
    "undecided data overlooked": moved_with_the_data_marker_late,
    "end taken past a fault": uncarriable_record_at_the_end,
}
"""The schedule of each mutant."""
