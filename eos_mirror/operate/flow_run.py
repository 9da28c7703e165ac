"""Finds who runs a flow, which partitions its tasks have, and which ones it stopped."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from eos_mirror.core.desired import NOTHING_ORDERED, DesiredState
from eos_mirror.core.ledger import stops_of
from eos_mirror.core.paths_report import PathsReport, decode_paths
from eos_mirror.core.records import TopicPartition
from eos_mirror.core.run_identity import RunIdentity
from eos_mirror.core.side import Side
from eos_mirror.core.states import Fault
from eos_mirror.driver.desired_state import desired_topic
from eos_mirror.driver.flow_clusters import FlowClusters, open_clusters
from eos_mirror.driver.leader_election import leader_of, living
from eos_mirror.errors import NotAuthorized, SourceUnavailable, TargetUnavailable
from eos_mirror.kafka.deadline import Deadline
from eos_mirror.kafka.groups import CommittedOffsets, GroupMember, members_or_none
from eos_mirror.kafka.ledger import read_ledger
from eos_mirror.kafka.topics import Topics
from eos_mirror.settings.clients import target_admin
from eos_mirror.settings.model import FlowSettings

ANSWERS_WITHIN: Final = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class Runs:
    """
    The runs of a flow.

    Attributes:
        leader: The run that mirrors; None if there is none, or it does not say who it is.
        standbys: Number of runs that wait.
    """

    leader: RunIdentity | None
    standbys: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowRun:
    """
    The run of a flow, as the clusters know it.

    Attributes:
        runs: Who mirrors, and who waits.
        is_there: Whether a run mirrors; None if that cannot be found out.
        owned: Source partitions that tasks have; None if that cannot be found out. A task that was
            killed has its partitions until its session is over.
        hidden: Why one of the two cannot be found out.
        assigns: The run assigns partitions itself, so its tasks have all of them.
        faults: Partitions that the run reported as stopped.
        written: By which paths it has written records; None if it has not said that.
        desired: What operators want of the flow, whether or not it runs.
    """

    runs: Runs
    is_there: bool | None
    owned: Collection[TopicPartition] | None
    hidden: str
    faults: Mapping[TopicPartition, Fault]
    desired: DesiredState
    assigns: bool = False
    written: PathsReport | None = None

    def owns(self, partition: TopicPartition) -> bool | None:
        """Return whether a task has a partition; None if that cannot be found out."""
        if self.assigns:
            return self.is_there
        return None if self.owned is None else partition in self.owned


def find_run(settings: FlowSettings, clusters: FlowClusters) -> FlowRun:
    """
    Ask both clusters. A group without an answer is a part of the answer.

    Raises:
        TargetUnavailable: The ledger, or what operators want, could not be read in time.
        ForeignRecord: A record of the ledger is not ours.
    """
    flow = settings.flow
    drivers, no_drivers = _members(clusters.target_topics, flow.drivers_group, Side.TARGET)
    tasks, no_tasks = _tasks(settings, clusters)
    owned = None if tasks is None else {one for member in tasks for one in member.owns}
    members = living(drivers or [])
    runs = _runs(members)
    faults: Mapping[TopicPartition, Fault] = {}
    no_faults = ""
    try:
        faults = {} if runs.leader is None else _faults(settings, runs.leader)
    except NotAuthorized as exc:  # what has failed is not known then
        owned, no_faults = None, str(exc)
    return FlowRun(
        runs=runs,
        is_there=None if drivers is None else bool(members),
        owned=owned,
        hidden=no_drivers or no_tasks or no_faults,
        faults=faults,
        desired=desired_state(settings, clusters),
        assigns=settings.is_source_connector,
        written=None if runs.leader is None else _written(settings, runs.leader),
    )


def _written(settings: FlowSettings, run: RunIdentity) -> PathsReport | None:
    """Return by which paths the run says that it wrote records; None if it cannot be read."""
    flow = settings.flow
    group = CommittedOffsets(target_admin(settings), flow.drivers_group, side=Side.TARGET)
    partition = TopicPartition(flow.claims_topic, 0)
    found = None
    with suppress(NotAuthorized, TargetUnavailable):
        found = group.read([partition], Deadline(ANSWERS_WITHIN)).get(partition)
    report = None if found is None else decode_paths(found.metadata)
    return report if report is not None and report.run == run.encode() else None


def _tasks(settings: FlowSettings, clusters: FlowClusters) -> tuple[list[GroupMember] | None, str]:
    """Return the tasks of a flow as members of its group; a source connector has no group."""
    if settings.is_source_connector:
        return [], ""
    return _members(clusters.source_topics, settings.flow.source_group, Side.SOURCE)


def runs_now(settings: FlowSettings) -> Runs:
    """Return who runs a flow, as far as the target says. Asks only the target."""
    topics = open_clusters(settings).target_topics
    drivers, _ = _members(topics, settings.flow.drivers_group, Side.TARGET)
    return _runs(living(drivers or []))


def _runs(members: Sequence[GroupMember]) -> Runs:
    return Runs(leader_of(members), max(0, len(members) - 1))


def is_run_now(settings: FlowSettings, clusters: FlowClusters) -> bool:
    """Return False if no run of a flow is in the group of the drivers. Asks only the target."""
    drivers, _ = _members(clusters.target_topics, settings.flow.drivers_group, Side.TARGET)
    return drivers is None or bool(living(drivers))


def _members(topics: Topics, group: str, side: Side) -> tuple[list[GroupMember] | None, str]:
    """Return the members of a group, or None and why they are not known."""
    try:
        members = members_or_none(topics.admin, group, side=side, within=ANSWERS_WITHIN)
    except (SourceUnavailable, TargetUnavailable) as exc:
        return None, str(exc)
    return members, "" if members is not None else f"DESCRIBE on group {group} is not granted"


def _faults(settings: FlowSettings, run: RunIdentity) -> dict[TopicPartition, Fault]:
    entries = read_ledger(target_admin(settings), settings.flow)
    return {
        partition: Fault(
            cause=str(stop.details.get("cause", "")),
            reason=str(stop.details.get("reason", "")),
            since=stop.at,
        )
        for partition, stop in stops_of(entries, by=run.process, since=run.started_at).items()
    }


def desired_state(settings: FlowSettings, clusters: FlowClusters) -> DesiredState:
    """
    Return what operators want of a flow now, as far as it may be read.

    A damaged record counts for nothing.

    Raises:
        TargetUnavailable: The target did not answer in time.
    """
    state = NOTHING_ORDERED
    with suppress(NotAuthorized):
        for key, value in desired_topic(settings, clusters).updates():
            with suppress(ValueError):
                state = state.after(key, value)
    return state
