"""
Schedules that break one mutant each, written out because dice take too long to find them.

The engine goes through the same schedule unharmed. A is slot 0 and B is slot 1.
"""

from collections.abc import Callable, Mapping
from typing import Final

from eos_mirror.core.records import TopicPartition
from tests.engine.drama import Drama
from tests.engine.gate import Fate
from tests.engine.stage import SPILL_AFTER_COMMITS, Process, remote_of
from tests.engine.target_cluster import GROUP

Schedule = Callable[[Drama], None]
ORDERS: Final = TopicPartition("orders", 0)
LIMIT: Final = 400


def settled(drama: Drama, slot: int = 0) -> Process:
    """A process that has mirrored everything there is, and owns everything."""
    process = drama.start(slot)
    mirror_all(drama, process)
    return process


def mirror_all(drama: Drama, process: Process) -> None:
    """Run it until it has partitions and nothing is left to do, or it ends."""
    for _ in range(LIMIT):
        done = all(map(drama.oracle.reached, drama.stage.partitions))
        is_idle = process.actor.at == "poll" and process.events("partitions.acquired")
        if process.is_over or (done and is_idle):
            return
        drama.step(process)


def with_open_transaction(drama: Drama, *, records: int = 2) -> Process:
    """A has read new records of one partition, and sent nothing yet."""
    process = settled(drama)
    for _ in range(records):
        drama.stage.produce(ORDERS)
    drama.step(process)
    return process


def reach(drama: Drama, process: Process, point: str) -> None:
    """Stop it before this request, which must come."""
    assert drama.run_to(process, point), f"{process.actor.at}: {point} did not come"


def finish(drama: Drama, *processes: Process) -> None:
    """Let each of them go on, one after the other."""
    for process in processes:
        drama.step(process, LIMIT)


def stalled_while_it_lets_go(drama: Drama) -> None:
    """A stalls inside the revocation, before its records are sent; B takes over by force."""
    a = with_open_transaction(drama)
    drama.stage.group.move(1, *drama.stage.partitions)
    reach(drama, a, "produce")
    b = drama.start(1)
    drama.stage.group.expire(0, 1)
    finish(drama, b, a)


def committed_between_claim_and_fence(drama: Drama) -> None:
    """B is about to claim while A stalls before its offsets; then A commits, and B goes on."""
    a = with_open_transaction(drama)
    reach(drama, a, "offsets")
    b = drama.start(1)
    drama.stage.group.expire(0, 1)
    reach(drama, b, "claim")
    drama.step(a, 3)
    finish(drama, b, a)


def three_claims_in_a_row(drama: Drama) -> None:
    """A claims and stalls; B claims, fences A, writes, stalls; A goes on; C claims and writes."""
    a = drama.start(0)
    for _ in range(2):
        drama.stage.produce(ORDERS)
    reach(drama, a, "read the claims")
    drama.step(a)
    b = drama.start(1)
    drama.stage.group.expire(0, 1)
    reach(drama, b, "produce")
    drama.step(a)
    drama.step(a, len(drama.stage.partitions))
    c = drama.start(2)
    drama.stage.group.expire(1, 2)
    finish(drama, c, b, a)


def two_claims_at_once(drama: Drama) -> None:
    """B is about to claim when its session ends; A claims and reads, B does not know yet."""
    finish(drama, *_stopped(settled(drama)))
    b = drama.start(1)
    drama.stage.group.expire(0, 1)
    for _ in range(2):
        drama.stage.produce(ORDERS)
    reach(drama, b, "claim")
    drama.stage.group.heartbeat_polls = 3
    a = drama.start(0)
    drama.stage.group.expire(1, 0)
    reach(drama, a, "produce")
    reach(drama, b, "produce")
    finish(drama, a, b)


def _stopped(process: Process) -> list[Process]:
    process.context.stop.set()
    return [process]


