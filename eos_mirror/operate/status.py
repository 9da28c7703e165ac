"""Reads the state of a flow from its clusters, whether or not the flow runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from eos_mirror.core.claims import DeliveryMode
from eos_mirror.core.lag import begin_at_the_start
from eos_mirror.core.ledger import LedgerEntry
from eos_mirror.core.plan import FlowPlan
from eos_mirror.core.records import TopicPartition
from eos_mirror.core.topic_configs import Changes
from eos_mirror.driver.cluster_facts import FlowClusters
from eos_mirror.driver.flow import open_clusters
from eos_mirror.driver.topic_sync import TopicSync
from eos_mirror.kafka.ledger import read_ledger
from eos_mirror.kafka.open_transactions import OpenTransaction, open_transactions
from eos_mirror.settings.clients import mode_of, source_admin, target_admin
from eos_mirror.settings.model import FlowSettings

OPEN_FOR = timedelta(seconds=2)
"""A transaction is shown if it stays open for this long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStatus:
    """
    One partition that the flow mirrors, or will mirror.

    Attributes:
        position: Upstream offset to resume from; None if nothing was committed yet, or if a
            commit is undecided now.
        end: High watermark of the source; None if no leader answers.
        start: Where the log of the source starts, if nothing in it is mirrored; otherwise None.
        reason: Why `end` is None.
        open_transaction: What hides the last offsets; None if nothing does.
    """

    source: TopicPartition
    remote: TopicPartition
    position: int | None
    end: int | None
    start: int | None = None
    reason: str = ""
    open_transaction: OpenTransaction | None = None

    @property
    def lag(self) -> int | None:
        """Return the offsets up to the end that are not mirrored; None if that is unknown."""
        reached = self.position if self.start is None else self.start
        return None if reached is None or self.end is None else self.end - reached

    @property
    def was_replaced(self) -> bool:
        """Return whether the log of the source is not the one that was mirrored."""
        return self.position is not None and self.start is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowStatus:
    """
    The state of one flow.

    Attributes:
        mode: The mode that it runs in; None if it never ran.
        partitions: By topic and number.
        drift: Config changes that remote topics need to equal their source topics, even if
            config sync is disabled; None if a right to describe configs is missing.
        refused: Why a source topic is not mirrored, by topic, as far as this is known without
            asking the target to create anything.
        left_out: Selected source topics that came from the target, and are not mirrored back.
    """

    flow: str
    mode: DeliveryMode | None
    partitions: Sequence[PartitionStatus]
    drift: Mapping[str, Changes] | None
    refused: Mapping[str, str]
    left_out: Sequence[str]

    @property
    def lag(self) -> int:
        """Return the lag of all partitions together, as far as it is known."""
        return sum(one.lag or 0 for one in self.partitions)


def flow_status(settings: FlowSettings, *, beside: Sequence[FlowSettings] = ()) -> FlowStatus:
    """
    Read the state of a flow from both clusters. Writes nothing.

    Args:
        beside: The other configured flows: they must not mirror a topic back to itself.

    Raises:
        SourceUnavailable, TargetUnavailable: A cluster did not answer in time.
        NotAuthorized: Not even Describe is allowed.
    """
    clusters = open_clusters(settings)
    flow = settings.flow
    sync = TopicSync(settings, clusters, on_event=_nobody)
    sync.others = [TopicSync(one, clusters, on_event=_nobody) for one in beside]  # for their names
    plan, on_target = _plan(settings, clusters, sync)
    plan = sync.without_deleted(plan)
    remotes = {
        TopicPartition(route.source_topic, p): TopicPartition(route.remote_topic, p)
        for route in sorted(plan.routes, key=lambda route: route.source_topic)
        for p in range(route.partitions)
    }
    known = [remote for remote in remotes.values() if remote.partition < _count(on_target, remote)]
    has_run = flow.claims_topic in on_target
    mode = (clusters.mode.read() or mode_of(settings)) if has_run else None
    positions = _positions(clusters, mode, remotes, known)
    metadata = clusters.source_metadata
    ends, reasons = metadata.high_watermarks_or_reasons(list(remotes))
    unmirrored = begin_at_the_start(positions, ends, start_position=settings.start_position)
    starts, unknown = metadata.starts_or_reasons(unmirrored)
    hidden = open_transactions(metadata, source_admin(settings), list(ends), within=OPEN_FOR)
    return FlowStatus(
        flow=str(flow),
        mode=mode,
        partitions=[
            PartitionStatus(
                source=source,
                remote=remote,
                position=positions.get(source),
                end=ends.get(source) if source not in unknown else None,
                start=starts.get(source),
                reason=str(reasons.get(source, unknown.get(source, ""))),
                open_transaction=hidden.get(source),
            )
            for source, remote in remotes.items()
        ],
        drift=_drift(sync, plan, on_target),
        refused=plan.refused,
        left_out=plan.left_out,
    )


def routes_of(settings: FlowSettings, clusters: FlowClusters) -> dict[str, str]:
    """
    Return remote topic by source topic, if the remote topic exists.

    Raises:
        SourceUnavailable, TargetUnavailable, NotAuthorized: As `flow_status`.
    """
    sync = TopicSync(settings, clusters, on_event=_nobody)
    plan, on_target = _plan(settings, clusters, sync)
    return {r.source_topic: r.remote_topic for r in plan.routes if r.remote_topic in on_target}


def _plan(
    settings: FlowSettings, clusters: FlowClusters, sync: TopicSync
) -> tuple[FlowPlan, Mapping[str, int]]:
    """Return the flow's plan, and the partition counts of the target's topics."""
    on_source = clusters.source_topics.list(within=settings.admin_timeout)
    on_target = clusters.target_topics.list(within=settings.admin_timeout)
    return sync.plan(on_source, on_target), on_target


def _drift(
    sync: TopicSync, plan: FlowPlan, on_target: Mapping[str, int]
) -> dict[str, Changes] | None:
    routes = {r.source_topic: r.remote_topic for r in plan.routes if r.remote_topic in on_target}
    drift, unseen = sync.differences(routes)
    return None if unseen else drift


def _count(topics: Mapping[str, int], remote: TopicPartition) -> int:
    return topics.get(remote.topic, 0)


def _positions(
    clusters: FlowClusters,
    mode: DeliveryMode | None,
    remotes: Mapping[TopicPartition, TopicPartition],
    known: Sequence[TopicPartition],
) -> dict[TopicPartition, int]:
    if mode is DeliveryMode.AT_LEAST_ONCE:
        offsets = clusters.source_offsets.read(list(remotes))
        return {source: one.position.next_offset for source, one in offsets.items()}
    shadows = clusters.shadow_offsets.read(known) if mode is not None else {}
    return {
        source: shadows[remote].position.next_offset
        for source, remote in remotes.items()
        if remote in shadows
    }


def _nobody(name: str, fields: Mapping[str, Any]) -> None:
    """Ignore the event."""


def ledger_entries(settings: FlowSettings) -> Sequence[LedgerEntry]:
    """
    Return the ledger of a flow, oldest entry first.

    Raises:
        TargetUnavailable: The target did not answer in time.
        ForeignRecord: A record of the ledger topic was not written by us.
    """
    return read_ledger(target_admin(settings), settings.flow)
