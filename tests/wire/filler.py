"""An outbox with a scripted broker, and batches for it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

from eos_mirror.core.records import TopicPartition
from eos_mirror.wire.cluster import Cluster
from eos_mirror.wire.outbox import Outbox
from eos_mirror.wire.packing import Parcel
from eos_mirror.wire.security import PLAINTEXT
from tests.wire.examples import Row, batch_of
from tests.wire.produce_broker import EPOCH, PRODUCER_ID, ProduceBroker

WITHIN = timedelta(seconds=20)
COPIES = TopicPartition("copies", 0)


class Writer:
    """A producer id. Implements `outbox.Identity`."""

    transactional_id: str | None = "id"
    joins_by_writing = True

    def __init__(self) -> None:
        self.producer_id, self.epoch = PRODUCER_ID, EPOCH


@contextmanager
def writing(
    partitions: int = 1, *, within_s: float = WITHIN.total_seconds()
) -> Iterator[tuple[Outbox, ProduceBroker, Writer]]:
    """Yield an outbox, a broker with the topic `copies`, and the producer id."""
    target, writer = ProduceBroker(), Writer()
    target.add_topic("copies", partitions)
    with target.broker:
        cluster = Cluster(target.broker.bootstrap, PLAINTEXT, client_id="test")
        outbox = Outbox(cluster, writer, answered_within_s=within_s)
        outbox.begin(new_epoch=True)
        try:
            yield outbox, target, writer
        finally:
            cluster.close()


class Filler:
    """Puts batches whose records carry their upstream offset as the timestamp."""

    def __init__(self, outbox: Outbox, partition: TopicPartition = COPIES) -> None:
        self._outbox, self._partition = outbox, partition
        self.next_offset = 0

    def put(self, *counts: int) -> None:
        """Queue a batch for each number of records."""
        for count in counts:
            first, self.next_offset = self.next_offset, self.next_offset + count
            rows: Sequence[Row] = [(first + i, b"k", b"v", None) for i in range(count)]
            batch = batch_of(rows, base_offset=first)
            parcel = Parcel(batch, range(first, self.next_offset))
            self._outbox.put(self._partition, parcel)
