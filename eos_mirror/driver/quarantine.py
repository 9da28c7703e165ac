"""The quarantine of a flow on the target: how it is created, and what is wrong with it."""

from collections.abc import Iterator
from typing import Final

from eos_mirror.core.quarantine import fault_of
from eos_mirror.driver.flow_clusters import FlowClusters
from eos_mirror.kafka.authorization import MIRROR_TO, missing_topic_rights
from eos_mirror.kafka.topics import TopicSpec
from eos_mirror.settings import clients
from eos_mirror.settings.model import FlowSettings

QUARANTINE_FACTOR: Final = "errors.deadletterqueue.topic.replication.factor"
LARGEST_REQUEST: Final = "104857600"
"""Default `socket.request.max.bytes`: no client sends a larger record."""

NEW: Final = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "max.message.bytes": LARGEST_REQUEST,
    "message.timestamp.type": "LogAppendTime",
    "unclean.leader.election.enable": "false",
}
"""It accepts what other topics refuse: large records, records without a key, any timestamp."""


def quarantine_spec(settings: FlowSettings, topic: str) -> TopicSpec:
    """Return how a quarantine is created."""
    return TopicSpec(
        name=topic,
        partitions=1,
        replication_factor=settings.refusals.replication_factor,
        config={**NEW, **settings.min_in_sync},
    )


def quarantine_faults(settings: FlowSettings, clusters: FlowClusters) -> Iterator[str]:
    """
    Yield what is wrong with an existing quarantine, or which rights on it are missing.

    Raises:
        TargetUnavailable: The target did not answer.
    """
    topic, flow = settings.quarantine, settings.flow
    if topic is None or not clusters.target_topics.existing([topic]):
        return  # the start creates it
    for right in missing_topic_rights(clusters.target_topics, {topic: MIRROR_TO}):
        yield f"{flow}: not authorized: {right} ({flow.target}). Grant it with kafka-acls.sh."
    limits = clusters.target.limits([topic]).get(topic)
    if limits is None:
        yield (
            f"{flow}: not authorized: DESCRIBE_CONFIGS on topic {topic} ({flow.target}). Grant it "
            f"with kafka-acls.sh."
        )
    elif fault := fault_of(limits, clients.sender_limits(settings)):
        yield f"{flow}: {topic} cannot be its quarantine: {fault}"
