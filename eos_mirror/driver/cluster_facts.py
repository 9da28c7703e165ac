"""Gathers the state of both clusters before a flow starts, without writing anything."""

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from eos_mirror.core.claims import DeliveryMode
from eos_mirror.core.copy_limits import Configs
from eos_mirror.core.map_records import start_of
from eos_mirror.core.plan import FlowPlan
from eos_mirror.core.records import TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.driver.flow_clusters import FlowClusters
from eos_mirror.errors import MirrorError
from eos_mirror.kafka.authorization import (
    MIRROR_FROM,
    MIRROR_TO,
    missing_topic_rights,
    rights_missing,
)
from eos_mirror.kafka.connect_offsets import ConnectOffsets
from eos_mirror.kafka.groups import CommittedOffsets, GroupMember, group_members
from eos_mirror.kafka.retry import retrying
from eos_mirror.ports import GroupOffset, ShadowOffset, Unstable

TIMESTAMP_TYPE = "message.timestamp.type"


@dataclass(frozen=True, slots=True, kw_only=True)
class RemotePartition:
    """
    A planned target partition that exists.

    Attributes:
        has_shadow: A shadow offset is committed, or the transaction that may commit it is open.
        has_position: The requested mode has a position from which to continue.
        was_started: This flow started it, according to a shadow offset or the offset map.
        end: Last stable offset; 0 where there is a shadow offset, because it is not asked for.
    """

    remote: TopicPartition
    has_shadow: bool
    has_position: bool
    was_started: bool
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowFacts:
    """
    What was found on both clusters.

    Attributes:
        planned_partitions: Number of partitions of the planned source topics. It includes topics
            that are refused later, by the target or for their limits: they may start while the
            flow runs.
        source_topics: All topics of the source.
        source_configs, remote_configs: Values in effect by entry, by topic name.
        remote_timestamp_types: `message.timestamp.type` of existing remote topics.
        has_claims_topic: True if the claims topic exists.
        noted_mode: The mode that the flow runs in; None if it never ran.
        shadow_members: Members of the shadow group; there must be none.
        source_members: Members of the source group.
        missing_rights: Missing rights on internal topics, such as `WRITE on topic claims (target)`.
        denied: Missing rights on a topic or its copy, by source topic.
        undescribed: Why a topic and its copy cannot be compared, by source topic: one of them
            cannot be described.
    """

    plan: FlowPlan
    planned_partitions: int
    source_topics: Collection[str]
    source_configs: Configs
    remote_configs: Configs
    remote_timestamp_types: Mapping[str, str]
    partitions: Sequence[RemotePartition]
    has_claims_topic: bool
    noted_mode: DeliveryMode | None
    shadow_members: Sequence[GroupMember]
    source_members: Sequence[GroupMember]
    missing_rights: Sequence[str]
    denied: Mapping[str, Sequence[str]]
    undescribed: Mapping[str, str]


def gather(
    clusters: FlowClusters,
    plan_of: Callable[[Mapping[str, int], Mapping[str, int]], FlowPlan],
    *,
    mode: DeliveryMode,
    within: timedelta,
    groupless: Collection[Side] = (),
) -> FlowFacts:
    """
    Ask both clusters for the facts.

    Args:
        plan_of: Makes the plan from the partition counts by topic of source and target.
        mode: The requested mode.
        within: How long to wait for the first answer of each cluster.
        groupless: Clusters that have no groups yet. They are not asked for any: the question would
            make them create the topic of the group coordinators.

    Raises:
        SourceUnavailable, TargetUnavailable: The cluster did not answer in time.
        NotAuthorized: The right to describe is missing.
    """
    flow = clusters.flow
    source, target = clusters.source_topics, clusters.target_topics
    if mode is DeliveryMode.SOURCE:
        groupless = {*groupless, Side.SOURCE}  # it has no group there
    with ThreadPoolExecutor() as pool:
        lists = [pool.submit(topics.list, within=within) for topics in (source, target)]
        # on a new cluster a group lookup creates __consumer_offsets: ask for the others meanwhile
        members = partial(_members, clusters, within=within, groupless=groupless)
        readers, shadows = (pool.submit(members, side) for side in (Side.SOURCE, Side.TARGET))
        on_source, on_target = (answer.result() for answer in lists)
        plan = plan_of(on_source, on_target)
        existing = [route for route in plan.routes if route.remote_topic in on_target]
        sources = source.describe([route.source_topic for route in plan.routes])
        remotes = target.describe([route.remote_topic for route in existing])
        remote_configs = remotes.values
        return FlowFacts(
            plan=plan,
            planned_partitions=sum(route.partitions for route in plan.routes),
            source_topics=on_source,
            source_configs=sources.values,
            remote_configs=remote_configs,
            remote_timestamp_types=_timestamp_types(remote_configs),
            partitions=remote_partitions(clusters, plan, on_target, mode=mode, groupless=groupless),
            has_claims_topic=flow.claims_topic in on_target,
            noted_mode=clusters.mode.read() if flow.claims_topic in on_target else None,
            missing_rights=_missing_rights(clusters, on_target),
            denied=_denied(clusters, plan, on_target),
            undescribed=_by_source(plan, sources.refused, remotes.refused),
            shadow_members=shadows.result(),
            source_members=readers.result(),
        )


