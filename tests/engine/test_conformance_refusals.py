"""What the target refuses, and what it says then: the fake and Kafka brokers agree."""

from collections.abc import Sequence

import pytest

from eos_mirror.core.records import TopicPartition
from eos_mirror.core.suspects import Refusal
from eos_mirror.core.topic_limits import TopicLimits
from eos_mirror.errors import RefusedByTarget
from tests.engine.bench import BUDGET, TargetBench, is_refused, run_of, shadow
from tests.engine.conformance import is_settled, new_id, open_transaction, partition_of


def test_a_transaction_that_takes_too_long_is_aborted_and_its_writer_fenced(
    target_bench: TargetBench,
) -> None:
    """The coordinator aborts it by itself (the fake does so on request)."""
    remote, txid = partition_of(target_bench), new_id(target_bench)
    old = open_transaction(target_bench, remote, txid)
    target_bench.time_out(txid)

    target_bench.until(lambda: is_settled(target_bench, remote), "abort by the coordinator")
    assert is_refused(lambda: old.commit({remote: shadow(3)}, within=BUDGET))
    assert target_bench.read(remote) == []


def refusal_of(
    bench: TargetBench, remote: TopicPartition, keys: Sequence[bytes | None], *, batch: int | None
) -> Refusal | None:
    """Return the refusal of a transaction with these records; None: nothing was refused."""
    producer = bench.lane().open_producer(new_id(bench))
    producer.begin()
    run = run_of(remote, 10, [b"%d" % i for i in range(len(keys))], keys)
    producer.send(run, remote, batch=batch)
    refused: list[Refusal] = []
    try:
        producer.flush(within=BUDGET)
    except RefusedByTarget as exc:
        refused += exc.refused.values()
    if refused:
        assert is_refused(lambda: producer.commit({remote: shadow(99)}, within=BUDGET))
        return refused[0]
    producer.commit({remote: shadow(99)}, within=BUDGET)
    return None


@pytest.mark.parametrize(
    ("keys", "named"),
    [
        ([b"k", None, b"k"], ()),
        ([None, b"k", None], (10, 12)),
        ([None, None], ()),
        ([None], ()),
    ],
    ids=["one", "two", "all", "alone"],
)
def test_a_refused_batch_says_where_it_was_and_names_records_if_there_are_several(
    target_bench: TargetBench, keys: Sequence[bytes | None], named: tuple[int, ...]
) -> None:
    """
    The client library does not name a single bad record: every record has the same error then.
    """
    remote = partition_of(target_bench)
    target_bench.configure(remote.topic, {"cleanup.policy": "compact"})

    refusal = refusal_of(target_bench, remote, keys, batch=1)

    assert refusal is not None
    assert (refusal.first, refusal.end, refusal.records) == (10, 10 + len(keys), len(keys))
    if target_bench.is_exact:
        named = tuple(10 + i for i, key in enumerate(keys) if key is None)
    assert (refusal.code, refusal.named) == ("INVALID_RECORD", named)
    assert target_bench.read(remote) == []
    assert refusal_of(target_bench, remote, [b"k", b"k"], batch=1) is None


def test_a_batch_without_a_number_says_the_partition_only(target_bench: TargetBench) -> None:
    """Without a number the client library chose the batch's records, and names the partition."""
    remote = partition_of(target_bench)
    target_bench.configure(remote.topic, {"cleanup.policy": "compact"})

    refusal = refusal_of(target_bench, remote, [None, None], batch=None)

    assert refusal is not None
    expected = (10, 12, (10, 11)) if target_bench.is_exact else (None, None, ())
    assert (refusal.first, refusal.end, refusal.named) == expected


def test_batches_with_numbers_fit_where_their_sum_does_not(target_bench: TargetBench) -> None:
    """A topic's limit applies to each batch, and numbered batches stay dense and in order."""
    remote = partition_of(target_bench)
    target_bench.configure(remote.topic, {"max.message.bytes": "2000"})
    values = [bytes([65 + i]) * 900 for i in range(5)]

    for numbered in (False, True):
        producer = target_bench.lane().open_producer(new_id(target_bench))
        producer.begin()
        for i, value in enumerate(values):
            run = run_of(remote, i, [value])
            producer.send(run, remote, batch=i // 2 if numbered else None)
        if not numbered:
            with pytest.raises(RefusedByTarget):
                producer.flush(within=BUDGET)
            continue
        where = producer.flush(within=BUDGET)[remote]
        assert (where.first, where.last, where.count) == (0, 4, 5)
        producer.commit({remote: shadow(5)}, within=BUDGET)

    target_bench.until(lambda: len(target_bench.read(remote)) == 5, "the records")
    assert [value for _, value in target_bench.read(remote)] == values


def test_without_transactions_everything_but_the_refused_batch_arrives(
    target_bench: TargetBench,
) -> None:
    """Other partitions arrive whole; a numbered one stops before its refused batch."""
    remote, other = partition_of(target_bench), partition_of(target_bench)
    target_bench.configure(remote.topic, {"cleanup.policy": "compact"})
    producer = target_bench.lane().open_plain_producer()
    producer.send(run_of(other, 0, [b"a", b"b"]), other)
    for number, key in enumerate([b"k", None, b"k"]):
        producer.send(run_of(remote, number, [b"%d" % number], [key]), remote, batch=number)

    with pytest.raises(RefusedByTarget) as caught:
        producer.flush(within=BUDGET)

    refusal = caught.value.refused[remote]
    assert (refusal.first, refusal.records, refusal.code) == (1, 1, "INVALID_RECORD")
    assert [value for _, value in target_bench.read(other)] == [b"a", b"b"]
    assert [value for _, value in target_bench.read(remote)] == [b"0"]
    producer.send(run_of(remote, 2, [b"2"], [b"k"]), remote, batch=1)
    producer.flush(within=BUDGET)
    assert [value for _, value in target_bench.read(remote)] == [b"0", b"2"]


def test_limits_are_those_that_hold_now(target_bench: TargetBench) -> None:
    """The limits are current, and topics that do not exist have none."""
    remote = partition_of(target_bench)
    config = {"cleanup.policy": "compact", "max.message.bytes": "5000"}
    target_bench.configure(remote.topic, config)

    found = target_bench.target().limits([remote.topic, "no-such-topic"])

    assert found == {
        remote.topic: TopicLimits(max_message_bytes=5_000, needs_keys=True, after_ms=3_600_000)
    }
