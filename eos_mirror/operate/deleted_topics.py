"""Finds copies of topics that the source no longer has."""

from collections.abc import Mapping

from eos_mirror.core.plan import TopicMapping
from eos_mirror.core.records import TopicPartition
from eos_mirror.driver.flow_clusters import FlowClusters


def copies_of_deleted_topics(
    clusters: FlowClusters,
    mapping: TopicMapping,
    *,
    on_source: Mapping[str, int],
    on_target: Mapping[str, int],
) -> dict[str, str]:
    """
    Return the remote topics of deleted source topics that the configuration selects, by source.

    A topic was mirrored if it has a shadow offset. The target keeps that until its retention of
    offsets is over. Only exactly once has shadow offsets.

    Args:
        on_source, on_target: Partition counts of the topics of each cluster.

    Raises:
        TargetUnavailable: The target did not answer in time.
    """
    copies = {
        topic: remote
        for remote in on_target
        for topic in (mapping.policy.upstream_topic(remote), remote)
        if topic is not None and topic not in on_source and mapping.remote_of(topic) == remote
    }
    partitions = [
        TopicPartition(remote, p) for remote in copies.values() for p in range(on_target[remote])
    ]
    if not partitions:
        return {}
    mirrored = {remote.topic for remote in clusters.shadow_offsets.read(partitions)}
    return {topic: remote for topic, remote in sorted(copies.items()) if remote in mirrored}
