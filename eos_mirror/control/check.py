"""Whether a flow may start: everything that can be found out without writing."""

from contextlib import suppress
from datetime import timedelta

from eos_mirror.control.task_config import deployment, mode_of
from eos_mirror.control.topics import TopicSync
from eos_mirror.core.claims import DeliveryMode
from eos_mirror.errors import ConfigError, NotAuthorized, RetriableError, UnsafeError
from eos_mirror.kafka.access import may_commit_in_group, may_write_transactional_id
from eos_mirror.kafka.groups import group_members
from eos_mirror.kafka.retry import retrying
from eos_mirror.operate.facts import FlowClusters, FlowFacts, gather
from eos_mirror.operate.preflight import judge, rivals
from eos_mirror.runtime.control import EventSink
from eos_mirror.settings import clients
from eos_mirror.settings.filters import TOPIC_FILTER
from eos_mirror.settings.model import FlowSettings

SESSION_MARGIN = timedelta(seconds=3)
PROBE_INCARNATION = "probe"
GRANT = "Grant it with kafka-acls.sh."


def check_flow(
    settings: FlowSettings, clusters: FlowClusters, *, topics: TopicSync, on_event: EventSink
) -> FlowFacts:
    """
    Gather, judge, and try what can only be tried.

    Returns:
        What was found, the plan among it.

    Raises:
        ConfigError: Something to fix, one line each.
        UnsafeError: Something on the clusters that would break the guarantee.
        SourceUnavailable, TargetUnavailable: No answer in time.
    """
    try:
        facts = _gather(settings, clusters, topics)
        verdict = judge(
            facts,
            include=_patterns(settings),
            mode=mode_of(settings),
            deployment=deployment(settings),
            has_company=settings.filters.provenance,
        )
        for text in verdict.warnings:
            on_event("flow.warning", {"reason": text})
        faults = [*verdict.faults, *_group_faults(clusters, mode_of(settings))]
        if faults:
            raise ConfigError(*faults)
        if verdict.dangers:
            raise UnsafeError("\n".join(verdict.dangers))
        topics.rehearse(facts.plan)
    except NotAuthorized as exc:
        raise ConfigError(f"{settings.flow}: not authorized: {exc}. {GRANT}") from exc
    return facts


def _patterns(settings: FlowSettings) -> list[str]:
    """Of `topics`, if they decide."""
    if settings.filters.topic_class != TOPIC_FILTER:
        return []
    return [pattern.pattern for pattern in settings.topics]


def _gather(settings: FlowSettings, clusters: FlowClusters, topics: TopicSync) -> FlowFacts:
    """Members of an earlier run that ended stay in the group for one session: wait for that."""
    mode = mode_of(settings)
    facts = gather(clusters, topics.plan, mode=mode, within=settings.admin_timeout)
    if not rivals(facts.source_members, deployment(settings)):
        return facts

    def until_they_left() -> None:
        members = group_members(
            clusters.source_topics.admin, settings.flow.source_group, source=True
        )
        if rivals(members, deployment(settings)):
            raise RetriableError("members of another configuration are left")

    with suppress(RetriableError):  # they stayed: that is for the judge
        retrying(until_they_left, within=settings.session_timeout + SESSION_MARGIN)
    return gather(clusters, topics.plan, mode=mode, within=settings.admin_timeout)


def _group_faults(clusters: FlowClusters, mode: DeliveryMode) -> list[str]:
    flow = clusters.flow
    groups = [(clusters.source_topics.admin, flow.source_group, flow.source)]
    if mode is DeliveryMode.EXACTLY_ONCE:
        groups.append((clusters.target_topics.admin, flow.shadow_group, flow.target))
    return [
        f"{flow}: not authorized: READ on group {group} ({alias}). {GRANT}"
        for admin, group, alias in groups
        if not may_commit_in_group(admin, group)
    ]


def check_transactional_id(settings: FlowSettings) -> None:
    """
    Try a transactional id. The last check of all flows: where it passes, the target notes the id.

    Raises:
        ConfigError: Write on our transactional ids is missing.
    """
    flow = settings.flow
    probe = flow.transactional_id(PROBE_INCARNATION)
    if not may_write_transactional_id(clients.target_producer(settings), probe):
        raise ConfigError(
            f"{flow}: not authorized: WRITE on transactional ids {flow.transactional_id('')}* "
            f"({flow.target}). Grant it, prefixed, with kafka-acls.sh."
        )