def _moved_with_markers_held(drama: Drama, written: TopicPartition) -> None:
    a = with_open_transaction(drama)
    drama.hold_markers()
    b = drama.start(1)
    drama.stage.group.move(1, ORDERS)
    drama.step(a, 60)
    coordinator = drama.stage.target.coordinator
    for txid, participant in coordinator.owed():
        if participant == written:
            coordinator.write_marker(txid, participant)
    for _ in range(8):
        drama.stage.produce(ORDERS)
    drama.step(b, 60)
    drama.release_markers()
    finish(drama, b, a)


def moved_with_the_offset_marker_late(drama: Drama) -> None:
    """A commits and releases; its data is visible, its shadow offset is not yet."""
    _moved_with_markers_held(drama, remote_of(ORDERS))


def moved_with_the_data_marker_late(drama: Drama) -> None:
    """A commits, spills and releases; its shadow offset is visible, its data is not yet."""
    a = settled(drama)
    for _ in range(SPILL_AFTER_COMMITS - 1):
        drama.stage.produce(ORDERS)
        mirror_all(drama, a)
    drama.stage.produce(ORDERS)
    drama.hold_markers()
    reach(drama, a, "end")
    drama.step(a)
    write_owed(drama, GROUP)
    write_owed(drama, drama.stage.target.map_partition)
    b = drama.start(1)
    drama.stage.group.move(1, ORDERS)
    drama.step(a, 10)
    for _ in range(6):
        drama.stage.produce(ORDERS)
    if drama.run_to(b, "produce"):
        drama.step(b)
    drama.release_markers()
    finish(drama, b, a)


def write_owed(drama: Drama, participant: TopicPartition) -> None:
    """Every marker for one participant."""
    coordinator = drama.stage.target.coordinator
    for txid, owed in coordinator.owed():
        if owed == participant:
            coordinator.write_marker(txid, owed)


def late_copy_of_a_commit(drama: Drama) -> None:
    """A commit is sent twice; the second copy comes when the next transaction is half done."""
    a = with_open_transaction(drama)
    reach(drama, a, "end")
    drama.step(a, 1, Fate.TWICE_SLOW)
    drama.stage.produce(ORDERS)
    reach(drama, a, "offsets")
    drama.deliver_late(0)
    finish(drama, a)


def offsets_lost_before_the_commit(drama: Drama) -> None:
    """The shadow offsets of a transaction do not get through."""
    a = with_open_transaction(drama)
    reach(drama, a, "offsets")
    drama.step(a, 1, Fate.NOT_SENT)
    finish(drama, a)


def renewed_and_overtaken(drama: Drama) -> None:
    """A takes a new incarnation; B takes over; A's first transaction is half done."""
    a = with_open_transaction(drama)
    reach(drama, a, "end")
    drama.step(a, 1, Fate.TWICE_SLOW)
    drama.stage.produce(ORDERS)
    reach(drama, a, "produce")
    b = drama.start(1)
    drama.stage.group.expire(0, 1)
    finish(drama, b, a)


def overtaken_before_the_records_are_sent(drama: Drama) -> None:
    """A stalls with records in its client; B takes over by force."""
    a = with_open_transaction(drama)
    reach(drama, a, "produce")
    b = drama.start(1)
    drama.stage.group.expire(0, 1)
    finish(drama, b, a)


def overtaken_before_the_offsets_are_sent(drama: Drama) -> None:
    """The schedule of KIP-656: A's records are there, its offsets are not; B takes over."""
    a = with_open_transaction(drama)
    reach(drama, a, "offsets")
    b = drama.start(1)
    drama.stage.group.expire(0, 1)
    drama.step(b, 60)
    finish(drama, a, b)


def uncarriable_record_at_the_end(drama: Drama) -> None:
    """A record that cannot be carried stands between a good one and the end."""
    a = settled(drama)
    drama.stage.produce(ORDERS)
    drama.produce_uncarriable(ORDERS)
    finish(drama, a)


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
"""By mutant."""
