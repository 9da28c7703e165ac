"""The fakes of the state machine, behind the interface of the conformance tests."""

from collections.abc import Callable, Mapping, Sequence

from eos_mirror.core.flow import Flow
from eos_mirror.core.records import TopicPartition
from eos_mirror.core.topic_limits import limits_of
from eos_mirror.ports import (
    ClaimsLog,
    Lane,
    RebalanceListener,
    ShadowCommit,
    Source,
    SourceMetadata,
    Target,
    TransactionalProducer,
)
from tests.engine.bench import BUDGET
from tests.engine.fake_lane import FakeLane
from tests.engine.fake_plain import FakePlainProducer, FakeSourceGroup
from tests.engine.fake_producer import FakeProducer
from tests.engine.fake_source import FakeSource, FakeSourceMetadata
from tests.engine.fake_target import FakeClaims, FakeTarget
from tests.engine.gate import Clock, open_gate
from tests.engine.requests import Requests
from tests.engine.source_cluster import SourceCluster
from tests.engine.source_group import GroupCoordinator
from tests.engine.target_cluster import TargetCluster
from tests.engine.target_log import Record

ATTEMPTS = 300
"""Checks of a condition before `until` gives up."""


def nothing_to_read(listener: RebalanceListener) -> Source:
    """Refuse to open a source: a target bench has none."""
    raise NotImplementedError(listener)


class FakeTargetBench:
    """Implements `TargetBench`."""

    is_exact = False

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.cluster = TargetCluster(flow)
        self.clock = Clock()
        self._topics = 0

    def target(self) -> Target:
        """See `TargetBench`."""
        return FakeTarget(self.cluster, open_gate, self.clock)

    def lane(self) -> Lane:
        """See `TargetBench`."""
        return FakeLane(
            FakeTarget(self.cluster, open_gate, self.clock),
            offsets=FakeSourceGroup({}),
            open_source=nothing_to_read,
            open_plain_producer=lambda: FakePlainProducer(
                self.cluster, Requests(open_gate, self.clock)
            ),
        )

    def claims(self) -> ClaimsLog:
        """See `TargetBench`."""
        return FakeClaims(self.cluster, open_gate, self.clock)

    def configure(self, topic: str, config: Mapping[str, str]) -> None:
        """See `TargetBench`."""
        usual = {"max.message.bytes": "1048588", "message.timestamp.after.max.ms": "3600000"}
        self.cluster.limits[topic] = limits_of({**usual, **config})

    def new_topic(self, partitions: int) -> str:
        """See `TargetBench`."""
        self._topics += 1
        self.cluster.create_topic(f"topic-{self._topics}", partitions)
        return f"topic-{self._topics}"

    def delete_topic(self, topic: str) -> None:
        """See `TargetBench`."""
        self.cluster.delete_topic(topic)

    def forget_offset(self, remote: TopicPartition) -> None:
        """See `TargetBench`."""
        self.cluster.group.forget(remote)

    def truncate(self, remote: TopicPartition, before: int) -> None:
        """See `TargetBench`."""
        self.cluster.logs[remote].start = before

    def pend(
        self, producer: TransactionalProducer, offsets: Mapping[TopicPartition, ShadowCommit]
    ) -> None:
        """See `TargetBench`."""
        assert isinstance(producer, FakeProducer)
        producer.send_offsets(offsets, BUDGET)

    def time_out(self, transactional_id: str) -> None:
        """See `TargetBench`."""
        self.cluster.coordinator.time_out(transactional_id)

    def read(self, remote: TopicPartition) -> list[tuple[int, bytes | None]]:
        """See `TargetBench`."""
        return [(offset, record.value) for offset, record in self.cluster.logs[remote].visible()]

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """See `TargetBench`."""
        _attempts(condition, what)


class FakeSourceBench:
    """Implements `SourceBench`."""

    is_exact = False

    def __init__(self) -> None:
        self.cluster = SourceCluster()
        self.group = GroupCoordinator([])
        self.clock = Clock()
        self._topics = self._transactions = 0
        self._members: dict[int, FakeSource] = {}

    def new_topic(self, partitions: int) -> str:
        """See `SourceBench`."""
        self._topics += 1
        topic = f"topic-{self._topics}"
        self.cluster.create_topic(topic, partitions)
        self.group.owners.update({p: None for p in self.cluster.logs if p.topic == topic})
        return topic

    def recreate_topic(self, topic: str) -> None:
        """See `SourceBench`."""
        self.cluster.delete_topic(topic)
        self.cluster.create_topic(topic, 1)

    def produce(
        self, partition: TopicPartition, values: Sequence[bytes], *, commit: bool | None = None
    ) -> None:
        """See `SourceBench`."""
        self._transactions += 1
        log = self.cluster.logs[partition]
        for value in values:
            transaction = None if commit is None else self._transactions
            log.append(Record(None, value, None, 1), transaction=transaction)
        if commit is not None:
            log.finish(self._transactions, commit=commit)

    def produce_uncarriable(self, partition: TopicPartition, value: bytes) -> None:
        """See `SourceBench`."""
        self.cluster.logs[partition].append(Record(None, value, None, 0))

    def begin(self, partition: TopicPartition, value: bytes) -> None:
        """See `SourceBench`."""
        self._transactions += 1
        record = Record(None, value, None, 1)
        self.cluster.logs[partition].append(record, transaction=self._transactions)

    def truncate(self, partition: TopicPartition, before: int) -> None:
        """See `SourceBench`."""
        self.cluster.logs[partition].start = before

    def metadata(self) -> SourceMetadata:
        """See `SourceBench`."""
        return FakeSourceMetadata(self.cluster, open_gate, self.clock)

    def open_source(self, listener: RebalanceListener, slot: int) -> Source:
        """See `SourceBench`. A new slot gets its share immediately."""
        self._members[slot] = FakeSource(
            self.cluster, self.group, listener, slot=slot, gate=open_gate, clock=self.clock
        )
        for place, partition in enumerate(sorted(self.group.owners)):
            self.group.move(sorted(self._members)[place % len(self._members)], partition)
        return self._members[slot]

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """See `SourceBench`."""
        _attempts(condition, what)


def _attempts(condition: Callable[[], bool], what: str) -> None:
    if not any(condition() for _ in range(ATTEMPTS)):
        raise TimeoutError(f"waited in vain for: {what}")
