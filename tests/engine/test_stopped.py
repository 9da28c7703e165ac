"""When a stopped partition counts as resumed."""

import pytest

from eos_mirror.core.offset_map import MapTail
from eos_mirror.core.records import Position, TopicPartition
from eos_mirror.errors import ForeignWriter, PartitionStopped, RecordRefused, SourceDataLost
from eos_mirror.replication.partition import OwnedPartition
from eos_mirror.replication.stopped import FIRST_PAUSE_S, Stopped
from tests.engine.stage import FakeContext, Process, Stage, remote_of

ORDERS = TopicPartition("orders", 0)
COMMITTED_IN = 40
"""Steps of a task after which what it sent is committed."""


def owned(committed: int | None) -> OwnedPartition:
    """Return the partition as it is tried again."""
    return OwnedPartition(
        source=ORDERS,
        remote=TopicPartition("A.orders", 0),
        topic_id="x" * 22,
        position=Position(committed or 0),
        tail=MapTail.empty(0, downstream=0),
        sequence=1,
        committed=committed,
        committed_at=0.0,
    )


@pytest.mark.parametrize(
    ("stopped_at", "committed", "resumes"),
    [(0, 0, False), (0, None, False), (0, 1, True), (7, 7, False), (7, 8, True), (None, 0, True)],
)
def test_only_a_commit_after_the_stop_resumes_a_partition(
    stopped_at: int | None, committed: int | None, resumes: bool
) -> None:
    """Committing the position where it stopped, even 0, says nothing about the record there."""
    context = FakeContext(slot=0)
    stopped = Stopped(context, now=lambda: 0.0)
    stopped.note(ORDERS, RecordRefused("too large"), next_offset=stopped_at)

    stopped.committed({ORDERS: owned(committed)})

    assert (stopped.taken_resumed() == (ORDERS,)) is resumes


@pytest.mark.parametrize("fault", [RecordRefused("too large"), ForeignWriter("another client")])
def test_an_operator_may_have_a_partition_tried_at_once(fault: PartitionStopped) -> None:
    """Also one that is never tried otherwise. If it fails again, the pauses begin at the first."""
    now = [0.0]
    stopped = Stopped(FakeContext(slot=0), now=lambda: now[0])
    for _ in range(3):
        stopped.note(ORDERS, fault, next_offset=7)
    assert stopped.due() == []

    stopped.hurry({"audit"})
    assert stopped.due() == []
    stopped.hurry({"orders"})
    assert stopped.due() == [ORDERS]

    stopped.note(ORDERS, RecordRefused("too large"), next_offset=7)
    now[0] = FIRST_PAUSE_S
    assert stopped.due() == [ORDERS]


@pytest.mark.usefixtures("one_core")
def test_a_failed_partition_is_not_tried_while_its_topic_is_stopped() -> None:
    """A command that moves its position would be fenced by the try."""
    now = [0.0]
    stopped = Stopped(FakeContext(slot=0), now=lambda: now[0])
    stopped.note(ORDERS, SourceDataLost("expired"), next_offset=7)
    now[0] = 3600.0

    assert stopped.due(held=[ORDERS.topic]) == []
    assert stopped.due(held=["other"]) == [ORDERS]


def test_a_task_that_lost_a_new_partition_does_not_stop_it_at_least_once() -> None:
    """Its successor began after the task read that there are no offsets, and before the ends."""
    stage = Stage(exactly_once=False)
    try:
        for partition in stage.partitions:
            stage.produce(partition)
        first = stage.start(0)
        while first.actor.at != "ends":
            first.actor.step()
        second = stage.start(1)
        stage.group.expire(0, 1)
        while any(not stage.target.logs[remote_of(p)].written for p in stage.partitions):
            second.actor.step()
            stage.clock.advance(0.1)
        while not first.is_over:
            first.actor.step()

        assert "session ended" in str(first.actor.error)
        assert not first.events("partition.stopped")
    finally:
        stage.close()


@pytest.mark.usefixtures("one_core")
def test_a_task_that_lost_a_mirrored_partition_does_not_stop_it() -> None:
    """Its successor committed after the task read the offsets, and before the last records."""
    stage = Stage()
    try:

        def copied() -> int:
            return sum(stage.target.logs[remote_of(p)].written for p in stage.partitions)

        def mirror_more(slot: int) -> Process:
            before, process = copied(), stage.start(slot)
            for partition in stage.partitions:
                stage.produce(partition)
            while copied() < before + len(stage.partitions):
                step(process)
            for _ in range(COMMITTED_IN):
                step(process)
            return process

        def step(process: Process) -> None:
            process.actor.step()
            stage.clock.advance(0.1)

        mirror_more(0).actor.kill()
        first = stage.start(0)
        while first.actor.at != "look":
            step(first)
        stage.group.expire(0, 1)
        mirror_more(1)
        while not first.is_over:
            step(first)

        assert "session ended" in str(first.actor.error) or "claimed" in str(first.actor.error)
        assert not first.events("partition.stopped")
    finally:
        stage.close()
