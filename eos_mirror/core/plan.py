"""The plan of a flow: which topics are copied, under which names, and which are refused."""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from eos_mirror.core.filters import NameFilter, came_from, is_selected
from eos_mirror.core.flow import Flow
from eos_mirror.core.policy import ReplicationPolicy

MAX_TOPIC_CHARS: Final = 249
_LEGAL_TOPIC: Final = re.compile(r"[a-zA-Z0-9._-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicMapping:
    """
    Which topics a flow copies, and under which names.

    Attributes:
        heartbeats_replicated: `heartbeats.replication.enabled`.
        notes_provenance: Its records list the clusters they passed, and do not come back.
        queues: Topics of the source that are never mirrored: other flows' quarantines.
    """

    flow: Flow
    policy: ReplicationPolicy
    topic_filter: NameFilter
    heartbeats_replicated: bool = True
    notes_provenance: bool = False
    queues: Collection[str] = frozenset()

    def remote_of(self, topic: str) -> str | None:
        """Return the name of a source topic on the target; None if it is not mirrored."""
        if not self._is_selected(topic) or self._came_from_target(topic):
            return None
        return self.policy.format_remote_topic(self.flow.source, topic)

    def sources_of_copies(self, topics: Iterable[str]) -> dict[str, str]:
        """
        Return the source topic of each remote topic that these source topics have or would have.

        Of several with one remote name, one that is selected comes before the others.
        """
        found: dict[str, str] = {}
        for topic in sorted(topics, key=lambda one: (self.remote_of(one) is None, one)):
            remote = self.policy.format_remote_topic(self.flow.source, topic)
            found.setdefault(remote, topic)
        return found

    def is_left_out(self, topic: str) -> bool:
        """Return True if a source topic is selected but would go back to where it came from."""
        return self._came_from_target(topic) and self._is_selected(topic)

    def _is_selected(self, topic: str) -> bool:
        return topic not in self.queues and is_selected(
            topic,
            self.topic_filter,
            policy=self.policy,
            heartbeats_replicated=self.heartbeats_replicated,
        )

    def _came_from_target(self, topic: str) -> bool:
        return came_from(topic, self.flow.target, self.policy)


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """
    One source topic and its remote topic.

    Attributes:
        partitions: Partition count of the source topic. Partition numbers stay the same.
    """

    source_topic: str
    remote_topic: str
    partitions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TooSmall:
    """A topic on the target with fewer partitions than its source topic."""

    source_topic: str
    remote_topic: str
    present: int
    needed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Source topics that cannot be copied, and why."""

    flow: Flow
    source_topics: Sequence[str]
    remote_topic: str
    reason: str

    def __str__(self) -> str:
        sources = ", ".join(self.source_topics)
        return f"{self.flow} {sources} to {self.remote_topic}: {self.reason}"

    def sparing(self, topics: Collection[str]) -> "Conflict | None":
        """Return the conflict without these source topics; None if no other is left."""
        left = tuple(topic for topic in self.source_topics if topic not in topics)
        return replace(self, source_topics=left) if left else None


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowPlan:
    """
    What a flow would do, given the present state of the clusters. Sorted by source topic.

    Attributes:
        flow: The flow.
        routes: Topics to copy. Those in `conflicts` are not among them.
        to_create: Routes whose remote topic does not exist.
        too_small: Routes whose remote topic has too few partitions. Growing it is right if this
            flow created it. If it existed before, the caller decides.
        conflicts: Topics that cannot be copied, or not with all partitions.
        left_out: Selected topics whose names say that they came from the target.
    """

    flow: Flow
    routes: Sequence[Route]
    to_create: Sequence[Route]
    too_small: Sequence[TooSmall]
    conflicts: Sequence[Conflict]
    left_out: Sequence[str] = ()

    @property
    def why_left_out(self) -> str:
        """Why the topics in `left_out` are not mirrored."""
        return f"their names say that they came from {self.flow.target}, where they would return"

    @property
    def refused(self) -> dict[str, str]:
        """Why a source topic cannot be copied, by topic. The first reason counts."""
        reasons: dict[str, str] = {}
        for conflict in self.conflicts:
            for topic in conflict.source_topics:
                reasons.setdefault(topic, str(conflict))
        return reasons

    def contested(self, target_topics: Collection[str]) -> list[Conflict]:
        """
        Find conflicts over an existing remote topic: one of several source topics may have made it.

        Args:
            target_topics: Names of all topics of the target.
        """
        counts = Counter(topic for one in self.conflicts for topic in one.source_topics)
        return [
            one
            for one in self.conflicts
            if len(one.source_topics) > 1
            and one.remote_topic in target_topics
            and all(counts[topic] == 1 for topic in one.source_topics)
        ]

    def refusing(
        self, reasons: Mapping[str, str], *, keeping: Mapping[str, int] = MappingProxyType({})
    ) -> "FlowPlan":
        """
        Return the same plan without these topics.

        Args:
            reasons: Why, by source topic. Topics that are not in `routes` change nothing. If some
                partitions of a topic were refused before, the new reason replaces that one.
            keeping: How many partitions of a topic are still copied: the first ones.
        """
        kept = {topic: keeping[topic] for topic in reasons if keeping.get(topic)}
        gone = {one.source_topic for one in self.routes} & (reasons.keys() - kept.keys())
        return replace(
            self,
            routes=tuple(
                replace(one, partitions=kept.get(one.source_topic, one.partitions))
                for one in self.routes
                if one.source_topic in kept or one.source_topic not in reasons
            ),
            to_create=tuple(one for one in self.to_create if one.source_topic not in reasons),
            too_small=tuple(one for one in self.too_small if one.source_topic not in reasons),
            conflicts=(
                *(left for one in self.conflicts if (left := one.sparing(gone))),
                *(
                    Conflict(
                        flow=self.flow,
                        source_topics=(route.source_topic,),
                        remote_topic=route.remote_topic,
                        reason=_beyond(kept.get(route.source_topic), reasons[route.source_topic]),
                    )
                    for route in self.routes
                    if route.source_topic in reasons
                ),
            ),
        )

    def only(self, topics: Collection[str]) -> "FlowPlan":
        """Return the part of the plan that is about these source topics."""
        return replace(
            self,
            routes=tuple(one for one in self.routes if one.source_topic in topics),
            to_create=tuple(one for one in self.to_create if one.source_topic in topics),
            too_small=tuple(one for one in self.too_small if one.source_topic in topics),
            conflicts=(),
        )

    def not_growing(self, reasons: Mapping[str, str]) -> "FlowPlan":
        """
        Return the same plan, with only the partitions that the copies of these topics have now.

        Args:
            reasons: Why, by source topic. Topics that are not in `too_small` change nothing.
        """
        present = {one.source_topic: one.present for one in self.too_small}
        stuck = {topic: reason for topic, reason in reasons.items() if topic in present}
        return self.refusing(stuck, keeping=present)


def plan_flow(
    source_topics: Mapping[str, int],
    target_topics: Mapping[str, int],
    mapping: TopicMapping,
    *,
    others: Collection[TopicMapping] = (),
    taken: Mapping[str, str] = MappingProxyType({}),
    mirrored: Collection[str] = (),
) -> FlowPlan:
    """
    Decide what to copy.

    Args:
        source_topics: Partition counts of all topics of the source.
        target_topics: Partition counts of all topics of the target.
        mapping: Topic mapping of the flow.
        others: Topic mappings of flows that run beside it: no topic may be copied back to itself.
        taken: Target topics that others write, with what has to change.
        mirrored: Source topics that this flow copies now. They are never refused: of several
            topics for one remote name, the newer ones are.
    """
    flow = mapping.flow
    wanted = [
        Route(source_topic=topic, remote_topic=remote, partitions=partitions)
        for topic, partitions in sorted(source_topics.items())
        if (remote := mapping.remote_of(topic)) is not None
    ]
    found = (
        *_conflicts(flow, wanted, target_topics),
        *(_taken(flow, r, taken[r.remote_topic]) for r in wanted if r.remote_topic in taken),
        *(loop for route in wanted if (loop := _loop(mapping, route, others))),
    )
    conflicts = tuple(left for conflict in found if (left := conflict.sparing(mirrored)))
    refused = {topic for conflict in conflicts for topic in conflict.source_topics}
    routes = tuple(route for route in wanted if route.source_topic not in refused)
    return FlowPlan(
        flow=flow,
        routes=routes,
        to_create=tuple(route for route in routes if route.remote_topic not in target_topics),
        too_small=_too_small(routes, target_topics),
        conflicts=conflicts,
        left_out=tuple(filter(mapping.is_left_out, sorted(source_topics))),
    )


def cross_flow_conflicts(plans: Iterable[FlowPlan]) -> list[str]:
    """
    Find topics that two flows would write on the same cluster: exactly once cannot hold there.

    Returns:
        One sentence for each, naming the flows and their source topics.
    """
    writers: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for plan in plans:
        for route in plan.routes:
            writers[plan.flow.target, route.remote_topic].append(
                f"{plan.flow} ({route.source_topic})"
            )
    return [
        f"topic {remote} on {target} would be written by {' and '.join(sorted(flows))}: exclude "
        "it from all flows but one, or use a replication policy that renames topics"
        for (target, remote), flows in sorted(writers.items())
        if len(flows) > 1
    ]


def _too_small(routes: Iterable[Route], target_topics: Mapping[str, int]) -> tuple[TooSmall, ...]:
    return tuple(
        TooSmall(
            source_topic=route.source_topic,
            remote_topic=route.remote_topic,
            present=target_topics[route.remote_topic],
            needed=route.partitions,
        )
        for route in routes
        if target_topics.get(route.remote_topic, route.partitions) < route.partitions
    )


def _conflicts(
    flow: Flow, wanted: Sequence[Route], target_topics: Mapping[str, int]
) -> tuple[Conflict, ...]:
    """Find names that Kafka refuses, and names that two source topics share."""
    sources: defaultdict[str, list[str]] = defaultdict(list)
    for route in wanted:
        sources[route.remote_topic].append(route.source_topic)
    lookalikes: defaultdict[str, set[str]] = defaultdict(set)
    for topic in (*target_topics, *sources):
        lookalikes[_metric_name(topic)].add(topic)

    found = []
    for remote, topics in sources.items():
        reason = _illegal(remote)
        if reason is None and len(topics) > 1:
            reason = "several source topics for one remote topic; exclude all but one"
        others = sorted(lookalikes[_metric_name(remote)] - {remote})
        if reason is None and others and remote not in target_topics:
            reason = f"Kafka treats '.' and '_' as the same; in the way: {', '.join(others)}"
        if reason is not None:
            found.append(
                Conflict(flow=flow, source_topics=tuple(topics), remote_topic=remote, reason=reason)
            )
    return tuple(found)


def _beyond(kept: int | None, reason: str) -> str:
    return reason if kept is None else f"partitions from {kept} on are not mirrored: {reason}"


def _taken(flow: Flow, route: Route, reason: str) -> Conflict:
    return Conflict(
        flow=flow,
        source_topics=(route.source_topic,),
        remote_topic=route.remote_topic,
        reason=reason,
    )


def _loop(mapping: TopicMapping, route: Route, others: Collection[TopicMapping]) -> Conflict | None:
    """
    Find a chain of flows that would copy the copies of a topic back into the topic, endlessly.

    A chain whose flows all note provenance is no loop. A flow that notes nothing checks nothing
    either, so one such flow makes the chain a loop.
    """
    flow = mapping.flow
    home = (flow.source, route.source_topic)
    seen = {home}
    chains = [((flow.target, route.remote_topic), [mapping])]
    while chains:
        (cluster, topic), passed = chains.pop()
        for onward in others:
            remote = onward.remote_of(topic) if onward.flow.source == cluster else None
            if remote is None:
                continue
            place = (onward.flow.target, remote)
            round_trip = [*passed, onward]
            if place == home:
                if all(one.notes_provenance for one in round_trip):
                    continue
                names = ", ".join(str(one.flow) for one in round_trip)
                reason = f"its copies would come back to it by {names}; exclude it from one of them"
                return Conflict(
                    flow=flow,
                    source_topics=(route.source_topic,),
                    remote_topic=route.remote_topic,
                    reason=reason,
                )
            if place not in seen:
                seen.add(place)
                chains.append((place, round_trip))
    return None


def _illegal(topic: str) -> str | None:
    """Return why Kafka would refuse the name; None if it accepts it."""
    if len(topic) > MAX_TOPIC_CHARS:
        return f"the name has {len(topic)} characters, Kafka allows {MAX_TOPIC_CHARS}"
    if topic in {".", ".."} or _LEGAL_TOPIC.fullmatch(topic) is None:
        return "the name is illegal; Kafka allows letters, digits, '.', '_' and '-'"
    return None


def _metric_name(topic: str) -> str:
    """Return the metric name. Two topics with the same one cannot exist on one cluster."""
    return topic.replace(".", "_")
