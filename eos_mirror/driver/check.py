"""Checks whether a flow may start, without writing anything to a cluster."""

from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

from eos_mirror.core.claims import DeliveryMode
from eos_mirror.core.copy_limits import ConfigSync, find_compacted_copies, refuse_small_limits
from eos_mirror.core.flow import Flow
from eos_mirror.core.plan import FlowPlan
from eos_mirror.core.side import Side
from eos_mirror.core.topic_configs import LIMIT
from eos_mirror.driver.cluster_facts import FlowFacts, gather
from eos_mirror.driver.coordinator_check import Asked, check_coordinators
from eos_mirror.driver.flow_clusters import FlowClusters
from eos_mirror.driver.preflight import GRANT, judge, rivals
from eos_mirror.driver.quarantine import quarantine_faults
from eos_mirror.driver.topic_sync import TopicSync
from eos_mirror.errors import ConfigError, NotAuthorized, RetriableError, UnsafeError
from eos_mirror.kafka.authorization import (
    largest_message,
    longest_transaction,
    may_commit_in_group,
    may_write_transactional_id,
    session_range,
)
from eos_mirror.kafka.coordinators import GROUPS, TRANSACTIONS
from eos_mirror.kafka.deadline import Deadline
from eos_mirror.kafka.groups import group_members
from eos_mirror.kafka.retry import retrying
from eos_mirror.kafka.topics import Topics
from eos_mirror.runtime.control import EventSink
from eos_mirror.settings import clients
from eos_mirror.settings.clients import deployment, mode_of
from eos_mirror.settings.filters import TOPIC_FILTER
from eos_mirror.settings.model import FlowSettings

SESSION_MARGIN = timedelta(seconds=3)
NEVER_REFUSED = timedelta(minutes=1)
"""Default `transaction.timeout.ms` of Kafka's clients; every broker is assumed to allow it."""


def check_flow(
    settings: FlowSettings,
    clusters: FlowClusters,
    *,
    topics: TopicSync,
    on_event: EventSink,
    on_standby: bool = False,
    creates_nothing: bool = False,
) -> FlowFacts:
    """
    Gather facts, judge them, and try the requests that only a cluster can judge.

    Args:
        on_standby: Tasks of another configuration may run: this run waits for their end.
        creates_nothing: Send no coordinator a request that makes the cluster create its topic, and
            count an outage of a coordinator as a fault. A start waits for its end instead.

    Returns:
        The facts, with a plan that excludes the topics that would be refused.

    Raises:
        ConfigError: The configuration or a right must be fixed; one line for each fault.
        UnsafeError: The state of the clusters would break the guarantee.
        SourceUnavailable, TargetUnavailable: The cluster did not answer in time.
    """
    try:
        untouched = _coordinators(settings, clusters, on_event, creates_nothing=creates_nothing)
        facts = _gather(settings, clusters, topics, on_standby=on_standby, untouched=untouched)
        plan = facts.plan
        adopts = _adopts(settings, facts)
        try:
            verdict = judge(
                replace(facts, noted_mode=mode_of(settings)) if adopts else facts,
                include=_patterns(settings),
                mode=mode_of(settings),
                deployment=deployment(settings),
                has_company=settings.filters.provenance or adopts,
            )
            odd = topics.odd_heartbeats(facts.source_topics)
            for text in (*verdict.warnings, *_compacted(facts, topics), *odd):
                on_event("flow.warning", {"reason": text})
            faults = [*verdict.faults, *_tried(settings, clusters, untouched)]
            if faults:
                raise ConfigError(*faults)
            if verdict.dangers:
                raise UnsafeError("\n".join(verdict.dangers))
            plan = facts.plan.refusing(verdict.refused)
            topics.trust(route.source_topic for route in plan.routes)
            plan = _fitting(topics.rehearse(plan), facts, clusters, sync=topics.config_sync)
        finally:
            topics.report(plan)  # once, or an earlier check's reasons would be logged again
    except NotAuthorized as exc:
        raise ConfigError(f"{settings.flow}: not authorized: {exc}. {GRANT}") from exc
    return replace(facts, plan=plan)


def _adopts(settings: FlowSettings, facts: FlowFacts) -> bool:
    """Return whether the start takes copies over before its tasks start."""
    takes_turns = settings.is_source_connector and settings.exactly_once
    if takes_turns and facts.noted_mode in (None, DeliveryMode.EXACTLY_ONCE):
        return True
    return settings.adopts_source and facts.noted_mode is DeliveryMode.SOURCE


def _coordinators(
    settings: FlowSettings,
    clusters: FlowClusters,
    on_event: EventSink,
    *,
    creates_nothing: bool,
) -> Collection[Asked]:
    """
    Check the coordinators; return those that get no request.

    Raises:
        ConfigError: A coordinator cannot work.
    """
    found = check_coordinators(clusters, settings)
    faults = [*found.faults, *(found.outages if creates_nothing else ())]
    if faults:
        raise ConfigError(*faults)
    for text in found.outages:
        on_event("flow.warning", {"reason": text})
    return found.missing if creates_nothing else ()


