"""Steps that the conformance tests of the target share."""

import uuid

from eos_mirror.core.records import TopicPartition
from eos_mirror.ports import TransactionalProducer, Unstable
from tests.engine.bench import BUDGET, TargetBench, run_of


def new_id(bench: TargetBench) -> str:
    """Return the transactional id of a new incarnation."""
    return bench.flow.transactional_id(uuid.uuid4().hex)


def partition_of(bench: TargetBench, partition: int = 0, *, partitions: int = 2) -> TopicPartition:
    """Return a partition of a new topic."""
    return TopicPartition(bench.new_topic(partitions), partition)


def open_transaction(
    bench: TargetBench, remote: TopicPartition, txid: str, *, values: int = 3
) -> TransactionalProducer:
    """Return a producer with acknowledged records in an open transaction."""
    producer = bench.lane().open_producer(txid)
    producer.begin()
    producer.send(run_of(remote, 0, [b"%d" % n for n in range(values)]), remote)
    producer.flush(within=BUDGET)
    return producer


def is_settled(bench: TargetBench, remote: TopicPartition) -> bool:
    """Return whether every marker was written, to the data and to the shadow offset."""
    target = bench.target()
    found = target.shadow_offsets([remote])[remote]
    return target.ends([remote])[remote].is_decided and not isinstance(found, Unstable)
