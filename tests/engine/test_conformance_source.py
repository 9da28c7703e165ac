"""The fake source answers as Kafka does. The engine's tests may rely on what is asserted here."""

import pytest

from eos_mirror.core.records import TopicPartition
from eos_mirror.errors import RecordRefused, RestartTask, SourceDataLost
from tests.engine.bench import Reader, SourceBench


def new_partition(bench: SourceBench) -> TopicPartition:
    """Return the only partition of a new topic."""
    return TopicPartition(bench.new_topic(1), 0)


def test_nothing_is_read_before_it_is_assigned(source_bench: SourceBench) -> None:
    """A granted partition is not read before it is assigned a position."""
    partition = new_partition(source_bench)
    source_bench.produce(partition, [b"a"])
    reader = Reader(source_bench, partition.topic)

    reader.poll_until(lambda: partition in reader.listener.granted, "grant")
    for _ in range(3):
        reader.poll()

    assert reader.values == {}


def test_records_come_in_order_from_the_position_on(source_bench: SourceBench) -> None:
    """Records have their offsets, and the end of the partition is reported after them."""
    partition = new_partition(source_bench)
    source_bench.produce(partition, [b"a", b"b", b"c", b"d", b"e"])
    reader = Reader(source_bench, partition.topic)
    reader.read_from(partition, 1)

    assert reader.read_to_end(partition, 5) == [(1, b"b"), (2, b"c"), (3, b"d"), (4, b"e")]
    assert {run.leader_epoch for run in reader.all.runs} == {0}


def test_control_and_aborted_records_are_gaps_and_the_end_lies_behind_them(
    source_bench: SourceBench,
) -> None:
    """Of a, marker, x, marker, b, y, marker only a and b are returned, and the end is at 7."""
    partition = new_partition(source_bench)
    source_bench.produce(partition, [b"a"], commit=True)
    source_bench.produce(partition, [b"x"], commit=False)
    source_bench.produce(partition, [b"b"])
    source_bench.produce(partition, [b"y"], commit=False)
    reader = Reader(source_bench, partition.topic)
    reader.read_from(partition, 0)

    assert reader.read_to_end(partition, 7) == [(0, b"a"), (4, b"b")]


def test_an_open_transaction_holds_the_end_back(source_bench: SourceBench) -> None:
    """Reading stops at the last stable offset, even if committed records follow it."""
    partition = new_partition(source_bench)
    source_bench.produce(partition, [b"a"])
    source_bench.begin(partition, b"open")
    source_bench.produce(partition, [b"b"])
    reader = Reader(source_bench, partition.topic)
    reader.read_from(partition, 0)

    assert reader.read_to_end(partition, 1) == [(0, b"a")]
    assert source_bench.metadata().start_offset(partition, "latest") == 1


def test_the_end_is_told_again_when_it_moved(source_bench: SourceBench) -> None:
    """The end is reported again, even if only control and aborted records were added."""
    partition = new_partition(source_bench)
    source_bench.produce(partition, [b"a"])
    reader = Reader(source_bench, partition.topic)
    reader.read_from(partition, 0)
    reader.read_to_end(partition, 1)

    source_bench.produce(partition, [b"x"], commit=False)

    assert reader.read_to_end(partition, 3) == [(0, b"a")]


@pytest.mark.parametrize("position", [0, 99], ids=["below", "above"])
def test_a_position_outside_of_the_log_is_a_fault(source_bench: SourceBench, position: int) -> None:
    """A position that retention deleted, or that the log does not have, is never read."""
    partition = new_partition(source_bench)
    source_bench.produce(partition, [b"a", b"b", b"c"])
    source_bench.truncate(partition, 2)
    reader = Reader(source_bench, partition.topic)
    reader.read_from(partition, position)

    reader.poll_until(lambda: partition in reader.all.faults, "fault")

    assert isinstance(reader.all.faults[partition], SourceDataLost)
    assert reader.values == {}
    assert source_bench.metadata().log_start(partition) == 2


def test_a_record_that_cannot_be_carried_is_a_fault_behind_those_before_it(
    source_bench: SourceBench,
) -> None:
    """The records before it are returned, and the record itself is not."""
    partition = new_partition(source_bench)
    source_bench.produce(partition, [b"a", b"b"])
    source_bench.produce_uncarriable(partition, b"bad")
    reader = Reader(source_bench, partition.topic)
    reader.read_from(partition, 0)
    if source_bench.is_exact:
        assert reader.read_to_end(partition, 3) == [(0, b"a"), (1, b"b"), (2, b"bad")]
        return

    reader.poll_until(lambda: partition in reader.all.faults, "fault")

    assert isinstance(reader.all.faults[partition], RecordRefused)
    assert reader.values == {partition: [(0, b"a"), (1, b"b")]}


