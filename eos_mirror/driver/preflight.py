"""Decides whether a flow may start, from facts alone."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from eos_mirror.core.claims import DeliveryMode
from eos_mirror.core.filters import unmatched
from eos_mirror.core.flow import Flow
from eos_mirror.core.plan import FlowPlan
from eos_mirror.core.plural import counted
from eos_mirror.driver.cluster_facts import FlowFacts, RemotePartition
from eos_mirror.kafka.groups import GroupMember

GRANT = "Grant it with kafka-acls.sh."

SHORT = {DeliveryMode.AT_LEAST_ONCE: "alo", DeliveryMode.SOURCE: "source"}
"""What `adopt` calls the modes that are not exactly once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """
    The decision about a flow.

    Attributes:
        faults: The configuration, or a right, must be fixed (exit 2).
        dangers: Starting could break the guarantee (exit 4).
        warnings: The flow starts, but something needs attention.
        refused: Topics that the flow does not mirror; the reason by source topic.
    """

    faults: tuple[str, ...]
    dangers: tuple[str, ...]
    warnings: tuple[str, ...]
    refused: Mapping[str, str]


def judge(
    facts: FlowFacts,
    *,
    include: Sequence[str],
    mode: DeliveryMode,
    deployment: str,
    has_company: bool = False,
) -> Verdict:
    """
    Decide whether the flow may start, and which topics it refuses.

    Args:
        include: The patterns of `topics`.
        mode: The configured mode.
        deployment: Text that the client id of every task of this configuration contains.
        has_company: True if other writers may write the remote topics, too.
    """
    return Verdict(
        faults=tuple(_faults(facts)),
        dangers=tuple(other_mode(facts, mode) or _dangers(facts, mode, deployment)),
        warnings=(*_warnings(facts), *_idle_patterns(facts, include)),
        refused={
            **facts.undescribed,
            **strangers(facts.plan, facts.partitions, has_company=has_company),
        },
    )


def strangers(
    plan: FlowPlan, partitions: Iterable[RemotePartition], *, has_company: bool
) -> dict[str, str]:
    """
    Return why existing copies must not be written, by source topic: this flow did not make them.

    Args:
        partitions: Existing partitions of the plan's remote topics.
        has_company: True if other writers may write the remote topics, too.
    """
    known = list(partitions)
    reasons = dict(_too_small(plan, known))
    if not has_company:
        reasons |= _foreign(known)
    return {
        route.source_topic: reasons[route.remote_topic]
        for route in plan.routes
        if route.remote_topic in reasons
    }


def rivals(members: Iterable[GroupMember], deployment: str) -> list[GroupMember]:
    """Return the members of the source group that run another configuration of the flow."""
    return [member for member in members if deployment not in member.client_id]


def handed_over(flow: Flow) -> str:
    """Return why a flow may not run that was handed over, and what to do."""
    return (
        f"{flow}: it was handed over to MirrorMaker 2. To continue its copies, stop MirrorMaker 2 "
        f"and run `eos-mirror adopt FILE '{flow}' --from mm2`."
    )


def _faults(facts: FlowFacts) -> Iterator[str]:
    """Yield the faults. A right that is missing for every topic is a fault of the flow."""
    flow, topics = facts.plan.flow, {route.source_topic for route in facts.plan.routes}
    rights = list(facts.missing_rights)
    if topics and topics <= facts.denied.keys() | facts.undescribed.keys():
        rights += (right for denied in facts.denied.values() for right in denied)
        yield from (f"{flow}: not authorized: {why}. {GRANT}" for why in facts.undescribed.values())
    yield from (f"{flow}: not authorized: {right}. {GRANT}" for right in rights)


def other_mode(facts: FlowFacts, mode: DeliveryMode) -> list[str]:
    """Return a danger if the flow ran in the other mode: nothing else can be judged then."""
    noted = facts.noted_mode
    if noted is None and any(partition.has_shadow for partition in facts.partitions):
        noted = DeliveryMode.EXACTLY_ONCE
    if noted is None or noted is mode:
        return []
    flow = facts.plan.flow
    if noted is DeliveryMode.HANDED_OVER:
        return [handed_over(flow)]
    return [
        f"{flow}: mirrored {noted.value} so far, and the configuration says {mode.value}. Stop its "
        f"tasks and run `eos-mirror adopt FILE '{flow}' {_switch(noted, mode)}`, or change the "
        f"configuration back."
    ]