def _fitting(
    plan: FlowPlan, facts: FlowFacts, clusters: FlowClusters, *, sync: ConfigSync
) -> FlowPlan:
    """
    Refuse topics whose copies accept only smaller messages, now or once they are created.

    The start creates and grows these copies anyway: their limits may be raised while it runs.
    """
    remote, created = dict(facts.remote_configs), plan.to_create
    if created and sync.excludes(LIMIT):
        default = largest_message(clusters.target_topics.admin)
        if default is not None:
            remote |= {route.remote_topic: {LIMIT: str(default)} for route in created}
    small = refuse_small_limits(plan, sync, source=facts.source_configs, remote=remote)
    return replace(plan.refusing(small), to_create=created, too_small=plan.too_small)


def _compacted(facts: FlowFacts, topics: TopicSync) -> tuple[str, ...]:
    return find_compacted_copies(
        facts.plan, topics.config_sync, source=facts.source_configs, remote=facts.remote_configs
    )


def _patterns(settings: FlowSettings) -> list[str]:
    """Return the patterns of `topics`; none if another topic filter decides."""
    if settings.filters.topic_class != TOPIC_FILTER:
        return []
    return [pattern.pattern for pattern in settings.topics]


def _gather(
    settings: FlowSettings,
    clusters: FlowClusters,
    topics: TopicSync,
    *,
    on_standby: bool,
    untouched: Collection[Asked],
) -> FlowFacts:
    """
    Gather the facts, after the members of an earlier run have left the source group.

    They stay in the group for one session timeout after that run has ended.
    """
    mode = mode_of(settings)
    groupless = {one.side for one in untouched if one.topic is GROUPS}
    if settings.is_source_connector:
        groupless.add(Side.SOURCE)
    facts = gather(
        clusters,
        topics.plan,
        mode=mode,
        within=settings.admin_timeout,
        groupless=groupless,
    )
    if on_standby:
        return replace(facts, source_members=[])
    if not rivals(facts.source_members, deployment(settings)):
        return facts

    def until_they_left(_: Deadline) -> None:
        members = group_members(
            clusters.source_topics.admin, settings.flow.source_group, side=Side.SOURCE
        )
        if rivals(members, deployment(settings)):
            raise RetriableError("members of another configuration remain")

    with suppress(RetriableError):  # they stayed: `judge` decides
        retrying(until_they_left, within=settings.session_timeout + SESSION_MARGIN)
    return gather(clusters, topics.plan, mode=mode, within=settings.admin_timeout)


def _tried(
    settings: FlowSettings, clusters: FlowClusters, untouched: Collection[Asked]
) -> list[str]:
    """Return faults that only a request shows. Each request is refused in any case."""
    flow, source, target = settings.flow, clusters.source_topics, clusters.target_topics
    checks: dict[Asked | str, Callable[[], str]] = {}
    if not settings.is_source_connector:
        checks = {
            Asked(Side.SOURCE, GROUPS): lambda: _group_fault(
                flow, source, flow.source_group, flow.source
            ),
            "session": lambda: _session_fault(settings, source),
        }
    if settings.exactly_once:
        checks |= {
            Asked(Side.TARGET, GROUPS): lambda: _group_fault(
                flow, target, flow.shadow_group, flow.target
            ),
            Asked(Side.TARGET, TRANSACTIONS): lambda: _transactional_id_fault(settings),
            "timeout": lambda: _timeout_fault(settings, target),
        }
    faults = list(quarantine_faults(settings, clusters))
    wanted = [check for what, check in checks.items() if what not in untouched]
    with ThreadPoolExecutor() as pool:  # the first answers of a new cluster are slow
        return faults + [fault for fault in pool.map(lambda check: check(), wanted) if fault]


def _group_fault(flow: Flow, topics: Topics, group: str, alias: str) -> str:
    if may_commit_in_group(topics.admin, group):
        return ""
    return f"{flow}: not authorized: READ on group {group} ({alias}). {GRANT}"


def _transactional_id_fault(settings: FlowSettings) -> str:
    flow = settings.flow
    if may_write_transactional_id(clients.target_producer(settings), flow.probe_id):
        return ""
    return (
        f"{flow}: not authorized: WRITE on transactional ids {flow.transactional_id('')}* "
        f"({flow.target}). Grant it, prefixed, with kafka-acls.sh."
    )


def _timeout_fault(settings: FlowSettings, target: Topics) -> str:
    wanted, flow = settings.transaction_timeout, settings.flow
    if wanted <= NEVER_REFUSED:
        return ""
    longest = longest_transaction(target.admin)
    if longest is None or wanted <= longest:
        return ""
    most = int(longest / timedelta(milliseconds=1))
    return (
        f"{flow}: transaction.timeout.ms={int(wanted / timedelta(milliseconds=1))} is more than "
        f"{flow.target} allows. Set it to at most {most}, or raise transaction.max.timeout.ms of "
        f"its brokers."
    )


def _session_fault(settings: FlowSettings, source: Topics) -> str:
    wanted, flow = settings.session_timeout, settings.flow
    allowed = session_range(source.admin)
    if allowed is None or allowed[0] <= wanted <= allowed[1]:
        return ""
    wanted_ms, least, most = (int(one / timedelta(milliseconds=1)) for one in (wanted, *allowed))
    return (
        f"{flow}: {flow.source} does not allow session.timeout.ms={wanted_ms}. Set it to {least} "
        f"to {most}, or change group.min.session.timeout.ms or group.max.session.timeout.ms of "
        f"its brokers."
    )
