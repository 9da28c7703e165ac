"""The classes of wire/ over real brokers, behind the same interface as the fakes."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from eos_mirror.core.flow import Flow
from eos_mirror.core.records import TopicPartition
from eos_mirror.kafka.target import KafkaTarget
from eos_mirror.ports import (
    ClaimsLog,
    Lane,
    RebalanceListener,
    ShadowCommit,
    Source,
    SourceOffsets,
    TransactionalProducer,
)
from eos_mirror.testing import Cluster as TestCluster
from eos_mirror.wire.claims import WireClaimsLog
from eos_mirror.wire.cluster import Cluster
from eos_mirror.wire.lane import WireLane
from eos_mirror.wire.plain_producer import WirePlainProducer
from eos_mirror.wire.producer import WireProducer
from eos_mirror.wire.security import PLAINTEXT
from eos_mirror.wire.source import WireSource
from eos_mirror.wire.target_facts import TargetFacts
from tests.engine.bench import BUDGET
from tests.engine.real_bench import TRANSACTIONAL, WRITER, RealSourceBench, RealTargetBench


class _Membership:
    """Implements `wire.lane.Membership`."""

    def __init__(self, open_member: Callable[[RebalanceListener], Source] | None = None) -> None:
        self._open_member = open_member

    @property
    def offsets(self) -> SourceOffsets:
        """See `wire.lane.Membership`."""
        raise NotImplementedError

    def open_source(self, listener: RebalanceListener) -> Source:
        """See `wire.lane.Membership`."""
        assert self._open_member is not None
        return self._open_member(listener)


class RememberedLane(WireLane):
    """A lane whose producers the test closes."""

    def __init__(self, opened: list[WireProducer | WirePlainProducer], *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._opened = opened

    def open_producer(self, transactional_id: str) -> WireProducer:
        """See `ports.Lane`."""
        producer = super().open_producer(transactional_id)
        self._opened.append(producer)
        return producer

    def open_plain_producer(self) -> WirePlainProducer:
        """See `ports.Lane`."""
        producer = super().open_plain_producer()
        self._opened.append(producer)
        return producer


class WireTargetBench(RealTargetBench):
    """Implements `TargetBench` with our own lane."""

    is_exact = True

    def __init__(self, cluster: TestCluster, flow: Flow) -> None:
        super().__init__(cluster, flow)
        self._opened: list[WireProducer | WirePlainProducer] = []
        self._clusters: list[Cluster] = []

    def lane(self) -> Lane:
        """See `TargetBench`."""
        return RememberedLane(
            self._opened,
            self.flow,
            _Membership(),
            consumer_config=self.config,
            producer_config={**self.config, **TRANSACTIONAL},
            plain_producer_config={**self.config, **WRITER},
        )

    def target(self) -> KafkaTarget:
        """See `TargetBench`."""
        target = super().target()
        target.read_with(TargetFacts(self._new_cluster))
        return target

    def claims(self) -> ClaimsLog:
        """See `TargetBench`."""
        topic = self.flow.claims_topic
        topic_id = super().target().topic_ids([topic])[topic]
        return WireClaimsLog(self._new_cluster(), topic, topic_id=topic_id)

    def _new_cluster(self) -> Cluster:
        made = Cluster(self.config["bootstrap.servers"], PLAINTEXT, client_id="test")
        self._clusters.append(made)
        return made

    def close(self) -> None:
        """Close the connections of every producer, and of the claims."""
        for cluster in self._clusters:
            cluster.close()
        for producer in self._opened:
            producer.close()

    def pend(
        self, producer: TransactionalProducer, offsets: Mapping[TopicPartition, ShadowCommit]
    ) -> None:
        """See `TargetBench`."""
        assert isinstance(producer, WireProducer)
        producer.send_offsets(offsets, within=BUDGET)


class WireSourceBench(RealSourceBench):
    """Implements `SourceBench` with our own lane."""

    is_exact = True

    def __init__(self, cluster: TestCluster, flow: Flow) -> None:
        super().__init__(cluster, flow)
        self._opened: list[WireSource] = []

    def open_source(self, listener: RebalanceListener, slot: int) -> Source:
        """See `SourceBench`."""
        config: dict[str, Any] = self.member_config(slot)
        lane = WireLane(
            self.flow,
            _Membership(partial(self._member, slot=slot)),
            consumer_config=config,
            producer_config=config,
            plain_producer_config=config,
        )
        self._opened.append(lane.open_source(listener))
        return self._opened[-1]

    def close(self) -> None:
        """See `RealSourceBench`; the connections that read are closed."""
        super().close()
        for source in self._opened:
            source.stop_reading()

    def _member(self, listener: RebalanceListener, *, slot: int) -> Source:
        return super().open_source(listener, slot)