def _members(
    clusters: FlowClusters, side: Side, *, within: timedelta, groupless: Collection[Side]
) -> list[GroupMember]:
    """Return the members of the flow's group on one side."""
    if side in groupless:
        return []
    flow, is_source = clusters.flow, side is Side.SOURCE
    topics = clusters.source_topics if is_source else clusters.target_topics
    group = flow.source_group if is_source else flow.shadow_group
    return group_members(topics.admin, group, side=side, within=within)


def _timestamp_types(configs: Configs) -> dict[str, str]:
    return {
        name: config[TIMESTAMP_TYPE] for name, config in configs.items() if TIMESTAMP_TYPE in config
    }


def remote_partitions(
    clusters: FlowClusters,
    plan: FlowPlan,
    on_target: Mapping[str, int],
    *,
    mode: DeliveryMode,
    groupless: Collection[Side] = (),
) -> list[RemotePartition]:
    """
    Return what is known of each existing partition of a plan's remote topics.

    Args:
        on_target: Partition counts of the target's topics.
        mode: The requested mode.
        groupless: See `gather`.

    Raises:
        SourceUnavailable, TargetUnavailable: The cluster did not answer.
    """
    sources = {
        TopicPartition(route.remote_topic, p): TopicPartition(route.source_topic, p)
        for route in plan.routes
        for p in range(min(route.partitions, on_target.get(route.remote_topic, 0)))
    }
    exactly_once, has_groups = mode is DeliveryMode.EXACTLY_ONCE, Side.TARGET not in groupless
    in_group: Mapping[TopicPartition, GroupOffset] = {}
    if mode is DeliveryMode.SOURCE or not (exactly_once or Side.SOURCE in groupless):
        in_group = _read(clusters.offsets_by_source(mode), list(sources.values()))
    shadows = _read(clusters.shadow_offsets, list(sources)) if has_groups else {}
    bare = [remote for remote in sources if remote not in shadows]
    if exactly_once and bare and has_groups:  # the transaction of a first offset may still be open
        found = clusters.target.shadow_offsets(bare)
        bare = [one for one in bare if not isinstance(found[one], ShadowOffset | Unstable)]
    ends, silent = clusters.target.stable_ends(bare)
    entries = {topic: clusters.target.map_entries(topic) for topic in {r.topic for r in bare}}
    return [
        RemotePartition(
            remote=remote,
            has_shadow=remote not in ends,
            has_position=(remote not in ends if exactly_once else sources[remote] in in_group),
            was_started=remote not in ends or _was_started(entries[remote.topic], remote),
            end=ends.get(remote, 0),
        )
        for remote in sources
        if remote not in silent  # no leader now: its task judges it later
    ]


def _was_started(entries: Mapping[str, bytes] | Unstable, remote: TopicPartition) -> bool:
    """
    Return True if the offset map has a start record of the partition.

    An open transaction on the map is not waited for. It may belong to a task that died before its
    first commit, and only the tasks of this start end it.
    """
    return not isinstance(entries, Unstable) and start_of(entries, remote) is not None


def _read(
    offsets: CommittedOffsets | ConnectOffsets, partitions: Sequence[TopicPartition]
) -> dict[TopicPartition, GroupOffset]:
    return retrying(partial(offsets.read, partitions))


def _missing_rights(clusters: FlowClusters, on_target: Mapping[str, int]) -> list[str]:
    flow = clusters.flow
    internal = [n for n in (flow.claims_topic, flow.offset_map_topic) if n in on_target]
    found = missing_topic_rights(clusters.target_topics, dict.fromkeys(internal, MIRROR_TO))
    return [f"{right} ({flow.target})" for right in found]


def _denied(
    clusters: FlowClusters, plan: FlowPlan, on_target: Mapping[str, int]
) -> dict[str, list[str]]:
    flow = clusters.flow
    on_source = rights_missing(
        clusters.source_topics, {route.source_topic: MIRROR_FROM for route in plan.routes}
    )
    on_the_other = rights_missing(
        clusters.target_topics,
        {r.remote_topic: MIRROR_TO for r in plan.routes if r.remote_topic in on_target},
    )
    found = {
        route.source_topic: [
            *(f"{right} ({flow.source})" for right in on_source.get(route.source_topic, ())),
            *(f"{right} ({flow.target})" for right in on_the_other.get(route.remote_topic, ())),
        ]
        for route in plan.routes
    }
    return {topic: rights for topic, rights in found.items() if rights}


def _by_source(
    plan: FlowPlan, sources: Mapping[str, MirrorError], remotes: Mapping[str, MirrorError]
) -> dict[str, str]:
    found = {r.source_topic: remotes.get(r.remote_topic) for r in plan.routes} | dict(sources)
    return {topic: str(refusal) for topic, refusal in found.items() if refusal is not None}
