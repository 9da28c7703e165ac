"""Reads the state of a flow from its clusters, whether or not the flow runs."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from eos_mirror.core.claims import DeliveryMode
from eos_mirror.core.desired import LimitOrder
from eos_mirror.core.ledger import LedgerEntry
from eos_mirror.core.plan import FlowPlan
from eos_mirror.core.records import TopicPartition
from eos_mirror.core.states import State, flow_state
from eos_mirror.core.topic_configs import Changes
from eos_mirror.driver.copy_limits import too_small
from eos_mirror.driver.flow_clusters import FlowClusters, open_clusters
from eos_mirror.driver.topic_sync import TopicSync
from eos_mirror.kafka.ledger import read_ledger
from eos_mirror.operate.deleted_topics import copies_of_deleted_topics
from eos_mirror.operate.flow_run import FlowRun, find_run
from eos_mirror.operate.partition_status import PartitionStatus, partition_statuses
from eos_mirror.settings.clients import mode_of, target_admin
from eos_mirror.settings.fingerprint import fingerprint
from eos_mirror.settings.model import FlowSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowStatus:
    """
    The state of one flow.

    Attributes:
        mode: The mode that it runs in; None if it never ran.
        run: Who mirrors it.
        fingerprint: Of its configuration in the file.
        partitions: By topic and number.
        drift: Config changes that remote topics need to equal their source topics, even if
            config sync is disabled; None if a right to describe configs is missing.
        syncs_configs: Whether config sync is enabled.
        refused: Why a source topic is not mirrored, by topic, as far as this is known without
            asking the target to create anything.
        left_out: Selected source topics that came from the target, and are not mirrored back.
        deleted: Remote topic by source topic, for mirrored topics that the source no longer has.
    """

    flow: str
    mode: DeliveryMode | None
    run: FlowRun
    fingerprint: str
    partitions: Sequence[PartitionStatus]
    drift: Mapping[str, Changes] | None
    syncs_configs: bool
    refused: Mapping[str, str]
    left_out: Sequence[str]
    deleted: Mapping[str, str]

    @property
    def state(self) -> State:
        """Return the gravest state of its partitions."""
        return flow_state(
            (one.condition.state for one in self.partitions),
            has_run=self.run.is_there,
            refused=bool(self.refused),
        )

    @property
    def limits(self) -> dict[str | None, LimitOrder]:
        """Return the limits that count: None has the one that all topics share; then by topic."""
        return self.run.desired.limited({one.source.topic for one in self.partitions})

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
    sync = TopicSync(settings, clusters, on_event=_ignore)
    sync.others = [TopicSync(one, clusters, on_event=_ignore) for one in beside]  # for their names
    on_source, on_target = _topics(settings, clusters)
    plan = sync.without_deleted(sync.plan(on_source, on_target))
    run = find_run(settings, clusters)
    if run.owned is not None and not (run.assigns and run.is_there):
        plan = _fitting(plan, clusters, sync, held={one.topic for one in run.owned})
    remotes = {
        TopicPartition(route.source_topic, p): TopicPartition(route.remote_topic, p)
        for route in sorted(plan.routes, key=lambda route: route.source_topic)
        for p in range(route.partitions)
    }
    has_run = flow.claims_topic in on_target
    mode = (clusters.mode.read() or mode_of(settings)) if has_run else None
    existing = {one for one in remotes.values() if one.partition < on_target.get(one.topic, 0)}
    return FlowStatus(
        flow=str(flow),
        mode=mode,
        run=run,
        fingerprint=fingerprint(settings),
        partitions=partition_statuses(
            settings, clusters, remotes, existing=existing, mode=mode, run=run
        ),
        drift=_drift(sync, plan, on_target),
        syncs_configs=settings.sync_configs,
        refused=plan.refused,
        left_out=plan.left_out,
        deleted=copies_of_deleted_topics(
            clusters, sync.mapping, on_source=on_source, on_target=on_target
        ),
    )


def routes_of(settings: FlowSettings, clusters: FlowClusters) -> dict[str, str]:
    """
    Return remote topic by source topic, if the remote topic exists.

    Raises:
        SourceUnavailable, TargetUnavailable, NotAuthorized: As `flow_status`.
    """
    sync = TopicSync(settings, clusters, on_event=_ignore)
    on_source, on_target = _topics(settings, clusters)
    plan = sync.plan(on_source, on_target)
    return {r.source_topic: r.remote_topic for r in plan.routes if r.remote_topic in on_target}


def _topics(
    settings: FlowSettings, clusters: FlowClusters
) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """Return the partition counts of the topics of the source and of the target."""
    on_source = clusters.source_topics.list(within=settings.admin_timeout)
    return on_source, clusters.target_topics.list(within=settings.admin_timeout)


def _fitting(
    plan: FlowPlan, clusters: FlowClusters, sync: TopicSync, *, held: Set[str]
) -> FlowPlan:
    """Refuse the topics that no task holds and whose copies accept too little, as the run does."""
    fresh = {route.source_topic for route in plan.routes} - held
    source, target = clusters.source_topics, clusters.target_topics
    return plan.refusing(
        too_small(plan.only(fresh), source=source, target=target, sync=sync.config_sync)
    )


def _drift(
    sync: TopicSync, plan: FlowPlan, on_target: Mapping[str, int]
) -> dict[str, Changes] | None:
    routes = {r.source_topic: r.remote_topic for r in plan.routes if r.remote_topic in on_target}
    drift, unseen = sync.differences(routes)
    return None if unseen else drift


def _ignore(name: str, fields: Mapping[str, Any]) -> None:
    """Ignore the event."""


def ledger_entries(settings: FlowSettings) -> Sequence[LedgerEntry]:
    """
    Return the ledger of a flow, oldest entry first.

    Raises:
        TargetUnavailable: The target did not answer in time.
        ForeignRecord: A record of the ledger topic was not written by us.
    """
    return read_ledger(target_admin(settings), settings.flow)
