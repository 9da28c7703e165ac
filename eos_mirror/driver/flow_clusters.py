"""The driver's clients for both clusters of a flow."""

from dataclasses import dataclass

from eos_mirror.core.flow import Flow
from eos_mirror.core.side import Side
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
        shadow_offsets: Committed offsets of the shadow group.
    """

    flow: Flow
    source_topics: Topics
    target_topics: Topics
    source_metadata: ClusterMetadata
    target: KafkaTarget
    source_offsets: CommittedOffsets
    shadow_offsets: CommittedOffsets
    mode: FlowMode


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
        shadow_offsets=CommittedOffsets(target, flow.shadow_group, side=Side.TARGET),
        mode=FlowMode(flow, producer_config=claims_producer(settings), client_config=target),
    )
