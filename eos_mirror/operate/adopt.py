"""Switches a flow's delivery mode: checks that nothing runs, carries positions over, records it."""

from contextlib import suppress
from dataclasses import dataclass

from eos_mirror.core.claims import DeliveryMode
from eos_mirror.core.ledger import Kind
from eos_mirror.core.records import TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.driver.check import SESSION_MARGIN
from eos_mirror.driver.cluster_facts import FlowFacts, gather
from eos_mirror.driver.flow_clusters import FlowClusters, open_clusters
from eos_mirror.driver.lane import lane_of
from eos_mirror.driver.ledger import note
from eos_mirror.driver.mm2_workers import source_connector
from eos_mirror.driver.preflight import handed_over
from eos_mirror.driver.topic_sync import TopicSync
from eos_mirror.errors import ConfigError, RetriableError, UnsafeError
from eos_mirror.kafka.claims import KafkaClaimsLog
from eos_mirror.kafka.deadline import Deadline
from eos_mirror.kafka.groups import group_members
from eos_mirror.kafka.retry import retrying
from eos_mirror.operate.carry_positions import Switch
from eos_mirror.operate.flow_run import is_run_now
from eos_mirror.runtime.control import EventSink
from eos_mirror.settings.clients import claims_consumer, claims_producer, mode_of, task_config
from eos_mirror.settings.model import FlowSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopted:
    """
    The result of a switch.

    Attributes:
        mode: The flow's mode now.
        partitions: Number of carried positions; None if the flow had that mode already.
    """

    mode: DeliveryMode
    partitions: int | None


def adopt(settings: FlowSettings, *, on_event: EventSink, leads: bool = False) -> Adopted:
    """
    Switch a flow to the mode that is configured, with the positions that are stored.

    It may be interrupted and started again: the mode is recorded last.

    Args:
        on_event: Receives events about topics that are created.
        leads: The caller leads the flow, so no other run does.

    Raises:
        ConfigError: There is nothing to adopt.
        UnsafeError: The flow's tasks are running, or it was handed over to MirrorMaker 2.
    """
    flow, wanted = settings.flow, mode_of(settings)
    clusters = open_clusters(settings)
    topics = TopicSync(settings, clusters, on_event=on_event)
    facts = gather(clusters, topics.plan, mode=wanted, within=settings.admin_timeout)
    noted = facts.noted_mode
    if noted is None and any(partition.has_shadow for partition in facts.partitions):
        noted = DeliveryMode.EXACTLY_ONCE
    if noted is wanted:
        _let_mm2_start(settings, clusters)
        return Adopted(mode=wanted, partitions=None)
    if noted is None:
        raise ConfigError(f"{flow}: it never ran: there is nothing to adopt. Just run it.")
    if noted is DeliveryMode.HANDED_OVER:
        raise UnsafeError(handed_over(flow))
    wait_until_nobody_runs(settings, clusters, leads=leads)
    topics.trust(route.source_topic for route in facts.plan.routes)  # as the other mode left them
    topics.begin()
    switch = switch_of(settings, clusters, facts)
    if wanted is DeliveryMode.EXACTLY_ONCE:
        count = switch.to_exactly_once(noted)
    elif noted is DeliveryMode.EXACTLY_ONCE:
        count = switch.to_at_least_once(wanted)
    else:
        count = switch.between(noted, wanted)
    note(settings, clusters.target_topics, Kind.MODE, {"mode": wanted.value, "partitions": count})
    clusters.mode.replace(wanted)
    _let_mm2_start(settings, clusters)
    return Adopted(mode=wanted, partitions=count)


def _let_mm2_start(settings: FlowSettings, clusters: FlowClusters) -> None:
    """Start the connectors of a MirrorMaker 2 that takes turns with a source connector."""
    if settings.is_source_connector:
        source_connector(settings, topics=clusters.target_topics).start()


def switch_of(settings: FlowSettings, clusters: FlowClusters, facts: FlowFacts) -> Switch:
    """Return what carries positions over. The claims topic must exist."""
    flow = settings.flow
    ids = clusters.target.topic_ids([flow.claims_topic])
    config = task_config(settings, slot=0, claims_topic_id=ids[flow.claims_topic])
    return Switch(
        clusters=clusters,
        claims=KafkaClaimsLog(
            claims_producer(settings),
            claims_consumer(settings),
            flow.claims_topic,
            topic_id=ids[flow.claims_topic],
            ids=clusters.target.topic_ids,
        ),
        pairs=pairs_of(facts),
        config=config.mirror,
        lane=lane_of(config),
    )


def pairs_of(facts: FlowFacts) -> dict[TopicPartition, TopicPartition]:
    """Return the remote partition of each source partition whose remote partition exists."""
    sources = {route.remote_topic: route.source_topic for route in facts.plan.routes}
    return {
        TopicPartition(sources[one.remote.topic], one.remote.partition): one.remote
        for one in facts.partitions
    }


def wait_until_nobody_runs(
    settings: FlowSettings, clusters: FlowClusters, *, leads: bool = False
) -> None:
    """
    Wait until no run and no task is left. One that was killed stays in its group for one session.

    Args:
        leads: The caller leads the flow, so no other run does.

    Raises:
        UnsafeError: Some are left.
    """
    flow, left = settings.flow, ""

    def look(_: Deadline) -> None:
        nonlocal left
        left = ""
        if not (leads and settings.is_source_connector) and group_members(
            clusters.source_topics.admin, flow.source_group, side=Side.SOURCE
        ):
            left = f"its tasks run (group {flow.source_group} on {flow.source} has members)"
        elif not leads and is_run_now(settings, clusters):
            left = f"a run mirrors it (group {flow.drivers_group} on {flow.target} has members)"
        if left:
            raise RetriableError(left)

    with suppress(RetriableError):
        retrying(look, within=settings.session_timeout + SESSION_MARGIN)
        return
    raise UnsafeError(f"{flow}: {left}. Stop it, then run this command again.")
