"""Creates and grows the remote topics of a flow. A refused topic holds up no other."""

import time
from collections.abc import Callable, Mapping
from datetime import timedelta

from eos_mirror.core.plan import FlowPlan
from eos_mirror.core.retries import Retries
from eos_mirror.core.topic_configs import ConfigFilter, initial_config
from eos_mirror.driver.flow_clusters import FlowClusters
from eos_mirror.errors import ConfigError, MirrorError, NotAuthorized, RetriableError, TooFewBrokers
from eos_mirror.kafka.topics import KNOWN_EVERYWHERE, TopicSpec
from eos_mirror.runtime.control import EventSink
from eos_mirror.settings.model import FlowSettings

OPEN_TIMESTAMPS = {
    "message.timestamp.type": "CreateTime",
    "message.timestamp.after.max.ms": str(2**63 - 1),
    "message.timestamp.before.max.ms": str(2**63 - 1),
}
"""The source has accepted these records; the target must not refuse or restamp them."""

"""The protocol's value for the replication factor that the brokers are configured with."""

ASKED_ONCE = timedelta(0)


class RemoteTopics:
    """
    Creates and grows the remote topics that a plan needs.

    A refused topic is tried again after growing pauses, because each try is a request to the
    controller.
    """

    def __init__(
        self,
        settings: FlowSettings,
        clusters: FlowClusters,
        *,
        on_event: EventSink,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """
        Args:
            now: Monotonic seconds.
        """
        self._replication_factor = settings.replication_factor
        self._flow = settings.flow
        self._source = clusters.source_topics
        self._target = clusters.target_topics
        self._on_event = on_event
        self._now = now
        self._creation, self._growth = Retries(), Retries()
        self._unknown: set[str] = set()  # topics that some broker did not know in time

    def reset(self) -> None:
        """Make every refused topic due now: the configuration has changed."""
        self._creation.reset()
        self._growth.reset()

    def rehearse(self, plan: FlowPlan, rules: ConfigFilter) -> FlowPlan:
        """
        Ask the target whether it would create and grow what the plan needs; nothing is written.

        Args:
            rules: Select the config entries that a copy gets from its source topic.

        Returns:
            The plan without what the clusters would refuse.

        Raises:
            NotAuthorized: A right is missing for every topic, so the flow cannot mirror any.
            ConfigError: The target has too few brokers for every topic.
            SourceUnavailable, TargetUnavailable: The cluster did not answer.
        """
        specs, refused = self._specs(plan, rules)
        refused |= self._by_source(plan, self._target.create(specs, validate_only=True))
        denied = [one for one in refused.values() if isinstance(one, NotAuthorized)]
        if denied and len(denied) == len(plan.routes):
            raise denied[0]
        wide = [one for one in refused.values() if isinstance(one, TooFewBrokers)]
        if wide and len(wide) == len(plan.routes):
            raise ConfigError(
                f"{self._flow}: {wide[0]}. Set replication.factor to at most the number of brokers "
                f"of {self._flow.target}."
            )
        plan = plan.refusing(_texts(refused))
        stuck = self._target.grow(_sizes(plan), validate_only=True)
        return plan.not_growing(_texts(self._by_source(plan, stuck)))

    def settle(
        self,
        plan: FlowPlan,
        rules: ConfigFilter,
        *,
        known: Mapping[str, int],
        internal: Mapping[str, int],
    ) -> FlowPlan:
        """
        Create and grow what the plan needs, and wait until every broker knows it.

        Args:
            rules: As for `rehearse`.
            known: Number of remote partitions that every broker already knows, by source topic.
            internal: Partition counts of other topics to wait for, by name.

        Returns:
            The plan without what the clusters refused.

        Raises:
            RetriableError: A broker did not know an internal topic in time.
            SourceUnavailable, TargetUnavailable: The cluster did not answer.
        """
        plan, created = self._create(plan, rules)
        plan, grown = self._grow(plan)
        fresh = {
            route.remote_topic: route.partitions
            for route in plan.routes
            if route.partitions > known.get(route.source_topic, 0)
        }
        self._unknown = self._wait_for(fresh, internal)
        for name, count in created.items():
            self._on_event("topic.created", {"topic": name, "partitions": count})
        for name, count in grown.items():
            self._on_event("topic.grown", {"topic": name, "partitions": count})
        why = f"not every broker of {self._flow.target} knows it yet"
        unknown = [one.source_topic for one in plan.routes if one.remote_topic in self._unknown]
        return plan.refusing(dict.fromkeys(unknown, why), keeping=known)

    def _create(self, plan: FlowPlan, rules: ConfigFilter) -> tuple[FlowPlan, dict[str, int]]:
        """Create what is due; return the remaining plan and the partition counts of new topics."""
        missing = [route.source_topic for route in plan.to_create]
        waiting = self._creation.waiting(missing, now_s=self._now())
        due = plan.refusing(waiting)
        specs, refused = self._specs(due, rules)
        refused |= self._by_source(due, self._target.create(specs))
        for topic, refusal in refused.items():
            self._creation.refused(topic, str(refusal), now_s=self._now())
        self._creation.keep(waiting.keys() | refused.keys())
        left = due.refusing(_texts(refused))
        created = {one.remote_topic for one in left.to_create}
        return left, {spec.name: spec.partitions for spec in specs if spec.name in created}

    def _grow(self, plan: FlowPlan) -> tuple[FlowPlan, dict[str, int]]:
        """Grow what is due; return the remaining plan and the partition counts of grown topics."""
        small = [one.source_topic for one in plan.too_small]
        waiting = self._growth.waiting(small, now_s=self._now())
        due = plan.not_growing(waiting)
        refused = self._by_source(due, self._target.grow(_sizes(due)))
        for topic, refusal in refused.items():
            self._growth.refused(topic, str(refusal), now_s=self._now())
        self._growth.keep(waiting.keys() | refused.keys())
        left = due.not_growing(_texts(refused))
        return left, _sizes(left)

    def _wait_for(self, fresh: Mapping[str, int], internal: Mapping[str, int]) -> set[str]:
        """
        Return the topics that some broker does not know.

        A topic that was waited for in vain before is checked only once.
        """
        first = {name: count for name, count in fresh.items() if name not in self._unknown}
        again = {name: count for name, count in fresh.items() if name in self._unknown}
        unknown: set[str] = set()
        if first or internal:
            unknown |= self._target.wait_until_known({**first, **internal}, within=KNOWN_EVERYWHERE)
        if again:
            unknown |= self._target.wait_until_known(again, within=ASKED_ONCE)
        if unknown & internal.keys():
            names = ", ".join(sorted(unknown & internal.keys()))
            raise RetriableError(f"{self._flow}: a broker of the target does not know {names} yet")
        return unknown

    def _specs(
        self, plan: FlowPlan, rules: ConfigFilter
    ) -> tuple[list[TopicSpec], dict[str, MirrorError]]:
        """
        Return the remote topics to create, configured so that every source record fits unchanged.

        Also return, by source topic, why others cannot be created: a cluster does not show them.
        """
        described = self._source.describe([route.source_topic for route in plan.to_create])
        present = self._target.existing([route.remote_topic for route in plan.to_create])
        refused = dict(described.refused)
        for route in plan.to_create:
            if present.get(route.remote_topic, 0) is None:
                refused[route.source_topic] = NotAuthorized(
                    f"DESCRIBE on {route.remote_topic} ({self._flow.target}) is not granted"
                )
            elif route.source_topic not in described.entries.keys() | refused.keys():
                refused[route.source_topic] = MirrorError(
                    f"{route.source_topic} was just deleted on {self._flow.source}"
                )
        specs = [
            TopicSpec(
                name=route.remote_topic,
                partitions=route.partitions,
                replication_factor=self._replication_factor,
                config={
                    **initial_config(described.entries[route.source_topic], rules),
                    **OPEN_TIMESTAMPS,
                },
            )
            for route in plan.to_create
            if route.source_topic not in refused
        ]
        return specs, refused

    @staticmethod
    def _by_source(plan: FlowPlan, refused: Mapping[str, MirrorError]) -> dict[str, MirrorError]:
        """Return the refusals by source topic instead of by remote topic."""
        return {
            route.source_topic: refused[route.remote_topic]
            for route in plan.routes
            if route.remote_topic in refused
        }


def _sizes(plan: FlowPlan) -> dict[str, int]:
    """Return the needed partition counts of remote topics that have fewer."""
    return {small.remote_topic: small.needed for small in plan.too_small}


def _texts(refused: Mapping[str, MirrorError]) -> dict[str, str]:
    return {topic: str(refusal) for topic, refusal in refused.items()}
