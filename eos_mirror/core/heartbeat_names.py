"""
Finds topics of applications that count as heartbeats because of their names.

MirrorMaker 2 takes every name that ends in `heartbeats` for heartbeats. So do we, because its tools
look for them; but an application may own such a topic.
"""

from collections.abc import Collection, Iterator

from eos_mirror.core.plan import TopicMapping
from eos_mirror.core.policy import (
    HEARTBEATS_TOPIC,
    IdentityReplicationPolicy,
    RenamingPolicy,
    is_heartbeats_topic,
    sources_of,
)


def odd_heartbeats(
    topics: Collection[str], mapping: TopicMapping, aliases: Collection[str]
) -> Iterator[str]:
    """
    Yield one sentence for each topic that is mirrored, or renamed, in a way its owner may not want.

    Args:
        topics: Names of all topics of the source.
        aliases: Clusters whose heartbeats are expected on the source.
    """
    policy = mapping.policy
    others = policy.others if isinstance(policy, RenamingPolicy) else policy
    is_identity = isinstance(others, IdentityReplicationPolicy)
    for topic in sorted(one for one in topics if one.endswith(HEARTBEATS_TOPIC)):
        remote = mapping.remote_of(topic)
        if remote is None or topic == HEARTBEATS_TOPIC:
            continue
        if not is_heartbeats_topic(policy, topic):
            if is_identity and remote == others.format_remote_topic(mapping.flow.source, topic):
                yield (
                    f"{topic} becomes {remote}: IdentityReplicationPolicy gives every name that "
                    f"ends in `heartbeats` a prefix. To keep the name, set "
                    f"replication.policy.topics.map = {topic}:{topic}"
                )
            continue
        unknown = [alias for alias in sources_of(policy, topic) if alias not in aliases]
        if unknown:
            yield (
                f"{topic} becomes {remote}, whatever `topics` says: it counts as the heartbeats of "
                f"a cluster {unknown[0]}. If it belongs to an application, exclude it with "
                f"`topics.exclude` and set heartbeats.replication.enabled = false"
            )
