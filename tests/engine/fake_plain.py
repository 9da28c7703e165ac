"""Fakes for at-least-once mode: the producer without transactions, and the source group."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from eos_mirror.core.records import RecordRun, TopicPartition, TopicRecord
from eos_mirror.core.suspects import Refusal
from eos_mirror.errors import RefusedByTarget
from eos_mirror.ports import GroupOffset
from tests.engine.outbox import Outbox, own_record
from tests.engine.refusing import RefusedBatch, refusal_of
from tests.engine.requests import Requests
from tests.engine.target_cluster import TargetCluster
from tests.engine.target_log import Record


class FakePlainProducer:
    """
    `ports.PlainProducer`.

    A batch after a refused one is still sent, as in the client library, unless batches are
    numbered.
    """

    def __init__(self, cluster: TargetCluster, requests: Requests) -> None:
        self._cluster = cluster
        self._requests = requests
        self._waiting = Outbox()
        self._own: dict[TopicPartition, list[Record]] = {}

    def send(self, run: RecordRun, remote: TopicPartition, *, batch: int | None = None) -> None:
        """See the port."""
        self._waiting.add(run, remote, batch)

    def send_to(self, topic: str, records: Sequence[TopicRecord]) -> None:
        """See the port."""
        self._own.setdefault(TopicPartition(topic, 0), []).extend(map(own_record, records))

    def flush(self, *, within: timedelta) -> None:  # noqa: ARG002 (of the port)
        """See the port."""
        while self._own:
            self._produce(*self._own.popitem())
        refused: dict[TopicPartition, Refusal] = {}
        while self._waiting:
            batch = self._waiting.popleft()
            if batch.remote in refused and batch.number is not None:
                continue
            self._requests.gate("produce")
            try:
                self._produce(batch.remote, batch.records)
            except RefusedBatch as exc:
                refusal = refusal_of(exc, None if batch.number is None else batch.offsets)
                refused.setdefault(batch.remote, refusal)
        if refused:
            raise RefusedByTarget("refused", refused=refused)

    def _produce(self, remote: TopicPartition, records: Sequence[Record]) -> None:
        self._cluster.check_batch(remote, records)
        self._cluster.logs[remote].append_plain(records)


class FakeSourceGroup:
    """`ports.SourceOffsets`, over a dict of offsets that the caller keeps."""

    absent = "the fake has no offset"

    def __init__(self, offsets: dict[TopicPartition, GroupOffset]) -> None:
        self._offsets = offsets

    def committed(
        self, partitions: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, GroupOffset | None]:
        """See the port."""
        return {partition: self._offsets.get(partition) for partition in partitions}

    def commit(self, offsets: Mapping[TopicPartition, GroupOffset], *, within: timedelta) -> None:  # noqa: ARG002 (of the port)
        """See the port."""
        self._offsets.update(offsets)
