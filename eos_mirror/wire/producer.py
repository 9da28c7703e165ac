"""
One incarnation on the target: transactions over connections of its own.

Nothing is aborted, and no request without an answer is sent again: a failed transaction ends with
its incarnation, and the coordinator or the next claimer aborts it.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from eos_mirror.core.records import RecordRun, TopicPartition, TopicRecord
from eos_mirror.core.side import Side
from eos_mirror.errors import (
    FatalError,
    ProducerFenced,
    RefusedByTarget,
    RestartTask,
    TransactionLost,
)
from eos_mirror.ports import Committed, Delivered, ShadowCommit
from eos_mirror.wire.cluster import Cluster
from eos_mirror.wire.outbox import Outbox
from eos_mirror.wire.packing import Packer, Packing
from eos_mirror.wire.passing import PassLimits
from eos_mirror.wire.transactions import TransactionalId
from eos_mirror.wire.translate import translated

INIT_WITHIN_S: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerSettings:
    """
    How producers of the lane work.

    Attributes:
        answered_within_s: Deadline of each request.
        transaction_timeout_ms: After this time the coordinator aborts an open transaction.
        packing: How records become batches.
    """

    answered_within_s: float
    transaction_timeout_ms: int
    packing: Packing


class WireProducer:
    """Implements `ports.TransactionalProducer`. Used by one thread."""

    def __init__(
        self,
        cluster: Cluster,
        transactional_id: str,
        *,
        group: str,
        settings: ProducerSettings,
        limits: Callable[[str], PassLimits],
        written: dict[str, int],
    ) -> None:
        """
        Initialise an incarnation.

        Args:
            cluster: Used by no one else; closed with this object.
            transactional_id: Never used before.
            group: The shadow group, which has no members.
            limits: Returns what a topic accepts now.
            written: Counts the records, as `ports.Lane` does.

        Raises:
            RestartTask: The target did not answer (TargetUnavailable) or did not initialise the id.
            NotAuthorized: WRITE on the transactional id is missing.
        """
        self._cluster = cluster
        self._within_s = settings.answered_within_s
        with translated(f"initialise {transactional_id}", side=Side.TARGET):
            self._id = TransactionalId(
                cluster,
                transactional_id,
                group=group,
                timeout_ms=settings.transaction_timeout_ms,
                until=time.monotonic() + INIT_WITHIN_S,
            )
        self.outbox = Outbox(cluster, self._id, answered_within_s=self._within_s)
        self.packer = Packer(cluster, self.outbox, settings.packing, limits=limits, written=written)
        self._joined: set[TopicPartition] = set()
        self._is_over = False

    @contextmanager
    def _writing(self, what: object) -> Iterator[None]:
        """
        Write a part of the transaction. After an error, nothing is sent any more.

        Raises:
            TransactionLost: A request failed, or has no answer.
            ProducerFenced, NotAuthorized: Exit the process.
        """
        if self._is_over:
            raise TransactionLost(f"{what}: an earlier request of this incarnation failed")
        try:
            with translated(what, side=Side.TARGET):
                yield
        except (ProducerFenced, FatalError):
            self._end()
            raise
        except RestartTask as exc:
            self._end()
            raise TransactionLost(str(exc)) from exc

    def _end(self) -> None:
        self._is_over = True
        self.outbox.end()

    def begin(self) -> None:
        """See `ports.TransactionalProducer`. No request is sent: the first batch begins it."""
        with self._writing("begin"):
            raise_refused(self.outbox)  # the transaction before is open, and never committed
            self.outbox.begin(new_epoch=self._id.joins_by_writing)
        self._joined.clear()

    def send(self, run: RecordRun, remote: TopicPartition, *, batch: int | None = None) -> None:
        """See `ports.TransactionalProducer`. `pump` and `flush` send what is queued here."""
        with self._writing(remote):
            self.packer.add(run, remote, number=batch)

    def send_to(self, topic: str, records: Sequence[TopicRecord]) -> None:
        """See `ports.TransactionalProducer`."""
        with self._writing(topic):
            self.packer.add_to(topic, records)

    def pump(self) -> None:
        """
        Take the acknowledgements that have arrived, and send full batches. Never waits.

        Raises:
            TransactionLost: A batch failed, or has no answer.
        """
        if self._is_over:
            return
        with self._writing("produce"):
            self._join()
            self.outbox.pump()

    def _join(self) -> None:
        """Add partitions to the transaction before their first batch, where the protocol asks."""
        if self._id.joins_by_writing:
            return
        new = [one for one in self.outbox.new_partitions() if one not in self._joined]
        if new:
            self._id.add(new, until=time.monotonic() + self._within_s)
            self._joined.update(new)

    def flush(self, *, within: timedelta) -> Mapping[TopicPartition, Delivered]:
        """See `ports.TransactionalProducer`."""
        with self._writing("flush"):
            self._drain(time.monotonic() + within.total_seconds())
        raise_refused(self.outbox)
        return {
            remote: Delivered(first=book.first, last=book.last, count=book.count)
            for remote, book in self.outbox.books.items()
            if book.count
        }

    def _drain(self, until: float) -> None:
        self.packer.close()
        self._join()
        self.outbox.drain(until=until)

    def commit(
        self, offsets: Mapping[TopicPartition, ShadowCommit], *, within: timedelta
    ) -> Committed:
        """See `ports.TransactionalProducer`. Never in doubt: nothing is sent twice."""
        until = time.monotonic() + within.total_seconds()
        with self._writing("produce"):
            self._drain(until)
        raise_refused(self.outbox)
        if not offsets and not self.outbox.books:
            return Committed()  # nothing was sent, so the target knows of no transaction
        if offsets:
            self._send_offsets(offsets, until)
        with self._writing("commit"):
            self._id.end(until=until)
        return Committed()

    def send_offsets(
        self, offsets: Mapping[TopicPartition, ShadowCommit], *, within: timedelta
    ) -> None:
        """Make shadow offsets a part of the open transaction: the first half of `commit`."""
        self._send_offsets(offsets, time.monotonic() + within.total_seconds())

    def _send_offsets(self, offsets: Mapping[TopicPartition, ShadowCommit], until: float) -> None:
        with self._writing("send the shadow offsets"):
            self._id.send_offsets(offsets, until=until)

    def close(self) -> None:
        """See `ports.TransactionalProducer`."""
        self._cluster.close()


def raise_refused(outbox: Outbox) -> None:
    """Raise RefusedByTarget if batches were refused because of their records."""
    refused = outbox.refusals
    if refused:
        remote, first = next(iter(refused.items()))
        text = f"produce to {remote}: {first.code} ({first.reason})"
        raise RefusedByTarget(text, refused=refused)
