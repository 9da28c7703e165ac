"""The driver's clients for both clusters of a flow."""

from dataclasses import dataclass

from eos_mirror.core.claims import DeliveryMode
from eos_mirror.core.flow import Flow
from eos_mirror.core.side import Side
from eos_mirror.kafka.connect_offsets import ConnectOffsets
from eos_mirror.kafka.flow_mode import FlowMode
from eos_mirror.kafka.groups import CommittedOffsets
from eos_mirror.kafka.metadata import ClusterMetadata
from eos_mirror.kafka.target import KafkaTarget
from eos_mirror.kafka.topics import Topics
from eos_mirror.settings import clients
from eos_mirror.settings.clients import claims_producer
from eos_mirror.settings.model import FlowSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowClusters:
    """
    The driver's clients for both clusters of a flow.

    Attributes:
        source_offsets: Committed offsets of the source group.
        connect_offsets: Positions of a source connector, as MirrorMaker 2 stores them.
        shadow_offsets: Committed offsets of the shadow group.
    """

    flow: Flow
    source_topics: Topics
    target_topics: Topics
    source_metadata: ClusterMetadata
    target: KafkaTarget
    source_offsets: CommittedOffsets
    connect_offsets: ConnectOffsets
    shadow_offsets: CommittedOffsets
    mode: FlowMode

    def offsets_by_source(self, mode: DeliveryMode) -> CommittedOffsets | ConnectOffsets:
        """Return the positions by source partition of a flow that mirrors at least once."""
        return self.connect_offsets if mode is DeliveryMode.SOURCE else self.source_offsets


def offsets_by_source(settings: FlowSettings) -> CommittedOffsets | ConnectOffsets:
    """Return a reader of the positions of a flow that mirrors at least once."""
    if settings.is_source_connector:
        return connect_offsets(settings)
    source = clients.source_admin(settings)
    return CommittedOffsets(source, settings.flow.source_group, side=Side.SOURCE)


def connect_offsets(settings: FlowSettings) -> ConnectOffsets:
    """Return the positions that MirrorMaker 2 has of a flow, or would have."""
    return ConnectOffsets(
        clients.positions_of(settings),
        client_config=clients.target_admin(settings),
        producer_config=claims_producer(settings),
        group=settings.flow.shadow_group,
    )


def open_clusters(settings: FlowSettings) -> FlowClusters:
    """Create the clients for both clusters of a flow. They connect on first use."""
    flow = settings.flow
    source, target = clients.source_admin(settings), clients.target_admin(settings)
    return FlowClusters(
        flow=flow,
        source_topics=Topics(source, side=Side.SOURCE),
        target_topics=Topics(target, side=Side.TARGET),
        source_metadata=ClusterMetadata(source, side=Side.SOURCE),
        target=KafkaTarget(flow, client_config=target, early=False),
        source_offsets=CommittedOffsets(source, flow.source_group, side=Side.SOURCE),
        connect_offsets=connect_offsets(settings),
        shadow_offsets=CommittedOffsets(target, flow.shadow_group, side=Side.TARGET),
        mode=FlowMode(flow, producer_config=claims_producer(settings), client_config=target),
    )
