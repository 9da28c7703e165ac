"""Hands runs to a producer: whole, or in batches that a topic with a small limit accepts."""

from typing import Protocol

from eos_mirror.core.records import RecordRun, TopicPartition
from eos_mirror.core.suspects import BatchCutter
from eos_mirror.replication.partition import OwnedPartition


class Sender(Protocol):
    """A producer of either mode."""

    def send(self, run: RecordRun, remote: TopicPartition, *, batch: int | None = None) -> None:
        """See `ports.TransactionalProducer`."""


class Portions:
    """Batches that were sent since the last commit, by partition."""

    def __init__(self, producer: Sender) -> None:
        self._producer = producer
        self._cutters: dict[TopicPartition, BatchCutter] = {}

    def clear(self) -> None:
        """Reset the batches, as a new transaction begins."""
        self._cutters.clear()

    def send(self, owned: OwnedPartition, run: RecordRun) -> RecordRun | None:
        """
        Hand a run to the producer, as far as this transaction has room for it.

        Returns:
            The part of the run that was sent; None if none of it was.

        Raises:
            RefusedByTarget: The client itself refuses a record.
        """
        owned.sent_to = run.next_offset
        if owned.batch_limit is None:
            self._producer.send(run, owned.remote)
            return run
        cutter = self._cutters.get(owned.remote)
        if cutter is None:
            cutter = self._cutters[owned.remote] = BatchCutter(owned.batch_limit)
        records = 0
        decoded = run.decoded()
        for number, part in cutter.cut(decoded):
            self._producer.send(part, owned.remote, batch=number)
            records += part.count
        if not records:
            return None
        sent = decoded.head(records, after=owned.position.leader_epoch)
        owned.sent_to = sent.next_offset
        return sent
