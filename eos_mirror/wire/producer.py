"""
One incarnation on the target: transactions over connections of its own.

Nothing is aborted, and no request without an answer is sent again: a failed transaction ends with
its incarnation, and the coordinator or the next claimer aborts it.
"""

import time
from collections.abc import Callable, Mapping
from datetime import timedelta

from eos_mirror.core.records import TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.ports import Committed, Delivered, ShadowCommit
from eos_mirror.wire.cluster import Cluster
from eos_mirror.wire.passing import PassLimits
from eos_mirror.wire.sending import INIT_WITHIN_S, ProducerSettings, Sending, raise_refused
from eos_mirror.wire.transactions import TransactionalId
from eos_mirror.wire.translate import translated


class WireProducer(Sending):
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
            transactional_id: Never used before.
            group: The shadow group, which has no members.
            cluster, settings, limits, written: See `Sending`.

        Raises:
            RestartTask: The target did not answer (TargetUnavailable) or did not initialise the id.
            NotAuthorized: WRITE on the transactional id is missing.
        """
        with translated(f"initialise {transactional_id}", side=Side.TARGET):
            self._id = TransactionalId(
                cluster,
                transactional_id,
                group=group,
                timeout_ms=settings.transaction_timeout_ms,
                until=time.monotonic() + INIT_WITHIN_S,
            )
        super().__init__(cluster, self._id, settings=settings, limits=limits, written=written)
        self._within_s = settings.answered_within_s
        self._joined: set[TopicPartition] = set()

    def begin(self) -> None:
        """See `ports.TransactionalProducer`. No request is sent: the first batch begins it."""
        with self._writing("begin"):
            raise_refused(self.outbox)  # the transaction before is open, and never committed
            self.outbox.begin(new_epoch=self._id.joins_by_writing)
        self._joined.clear()

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
