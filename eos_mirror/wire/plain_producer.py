"""The idempotent producer of at-least-once mode: no transactions, and no failure is lost."""

import time
from collections.abc import Callable, Sequence
from datetime import timedelta

from eos_mirror.core.records import RecordRun, TopicPartition, TopicRecord
from eos_mirror.core.side import Side
from eos_mirror.wire.cluster import Cluster
from eos_mirror.wire.outbox import Outbox
from eos_mirror.wire.packing import Packer
from eos_mirror.wire.passing import PassLimits
from eos_mirror.wire.producer import INIT_WITHIN_S, ProducerSettings, raise_refused
from eos_mirror.wire.transactions import plain_producer_id
from eos_mirror.wire.translate import translated


class PlainId:
    """A producer id without transactions. Implements `outbox.Identity`."""

    transactional_id: str | None = None
    joins_by_writing = True

    def __init__(self, producer_id: int, epoch: int) -> None:
        self.producer_id = producer_id
        self.epoch = epoch


class WirePlainProducer:
    """Implements `ports.PlainProducer`. Used by one thread."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        settings: ProducerSettings,
        limits: Callable[[str], PassLimits],
        written: dict[str, int],
    ) -> None:
        """
        Get a producer id.

        Args:
            cluster: Used by no one else; closed with this object.
            limits: Returns what a topic accepts now.
            written: Counts the records, as `ports.Lane` does.

        Raises:
            RestartTask: The target did not answer.
        """
        with translated("get a producer id", side=Side.TARGET):
            until = time.monotonic() + INIT_WITHIN_S
            identity = PlainId(*plain_producer_id(cluster, until=until))
        self._cluster = cluster
        self.outbox = Outbox(cluster, identity, answered_within_s=settings.answered_within_s)
        self.packer = Packer(cluster, self.outbox, settings.packing, limits=limits, written=written)

    def send(self, run: RecordRun, remote: TopicPartition, *, batch: int | None = None) -> None:
        """See `ports.PlainProducer`. `pump` and `flush` send what is queued here."""
        with translated(f"produce to {remote}", side=Side.TARGET):
            self.packer.add(run, remote, number=batch)

    def send_to(self, topic: str, records: Sequence[TopicRecord]) -> None:
        """See `ports.PlainProducer`."""
        with translated(f"produce to {topic}", side=Side.TARGET):
            self.packer.add_to(topic, records)

    def pump(self) -> None:
        """Take the acknowledgements that have arrived, and send full batches. Never waits."""
        with translated("produce", side=Side.TARGET):
            self.outbox.pump()

    def flush(self, *, within: timedelta) -> None:
        """See `ports.PlainProducer`."""
        with translated("flush", side=Side.TARGET):
            self.packer.close()
            self.outbox.drain(until=time.monotonic() + within.total_seconds())
        try:
            raise_refused(self.outbox)
        finally:
            self.outbox.begin(new_epoch=False)

    def close(self) -> None:
        """Close the connections."""
        self._cluster.close()