def _switch(noted: DeliveryMode, mode: DeliveryMode) -> str:
    """Return the option of `adopt` that switches between two modes that we run."""
    if mode is DeliveryMode.EXACTLY_ONCE:
        return f"--from mode:{SHORT[noted]}"
    return f"--to mode:{SHORT[mode]}"


def _dangers(facts: FlowFacts, mode: DeliveryMode, deployment: str) -> Iterator[str]:
    flow = facts.plan.flow
    if facts.shadow_members:
        yield (
            f"{flow}: group {flow.shadow_group} on {flow.target} has members "
            f"({facts.shadow_members[0].client_id}); it must have none. Give that consumer "
            f"another group id."
        )
    lost_claims = mode is DeliveryMode.EXACTLY_ONCE and not facts.has_claims_topic
    if lost_claims and any(p.has_shadow for p in facts.partitions):
        yield (
            f"{flow}: {flow.claims_topic} is gone, but the flow was mirrored before: an older "
            f"writer could not be fenced. Make sure that no task of the flow runs, and start the "
            f'flow over: docs/operations.md, "A lost claims topic".'
        )
    others = rivals(facts.source_members, deployment)
    if others:
        yield (
            f"{flow}: tasks of another configuration of this flow are running "
            f"(client {others[0].client_id} at {others[0].host}). Stop them, or start this one "
            f"with their configuration."
        )


def _too_small(plan: FlowPlan, partitions: Iterable[RemotePartition]) -> Iterator[tuple[str, str]]:
    """Yield the remote topics with too few partitions, and the reasons."""
    started = {one.remote.topic for one in partitions if one.was_started or one.has_position}
    for small in plan.too_small:
        if small.remote_topic not in started:
            yield (
                small.remote_topic,
                f"it has {counted(small.present, 'partition')}, {small.source_topic} has "
                f"{small.needed}, and the flow did not create it. Raise it to {small.needed} with "
                f"kafka-topics.sh --alter, or delete it and let the flow create it",
            )


def _foreign(partitions: Iterable[RemotePartition]) -> dict[str, str]:
    """Return why remote topics are not ours, by remote topic."""
    found: dict[str, str] = {}
    for one in partitions:
        if one.end > 0 and not one.has_position and not one.was_started:
            found.setdefault(
                one.remote.topic,
                f"it already holds records that this flow never wrote ({one.remote} ends at "
                f"{one.end}, and the flow has no position for it). If MirrorMaker 2 wrote them, "
                f"continue its copy with eos-mirror adopt --from mm2. Otherwise delete it, give "
                f"the copy another name with replication.policy.topics.map, or exclude the topic",
            )
    return found


def _warnings(facts: FlowFacts) -> Iterator[str]:
    flow = facts.plan.flow
    for rights in facts.denied.values():
        for right in rights:
            yield f"{flow}: not authorized: {right}. Its partitions stop until it is granted."
    if facts.plan.left_out and not facts.plan.routes:
        topics = ", ".join(facts.plan.left_out)
        yield f"{flow}: no topic to mirror yet: {topics}: {facts.plan.why_left_out}."
    elif not facts.plan.routes and not facts.plan.conflicts:
        yield (
            f"{flow}: no topic to mirror yet: nothing that `topics` matches exists on "
            f"{flow.source}, or DESCRIBE on it is not granted."
        )
    for topic, kind in facts.remote_timestamp_types.items():
        if kind != "CreateTime":
            yield (
                f"{facts.plan.flow}: {topic} has message.timestamp.type={kind}: timestamps are "
                f"replaced by the target. Set it to CreateTime."
            )


def _idle_patterns(facts: FlowFacts, include: Sequence[str]) -> Iterator[str]:
    if not facts.source_topics:
        return  # `_warnings` covers this
    flow = facts.plan.flow
    for pattern, near in unmatched(include, facts.source_topics):
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        yield f"{flow}: no topic of {flow.source} matches {pattern} of `topics`{hint}"
