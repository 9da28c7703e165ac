"""The fake target answers as Kafka does. The engine's tests may rely on what is asserted here."""

from collections.abc import Callable, Mapping, Sequence

import pytest

from eos_mirror.core.claims import Claim
from eos_mirror.core.map_records import records_of
from eos_mirror.core.records import Position, TopicPartition, TopicRecord
from eos_mirror.errors import RestartTask, TransactionLost
from eos_mirror.ports import ShadowOffset, TransactionalProducer, Unstable
from tests.engine.bench import BUDGET, TargetBench, is_refused, run_of, shadow
from tests.engine.conformance import is_settled, new_id, open_transaction, partition_of


def test_records_and_offsets_become_visible_with_the_commit(target_bench: TargetBench) -> None:
    """Nothing is visible before the commit and everything after it, with the position as sent."""
    remote = partition_of(target_bench)
    producer = open_transaction(target_bench, remote, new_id(target_bench))

    assert target_bench.read(remote) == []
    end = target_bench.target().ends([remote])[remote]
    assert (end.stable, end.written, end.is_decided) == (0, 3, False)

    committed = producer.commit({remote: shadow(7, epoch=5)}, within=BUDGET)
    target_bench.until(lambda: is_settled(target_bench, remote), "markers")

    assert committed.doubt is None
    assert target_bench.read(remote) == [(0, b"0"), (1, b"1"), (2, b"2")]
    found = target_bench.target().shadow_offsets([remote])[remote]
    assert isinstance(found, ShadowOffset)
    assert found.position == Position(7, 5)
    assert found.metadata.removesuffix("\0") == "at 7"


def test_a_marker_takes_one_offset(target_bench: TargetBench) -> None:
    """Records of a transaction have dense offsets; its marker takes one more."""
    remote = partition_of(target_bench)
    producer = target_bench.lane().open_producer(new_id(target_bench))
    landed = []
    for first in (0, 5):
        producer.begin()
        producer.send(run_of(remote, first, [b"a", b"b"]), remote)
        producer.send(run_of(remote, first + 2, [b"c"]), remote)
        where = producer.flush(within=BUDGET)[remote]
        landed.append((where.first, where.last, where.count))
        producer.commit({remote: shadow(first + 3)}, within=BUDGET)

    assert landed == [(0, 2, 3), (4, 6, 3)]
    target_bench.until(lambda: is_settled(target_bench, remote), "markers")
    end = target_bench.target().ends([remote])[remote]
    assert (end.stable, end.written) == (8, 8)


def test_aborted_records_take_offsets_and_are_never_seen(target_bench: TargetBench) -> None:
    """Records of a fenced writer are hidden; they take offsets, and so does their marker."""
    remote, txid = partition_of(target_bench), new_id(target_bench)
    open_transaction(target_bench, remote, txid)

    assert target_bench.lane().fence([txid]) == {txid}

    producer = target_bench.lane().open_producer(new_id(target_bench))
    producer.begin()
    producer.send(run_of(remote, 0, [b"good"]), remote)
    assert producer.flush(within=BUDGET)[remote].first == 4
    producer.commit({remote: shadow(1)}, within=BUDGET)
    target_bench.until(lambda: is_settled(target_bench, remote), "markers")
    assert target_bench.read(remote) == [(4, b"good")]


def test_initialising_an_id_ends_what_was_open_under_it(target_bench: TargetBench) -> None:
    """When initialising returns, the old transaction is aborted and its offsets are dropped."""
    remote, txid = partition_of(target_bench), new_id(target_bench)
    old = open_transaction(target_bench, remote, txid)
    target_bench.pend(old, {remote: shadow(3)})

    target_bench.lane().open_producer(txid)

    assert is_settled(target_bench, remote)
    assert target_bench.target().shadow_offsets([remote]) == {remote: None}
    assert is_refused(lambda: old.commit({remote: shadow(3)}, within=BUDGET))
    assert target_bench.read(remote) == []


def _send(producer: TransactionalProducer, remote: TopicPartition) -> None:
    producer.send(run_of(remote, 9, [b"late"]), remote)
    producer.flush(within=BUDGET)


@pytest.mark.parametrize(
    "call",
    [
        _send,
        lambda producer, remote: producer.commit({remote: shadow(3)}, within=BUDGET),
        lambda producer, _: producer.commit({}, within=BUDGET),
    ],
    ids=["produce", "offsets", "end"],
)
def test_an_old_epoch_is_refused_at_every_call(
    target_bench: TargetBench, call: Callable[[TransactionalProducer, TopicPartition], object]
) -> None:
    """Whatever a fenced writer tries next fails, and so does everything after that."""
    remote, txid = partition_of(target_bench), new_id(target_bench)
    old = open_transaction(target_bench, remote, txid)
    target_bench.lane().fence([txid])

    assert is_refused(lambda: call(old, remote))
    assert is_refused(lambda: old.commit({remote: shadow(3)}, within=BUDGET))
    assert target_bench.read(remote) == []


