"""Reads positions, ends and states of the partitions of a flow from its clusters."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from eos_mirror.core.claims import DeliveryMode
from eos_mirror.core.desired import Order, Wanted
from eos_mirror.core.lag import begin_at_the_start, of_an_earlier_topic
from eos_mirror.core.metadata import topic_id_of
from eos_mirror.core.records import TopicPartition
from eos_mirror.core.states import Condition, Fault, PartitionFacts, condition_of
from eos_mirror.driver.flow_clusters import FlowClusters
from eos_mirror.kafka.open_transactions import OpenTransaction, open_transactions
from eos_mirror.operate.flow_run import FlowRun
from eos_mirror.ports import GroupOffset, KnownTopic
from eos_mirror.settings.clients import source_admin
from eos_mirror.settings.model import FlowSettings

OPEN_FOR: Final = timedelta(seconds=2)
"""A transaction is shown if it stays open for this long."""

CREATED_AGAIN: Final = "nothing of it is mirrored: the topic was deleted and created again"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStatus:
    """
    One partition that the flow mirrors, or will mirror.

    Attributes:
        position: Upstream offset to resume from; None if nothing was committed yet, or if a
            commit is undecided now.
        end: High watermark of the source; None if no leader answers.
        start: Where the log of the source starts, if nothing in it is mirrored; otherwise None.
        open_transaction: What hides the last offsets; None if nothing does.
        condition: Its state, and what keeps it from being mirrored.
    """

    source: TopicPartition
    remote: TopicPartition
    position: int | None
    end: int | None
    start: int | None = None
    open_transaction: OpenTransaction | None = None
    condition: Condition

    @property
    def lag(self) -> int | None:
        """Return the offsets up to the end that are not mirrored; None if that is unknown."""
        reached = self.position if self.start is None else self.start
        return None if reached is None or self.end is None else self.end - reached

    @property
    def was_replaced(self) -> bool:
        """Return whether the log of the source is not the one that was mirrored."""
        return self.position is not None and self.start is not None


def partition_statuses(
    settings: FlowSettings,
    clusters: FlowClusters,
    remotes: Mapping[TopicPartition, TopicPartition],
    *,
    existing: Collection[TopicPartition],
    mode: DeliveryMode | None,
    run: FlowRun,
) -> list[PartitionStatus]:
    """
    Return the status of each source partition, in the order of `remotes`.

    Args:
        remotes: Remote partition by source partition.
        existing: Those remote partitions that exist.
        mode: The mode that the flow runs in; None if it never ran.

    Raises:
        SourceUnavailable, TargetUnavailable: A cluster did not answer in time.
        NotAuthorized: Describe is not allowed.
    """
    seen = _see(settings, clusters, remotes, existing=existing, mode=mode)
    ordered = run.desired.not_running({source.topic for source in remotes})
    return [
        _status(source, remote, seen, run, ordered.get(source.topic))
        for source, remote in remotes.items()
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """
    What both clusters say, by source partition.

    Attributes:
        unseen: Why the end of a partition, or its start, is not known.
        starts: Where the logs start of which nothing is mirrored.
        replaced: Partitions whose position is of an earlier topic.
    """

    positions: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]
    unseen: Mapping[TopicPartition, object]
    starts: Mapping[TopicPartition, int]
    replaced: Collection[TopicPartition]
    hidden: Mapping[TopicPartition, OpenTransaction]
    leaderless: Mapping[TopicPartition, str]


def _see(
    settings: FlowSettings,
    clusters: FlowClusters,
    remotes: Mapping[TopicPartition, TopicPartition],
    *,
    existing: Collection[TopicPartition],
    mode: DeliveryMode | None,
) -> _Seen:
    metadata, flow = clusters.source_metadata, settings.flow
    offsets = _offsets(clusters, mode, remotes, existing)
    positions = {source: one.position.next_offset for source, one in offsets.items()}
    ends, reasons = metadata.high_watermarks_or_reasons(list(remotes))
    topics = metadata.topics(sorted({source.topic for source in remotes}))
    replaced = of_an_earlier_topic(
        {source: topic_id_of(one.metadata) for source, one in offsets.items()},
        {name: topic.topic_id for name, topic in topics.items()},
    )
    unmirrored = begin_at_the_start(
        positions, ends, start_position=settings.start_position, replaced=replaced
    )
    starts, unknown = metadata.starts_or_reasons(unmirrored)
    copies = clusters.target.topics(sorted({remote.topic for remote in existing}))
    return _Seen(
        positions=positions,
        ends={source: end for source, end in ends.items() if source not in unknown},
        unseen={**reasons, **unknown},
        starts=starts,
        replaced=replaced,
        hidden=open_transactions(metadata, source_admin(settings), list(ends), within=OPEN_FOR),
        leaderless={
            **_leaderless(remotes.items(), copies, flow.target),
            **_leaderless(((source, source) for source in remotes), topics, flow.source),
        },
    )


def _status(
    source: TopicPartition,
    remote: TopicPartition,
    seen: _Seen,
    run: FlowRun,
    order: Order | None,
) -> PartitionStatus:
    position, end = seen.positions.get(source), seen.ends.get(source)
    transaction = seen.hidden.get(source)
    is_held_up = transaction is not None and position == transaction.since
    facts = PartitionFacts(
        has_run=run.is_there,
        is_owned=run.owns(source),
        hidden=run.hidden,
        fault=run.faults.get(source)
        or _lost(position, end, was_created_again=source in seen.replaced),
        stopped=str(order) if order and order.wanted is Wanted.STOPPED else "",
        paused=str(order) if order and order.wanted is Wanted.PAUSED else "",
        obstacle=seen.leaderless.get(source, str(transaction) if is_held_up else ""),
        unseen=str(seen.unseen.get(source, "")),
        has_position=position is not None or end == 0,
    )
    return PartitionStatus(
        source=source,
        remote=remote,
        position=position,
        end=end,
        start=seen.starts.get(source),
        open_transaction=transaction,
        condition=condition_of(facts),
    )


def _offsets(
    clusters: FlowClusters,
    mode: DeliveryMode | None,
    remotes: Mapping[TopicPartition, TopicPartition],
    existing: Collection[TopicPartition],
) -> dict[TopicPartition, GroupOffset]:
    """Return the committed offsets by source partition."""
    if mode is None:
        return {}
    if mode in (DeliveryMode.AT_LEAST_ONCE, DeliveryMode.SOURCE):
        return clusters.offsets_by_source(mode).read(list(remotes))
    shadows = clusters.shadow_offsets.read([one for one in remotes.values() if one in existing])
    return {source: shadows[remote] for source, remote in remotes.items() if remote in shadows}


def _leaderless(
    partitions: Iterable[tuple[TopicPartition, TopicPartition]],
    topics: Mapping[str, KnownTopic],
    alias: str,
) -> dict[TopicPartition, str]:
    """
    Return what partitions without a leader wait for.

    Args:
        partitions: Source partitions, each with the partition that must have a leader.
    """
    return {
        source: f"{needed} has no leader on {alias}"
        for source, needed in partitions
        if needed.topic in topics and needed.partition in topics[needed.topic].leaderless
    }


def _lost(position: int | None, end: int | None, *, was_created_again: bool) -> Fault | None:
    if was_created_again:
        return Fault(cause="SourceDataLost", reason=CREATED_AGAIN)
    if position is None or end is None or position <= end:
        return None
    reason = (
        f"nothing of it is mirrored: the position is {position}, but the log ends at {end}; the "
        f"topic was created again, or lost its end"
    )
    return Fault(cause="SourceDataLost", reason=reason)