def test_unassigned_partitions_are_not_read_on(source_bench: SourceBench) -> None:
    """An unassigned partition is not read until it is assigned again, at another position."""
    partition = new_partition(source_bench)
    source_bench.produce(partition, [b"a"])
    reader = Reader(source_bench, partition.topic)
    reader.read_from(partition, 0)
    reader.read_to_end(partition, 1)
    reader.source.unassign([partition])
    source_bench.produce(partition, [b"b"])
    for _ in range(3):
        reader.poll()
    assert reader.values == {partition: [(0, b"a")]}

    reader.read_from(partition, 0)

    assert reader.read_to_end(partition, 2) == [(0, b"a"), (0, b"a"), (1, b"b")]


def test_a_topic_that_is_created_again_has_another_identity(source_bench: SourceBench) -> None:
    """A re-created topic has another topic id; a missing topic is absent from the answer."""
    topic, metadata = source_bench.new_topic(1), source_bench.metadata()
    before = metadata.topics([topic, "no-such-topic"])

    source_bench.recreate_topic(topic)

    after = metadata.topics([topic])
    assert set(before) == set(after) == {topic}
    assert before[topic].topic_id != after[topic].topic_id
    assert after[topic].partitions == 1


def test_start_positions_are_resolved_to_offsets(source_bench: SourceBench) -> None:
    """Start positions become the log start, the LSO, or the first offset at or after a time."""
    partition, metadata = new_partition(source_bench), source_bench.metadata()
    source_bench.produce(partition, [b"a", b"b", b"c"])
    source_bench.truncate(partition, 1)

    found = [
        metadata.start_offset(partition, start)
        for start in ("earliest", "latest", "timestamp:2099-01-01T00:00:00+00:00")
    ]

    assert found == [1, 3, 3]


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("offset:0", 1),
        ("offset:2", 2),
        ("offset:9", 3),
        ("last:1", 2),
        ("last:0", 3),
        ("last:9", 1),
        ("group:no-such-group", 1),
    ],
)
def test_a_start_position_is_never_outside_the_log(
    source_bench: SourceBench, start: str, expected: int
) -> None:
    """Records before offset 1 are deleted, and the log ends at 3."""
    partition, metadata = new_partition(source_bench), source_bench.metadata()
    source_bench.produce(partition, [b"a", b"b", b"c"])
    source_bench.truncate(partition, 1)

    assert metadata.start_offset(partition, start) == expected


def test_a_static_member_that_comes_back_gets_its_partitions_and_the_old_one_is_dead(
    source_bench: SourceBench,
) -> None:
    """The new member gets them without a rebalance, long before the old session would end."""
    partition = new_partition(source_bench)
    old = Reader(source_bench, partition.topic)
    old.poll_until(lambda: partition in old.listener.granted, "grant")

    new = Reader(source_bench, partition.topic)
    new.poll_until(lambda: partition in new.listener.granted, "grant to the new member")

    def is_dead() -> bool:
        try:
            old.poll()
        except RestartTask:
            return True
        return False

    source_bench.until(is_dead, "the old member is fenced")


def test_a_partition_that_moves_in_peace_is_let_go_first(source_bench: SourceBench) -> None:
    """The new owner is granted a partition only after the old owner's callback has returned."""
    topic = source_bench.new_topic(2)
    one = Reader(source_bench, topic, slot=0)
    one.poll_until(lambda: len(one.listener.granted) == 2, "both partitions")
    two = Reader(source_bench, topic, slot=1)
    for _ in range(5):
        two.poll()
    assert not two.listener.granted, "the old owner has not polled yet"

    def moved() -> bool:
        two.poll()
        assert not one.listener.granted & two.listener.granted
        return bool(two.listener.granted)

    one.poll_until(moved, "one partition for each")

    assert one.listener.revoked == two.listener.granted
    assert len(one.listener.granted) == 1


def test_joining_again_revokes_and_assigns_every_partition(source_bench: SourceBench) -> None:
    """A second subscription to the same topics is a rebalance for the member."""
    partition = new_partition(source_bench)
    reader = Reader(source_bench, partition.topic)
    reader.poll_until(lambda: partition in reader.listener.granted, "grant")

    reader.source.subscribe([partition.topic])

    reader.poll_until(lambda: partition in reader.listener.revoked, "revocation")
    reader.poll_until(lambda: partition in reader.listener.granted, "second grant")


def test_close_revokes_what_is_held(source_bench: SourceBench) -> None:
    """The last callback of a member comes from inside `close`."""
    partition = new_partition(source_bench)
    reader = Reader(source_bench, partition.topic)
    reader.poll_until(lambda: partition in reader.listener.granted, "grant")

    reader.source.close()

    assert reader.listener.revoked == {partition}