def test_an_empty_commit_of_a_fenced_writer_proves_nothing(target_bench: TargetBench) -> None:
    """An empty transaction sends no request, so its commit succeeds even after a fence."""
    txid = new_id(target_bench)
    old = target_bench.lane().open_producer(txid)
    target_bench.lane().fence([txid])

    old.begin()
    assert old.commit({}, within=BUDGET).doubt is None


def test_fencing_idle_and_unknown_ids_succeeds(target_bench: TargetBench) -> None:
    """A fence succeeds although the incarnation is gone, or even forgotten by the coordinator."""
    idle, unknown = new_id(target_bench), new_id(target_bench)
    target_bench.lane().open_producer(idle)

    assert target_bench.lane().fence([idle, unknown]) == {idle, unknown}


def test_a_pending_offset_is_unstable_for_its_partition_only(target_bench: TargetBench) -> None:
    """Other partitions are answered as usual, and a fence drops the pending offset."""
    remote, txid = partition_of(target_bench), new_id(target_bench)
    other = TopicPartition(remote.topic, 1)
    first = open_transaction(target_bench, remote, new_id(target_bench))
    first.commit({remote: shadow(1), other: shadow(2)}, within=BUDGET)
    target_bench.until(lambda: is_settled(target_bench, remote), "markers")
    old = open_transaction(target_bench, remote, txid)
    target_bench.pend(old, {remote: shadow(9)})

    found = target_bench.target().shadow_offsets([remote, other])
    assert isinstance(found[remote], Unstable)
    assert isinstance(found[other], ShadowOffset)

    target_bench.lane().fence([txid])
    again = target_bench.target().shadow_offsets([remote])[remote]
    assert isinstance(again, ShadowOffset)
    assert again.position.next_offset == 1


@pytest.mark.parametrize("partition", [0, 99], ids=["topic", "partition"])
def test_an_offset_for_what_does_not_exist_is_refused(
    target_bench: TargetBench, partition: int
) -> None:
    """Shadow offsets are keyed by target partitions, because brokers accept no others."""
    known = partition_of(target_bench)
    unknown = TopicPartition("no-such-topic" if partition == 0 else known.topic, partition)
    producer = open_transaction(target_bench, known, new_id(target_bench))

    with pytest.raises((RestartTask, TransactionLost)):
        producer.commit({unknown: shadow(1)}, within=BUDGET)


def test_an_offset_goes_with_its_topic_and_does_not_come_back(target_bench: TargetBench) -> None:
    """A deleted target topic loses its shadow offsets."""
    remote = partition_of(target_bench)
    producer = open_transaction(target_bench, remote, new_id(target_bench))
    producer.commit({remote: shadow(3)}, within=BUDGET)
    target_bench.until(lambda: is_settled(target_bench, remote), "markers")

    target_bench.delete_topic(remote.topic)

    target = target_bench.target()
    target_bench.until(lambda: target.shadow_offsets([remote])[remote] is None, "offset gone")
    target_bench.until(lambda: not target.topics([remote.topic]), "topic gone")


def test_an_expired_offset_looks_like_none(target_bench: TargetBench) -> None:
    """An expired offset is answered as if there had never been one; others are kept."""
    remote = partition_of(target_bench)
    other = TopicPartition(remote.topic, 1)
    producer = open_transaction(target_bench, remote, new_id(target_bench))
    producer.commit({remote: shadow(3), other: shadow(4)}, within=BUDGET)
    target_bench.until(lambda: is_settled(target_bench, remote), "markers")

    target_bench.forget_offset(remote)

    found = target_bench.target().shadow_offsets([remote, other])
    assert found[remote] is None
    assert isinstance(found[other], ShadowOffset)


def send_map(
    bench: TargetBench, producer: TransactionalProducer, entries: Mapping[str, bytes | None]
) -> None:
    """Send entries of the offset map."""
    producer.send_to(bench.flow.offset_map_topic, records_of(entries))


def test_map_records_are_part_of_the_transaction(target_bench: TargetBench) -> None:
    """The commit makes map records visible: the newest of each key, for the requested topic."""
    remote, target = partition_of(target_bench), target_bench.target()
    topic = remote.topic

    def key(name: str) -> str:
        return f'["{topic}",0,"{name}"]'

    lost = new_id(target_bench)
    aborted = open_transaction(target_bench, remote, lost)
    send_map(target_bench, aborted, {key("a"): b"never"})
    target_bench.lane().fence([lost])
    producer = target_bench.lane().open_producer(new_id(target_bench))
    for entries in ({key("a"): b"1", key("b"): b"1", '["other",0,0]': b"1"}, {key("a"): b"2"}):
        producer.begin()
        send_map(target_bench, producer, entries)
        producer.commit({remote: shadow(1)}, within=BUDGET)

    wanted = {key("a"): b"2", key("b"): b"1"}
    target_bench.until(lambda: target.map_entries(topic) == wanted, f"map {wanted}")


