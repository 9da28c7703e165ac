"""What both producers of the lane do: pack records, send them, and stop after the first failure."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
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
from eos_mirror.wire.cluster import Cluster
from eos_mirror.wire.errors import NotAcknowledged
from eos_mirror.wire.outbox import Outbox
from eos_mirror.wire.packing import Packer, Packing
from eos_mirror.wire.passing import PassLimits
from eos_mirror.wire.produce_requests import Identity
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


class Sending:
    """
    Sends batches under one producer id. Used by one thread.

    Attributes:
        outbox: What is queued, and what waits for an acknowledgement.
        packer: Makes batches of records.
    """

    def __init__(
        self,
        cluster: Cluster,
        identity: Identity,
        *,
        settings: ProducerSettings,
        limits: Callable[[str], PassLimits],
        written: dict[str, int],
    ) -> None:
        """
        Args:
            cluster: Used by no one else; closed with this object.
            limits: Returns what a topic accepts now.
            written: Counts the records, as `ports.Lane` does.
        """
        self._cluster = cluster
        self.outbox = Outbox(cluster, identity, answered_within_s=settings.answered_within_s)
        self.packer = Packer(cluster, self.outbox, settings.packing, limits=limits, written=written)
        self._is_over = False

    @contextmanager
    def _writing(self, what: object) -> Iterator[None]:
        """
        Write something. After an error, nothing is sent any more.

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
            cause = exc.__cause__
            late = cause.partitions if isinstance(cause, NotAcknowledged) else ()
            raise TransactionLost(str(exc), unwritten=late) from exc

    def _end(self) -> None:
        self._is_over = True
        self.outbox.end()

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
        """Prepare for the first batch of a partition; nothing is necessary here."""

    def _drain(self, until: float) -> None:
        self.packer.close()
        self._join()
        self.outbox.drain(until=until)

    def close(self) -> None:
        """Close the connections."""
        self._cluster.close()


def raise_refused(outbox: Outbox) -> None:
    """Raise RefusedByTarget if batches were refused because of their records."""
    refused = outbox.refusals
    if refused:
        remote, first = next(iter(refused.items()))
        text = f"produce to {remote}: {first.code} ({first.reason})"
        raise RefusedByTarget(text, refused=refused)
