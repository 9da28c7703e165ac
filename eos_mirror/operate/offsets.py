"""Shows where a flow is in each partition."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from eos_mirror.core.claims import Claim, DeliveryMode, parse_claim
from eos_mirror.core.map_records import segments_of, start_of
from eos_mirror.core.records import TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.driver.flow_clusters import open_clusters
from eos_mirror.kafka.metadata import ClusterMetadata
from eos_mirror.kafka.offset_maps import whole_map
from eos_mirror.kafka.topic_reader import read_compacted
from eos_mirror.operate.status import flow_status
from eos_mirror.settings.clients import mode_of, target_admin
from eos_mirror.settings.model import FlowSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionOffsets:
    """
    Where a flow is in one partition.

    Attributes:
        next_offset: Source offset to resume from; None if nothing was committed yet.
        stable: Last stable offset of the source; None if no leader answers.
        end: High watermark of the source; None if no leader answers.
        map_start: First source offset that the offset map covers; None without one.
        claim: The writer of the remote partition; None if there is none now.
    """

    source: TopicPartition
    remote: TopicPartition
    next_offset: int | None
    stable: int | None
    end: int | None
    lag: int | None
    map_start: int | None
    claim: Claim | None


def flow_offsets(settings: FlowSettings, *, topics: str) -> list[PartitionOffsets]:
    """
    Return the offsets of each partition of the topics that a pattern matches. Writes nothing.

    Raises:
        SourceUnavailable, TargetUnavailable: A cluster did not answer in time.
        NotAuthorized: A right is missing.
        ForeignRecord: A record of the claims topic is not ours.
    """
    clusters = open_clusters(settings)
    statuses = [
        one
        for one in flow_status(settings).partitions
        if re.fullmatch(topics, one.source.topic) is not None
    ]
    stable, _ = clusters.source_metadata.ends_or_reasons([one.source for one in statuses])
    claims = _claims(settings)
    starts = _map_starts(settings, [one.remote for one in statuses])
    return [
        PartitionOffsets(
            source=one.source,
            remote=one.remote,
            next_offset=one.position,
            stable=stable.get(one.source),
            end=one.end,
            lag=one.lag,
            map_start=starts.get(one.remote),
            claim=claims.get(one.remote),
        )
        for one in statuses
    ]


def _claims(settings: FlowSettings) -> dict[TopicPartition, Claim]:
    """Return the newest live claim by remote partition."""
    flow = settings.flow
    found: dict[TopicPartition, Claim] = {}
    records = read_compacted(target_admin(settings), flow.claims_topic, group=flow.shadow_group)
    for key, value in records.items():
        try:
            claim = parse_claim(key, value.decode(errors="replace"))
        except ValueError:  # the record of the mode
            continue
        found[claim.remote] = claim
    return found


def _map_starts(
    settings: FlowSettings, remotes: Sequence[TopicPartition]
) -> dict[TopicPartition, int]:
    if mode_of(settings) is not DeliveryMode.EXACTLY_ONCE:
        return {}
    target = target_admin(settings)
    entries = whole_map(ClusterMetadata(target, side=Side.TARGET), settings.flow, target)
    found: dict[TopicPartition, int] = {}
    for remote in remotes:
        segments, start = segments_of(entries, remote), start_of(entries, remote)
        if segments:
            found[remote] = segments[0].upstream_start
        elif start is not None:
            found[remote] = start.next_offset
    return found