def test_records_beside_the_copies_are_part_of_the_transaction(target_bench: TargetBench) -> None:
    """Readers see them after the commit only, as they were sent."""
    remote, other = partition_of(target_bench), partition_of(target_bench, partitions=1)
    record = TopicRecord(None, b"moved", [("a", b"1"), ("a", None)])
    lost = new_id(target_bench)
    open_transaction(target_bench, remote, lost).send_to(other.topic, [record])
    target_bench.lane().fence([lost])
    producer = target_bench.lane().open_producer(new_id(target_bench))
    producer.begin()
    producer.send_to(other.topic, [record, TopicRecord(b"k", None)])
    delivered = producer.flush(within=BUDGET)

    assert delivered == {}, "only copies are checked for their offsets"
    assert target_bench.read(other) == []
    producer.commit({remote: shadow(1)}, within=BUDGET)
    target_bench.until(
        lambda: [value for _, value in target_bench.read(other)] == [b"moved", None],
        "the records",
    )


def test_a_map_is_not_read_past_an_open_transaction(target_bench: TargetBench) -> None:
    """The map is unstable while a transaction is open, since later entries would be missing."""
    remote, target = partition_of(target_bench), target_bench.target()
    first, second = (f'["{remote.topic}",0,"{name}"]' for name in "ab")
    lost = new_id(target_bench)
    undecided = open_transaction(target_bench, remote, lost)
    send_map(target_bench, undecided, {first: b"never"})
    undecided.flush(within=BUDGET)
    producer = target_bench.lane().open_producer(new_id(target_bench))
    producer.begin()
    send_map(target_bench, producer, {second: b"1"})
    producer.commit({remote: shadow(1)}, within=BUDGET)

    assert isinstance(target.map_entries(remote.topic), Unstable)

    assert target_bench.lane().fence([lost]) == {lost}
    target_bench.until(lambda: target.map_entries(remote.topic) == {second: b"1"}, "its map")


def test_the_first_records_from_an_offset_on_leave_out_markers(target_bench: TargetBench) -> None:
    """At most two records are returned; after the last one, and if empty, none."""
    remote, empty = partition_of(target_bench), partition_of(target_bench, 1)
    target = target_bench.target()
    for first in (0, 3):
        producer = open_transaction(target_bench, remote, new_id(target_bench))
        producer.commit({remote: shadow(first + 3)}, within=BUDGET)
    target_bench.until(lambda: is_settled(target_bench, remote), "markers")

    def seen(start: int) -> Sequence[int]:
        return target.first_offsets({remote: start, empty: 0}, committed=True)[remote]

    assert (seen(0), seen(2), seen(3), seen(6), seen(7)) == ([0, 1], [2, 4], [4, 5], [6], [])
    assert target.first_offsets({remote: 8, empty: 0}, committed=True) == {remote: [], empty: []}


def test_the_first_records_are_those_of_aborted_transactions_for_who_wants_them(
    target_bench: TargetBench,
) -> None:
    """An uncommitted read finds open and aborted records; a committed read skips them."""
    remote, txid, target = partition_of(target_bench), new_id(target_bench), target_bench.target()
    open_transaction(target_bench, remote, txid)
    assert target.first_offsets({remote: 0}, committed=True) == {remote: []}
    assert target.first_offsets({remote: 2}, committed=False) == {remote: [2]}

    assert target_bench.lane().fence([txid]) == {txid}
    target_bench.until(lambda: is_settled(target_bench, remote), "the abort")
    assert target.first_offsets({remote: 0}, committed=True) == {remote: []}
    assert target.first_offsets({remote: 1}, committed=False) == {remote: [1, 2]}


def test_what_retention_took_is_passed_over(target_bench: TargetBench) -> None:
    """The search starts at the first record that retention has kept."""
    remote, target = partition_of(target_bench), target_bench.target()
    producer = open_transaction(target_bench, remote, new_id(target_bench))
    producer.commit({remote: shadow(3)}, within=BUDGET)
    target_bench.until(lambda: is_settled(target_bench, remote), "markers")
    target_bench.truncate(remote, 2)

    assert target.first_offsets({remote: 0}, committed=True) == {remote: [2]}


def test_partition_counts_leave_out_what_is_missing(target_bench: TargetBench) -> None:
    """A topic that does not exist is absent from the answer."""
    remote = partition_of(target_bench, partitions=2)

    found = target_bench.target().topics([remote.topic, "no-such-topic"])

    assert {name: topic.partitions for name, topic in found.items()} == {remote.topic: 2}
    assert not found[remote.topic].leaderless


def test_a_claim_is_read_through_its_own_offset(target_bench: TargetBench) -> None:
    """A reader sees every claim up to its own, and a tombstone ends a claim for every reader."""
    remote = TopicPartition("orders", 0)
    one, two = (Claim(remote=remote, transactional_id=x, sequence=1) for x in ("one", "two"))
    first, second = target_bench.claims(), target_bench.claims()
    earlier = first.append([one])[one.key]
    later = second.append([two])[two.key]

    seen = second.read_through(later)
    assert later > earlier
    assert {key: record.offset for key, record in seen.items()} == {
        one.key: earlier,
        two.key: later,
    }
    assert seen[one.key].claim == one

    second.tombstone([one.key])
    assert set(first.read_through(None)) == {two.key}
    assert set(second.read_through(None)) == {two.key}
