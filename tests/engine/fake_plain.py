"""Fakes for at-least-once mode: the producer without transactions, and the source group."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from eos_mirror.core.records import RecordRun, TopicPartition
from eos_mirror.core.suspects import Refusal
from eos_mirror.errors import RefusedByTarget
from eos_mirror.ports import GroupOffset
from tests.engine.outbox import Outbox
from tests.engine.refusing import RefusedBatch, judge, refusal_of
from tests.engine.requests import Requests
from tests.engine.target_cluster import TargetCluster


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

    def send(self, run: RecordRun, remote: TopicPartition, *, batch: int | None = None) -> None:
        """See the port."""
        self._waiting.add(run, remote, batch)

    def flush(self, *, within: timedelta) -> None:  # noqa: ARG002 (of the port)
        """See the port."""
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

    def _produce(self, remote: TopicPartition, records: Sequence[object]) -> None:
        cluster = self._cluster
        judged = judge(records, cluster.limits_of(remote.topic), cluster.forbidden)  # type: ignore[arg-type]
        if judged is not None:
            raise judged
        cluster.logs[remote].append_plain(records)  # type: ignore[arg-type]


class FakeSourceGroup:
    """`ports.SourceGroup`, over a dict of offsets that the caller keeps."""

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
