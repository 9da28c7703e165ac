"""Keeps the target's topics in step with the source's, and creates the internal topics."""

import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from eos_mirror.core.copy_limits import ConfigSync
from eos_mirror.core.heartbeat_names import odd_heartbeats
from eos_mirror.core.plan import Conflict, FlowPlan, TopicMapping, plan_flow
from eos_mirror.core.records import TopicPartition
from eos_mirror.core.retries import Retries
from eos_mirror.core.topic_configs import (
    Changes,
    ConfigFilter,
    config_changes,
)
from eos_mirror.driver.cluster_facts import remote_partitions
from eos_mirror.driver.copy_limits import raise_limits
from eos_mirror.driver.flow_clusters import FlowClusters
from eos_mirror.driver.history import mirrored_before, owners
from eos_mirror.driver.internal_topics import internal_topics
from eos_mirror.driver.preflight import strangers
from eos_mirror.driver.quarantine import QUARANTINE_FACTOR
from eos_mirror.driver.remote_topics import RemoteTopics
from eos_mirror.errors import ConfigError, NotAuthorized
from eos_mirror.kafka.topics import TopicSpec
from eos_mirror.runtime.control import EventSink
from eos_mirror.settings.clients import mode_of
from eos_mirror.settings.filters import CONFIG_FILTER
from eos_mirror.settings.model import FlowSettings
from eos_mirror.settings.plugins import config_filter_of, policy_of, topic_filter_of
from eos_mirror.settings.values import DefaultsFrom

LET_GO_WITHIN_S = 60.0
"""Wait before a deleted copy may be created again: three times the longest budget of a task.

A task's client retries a commit for a deleted copy for some seconds, and it must not reach the new
copy. If the wait is too short nothing is lost: a position without its records ends the task
(`ForeignWriter`)."""


class TopicSync:
    """
    Syncs the topics of one flow.

    Attributes:
        routes: Remote topic by source topic, as of the last sync.
        partitions: Remote partition by source partition, also as of the last sync.
        deleted: Source topics that were deleted while they were mirrored.
        refused: The reason, by source topic, for each topic that is not mirrored.
        left_out: Selected source topics that came from the target.
        mapping: What is mirrored, and under which names.
        config_sync: How remote topics follow the configuration of their source topics.
        others: The `TopicSync` of each other flow of this run. Their syncs never overlap: of two
            flows that would write one topic, the first to see it writes it.
    """

    def __init__(
        self, settings: FlowSettings, clusters: FlowClusters, *, on_event: EventSink
    ) -> None:
        self._settings = settings
        self._clusters = clusters
        self._flow = settings.flow
        self._source = clusters.source_topics
        self._target = clusters.target_topics
        self._on_event = on_event
        self._remotes = RemoteTopics(settings, clusters, on_event=on_event)
        self.take(settings)
        self.routes: dict[str, str] = {}
        self.partitions: dict[TopicPartition, TopicPartition] = {}
        self.deleted: set[str] = set()
        self.refused: dict[str, str] = {}
        self.left_out: Sequence[str] = ()
        self._begun: dict[str, str] = {}  # as `routes`, also topics refused since
        self._contested: set[Conflict] = set()  # their owners were searched for
        self._owners: set[str] = set()
        self._trusted: set[str] = set()
        self._strangers = Retries()
        self._deletions = Retries(
            first_pause_s=LET_GO_WITHIN_S, longest_pause_s=10 * LET_GO_WITHIN_S
        )
        self.others: Sequence[TopicSync] = ()

    def take(self, settings: FlowSettings) -> None:
        """Apply the filters of these settings from now on."""
        self.mapping = TopicMapping(
            flow=settings.flow,
            policy=policy_of(settings),
            topic_filter=topic_filter_of(settings),
            heartbeats_replicated=settings.heartbeats_replicated,
            notes_provenance=settings.filters.provenance,
            queues=settings.queues,
        )
        is_list = settings.filters.config_class == CONFIG_FILTER
        self.config_sync = ConfigSync(
            rules=ConfigFilter(
                names=config_filter_of(settings),
                keeps_defaults=settings.defaults_from is DefaultsFrom.SOURCE,
            ),
            is_on=settings.sync_configs,
            filter_key="config.properties.exclude" if is_list else "config.property.filter.class",
        )
        self._remotes.reset()

    @property
    def quarantine(self) -> str:
        """Return the name of the quarantine, whether or not it is used."""
        return self._settings.quarantine_topic

    def odd_heartbeats(self, topics: Collection[str]) -> list[str]:
        """Return what is odd about topics of the source whose names end in `heartbeats`."""
        flows = [self._flow, *(other.mapping.flow for other in self.others)]
        aliases = {alias for flow in flows for alias in (flow.source, flow.target)}
        return [f"{self._flow}: {text}." for text in odd_heartbeats(topics, self.mapping, aliases)]

    def plan(self, source: Mapping[str, int], target: Mapping[str, int]) -> FlowPlan:
        """
        Plan what to mirror, from the partition counts by topic.

        Raises:
            SourceUnavailable, TargetUnavailable: The cluster did not answer.
        """
        plan = self._plan(source, target)
        contested = [one for one in plan.contested(target) if one not in self._contested]
        if not contested:
            return plan
        self._contested.update(contested)
        self._owners |= owners(self._clusters, contested, mode=mode_of(self._settings))
        return self._plan(source, target)

    def _plan(self, source: Mapping[str, int], target: Mapping[str, int]) -> FlowPlan:
        mirrored = self.routes.keys() | self._owners
        mappings = [other.mapping for other in self.others]
        taken = {
            remote: f"{other.mapping.flow} writes it; exclude it from one of them"
            for other in self.others
            if other.mapping.flow.target == self._flow.target
            for remote in other.routes.values()
        }
        for one in (self, *self.others):
            if one.mapping.flow.target == self._flow.target:
                taken[one.quarantine] = (
                    f"it is the quarantine of {one.mapping.flow}; choose another "
                    f"errors.deadletterqueue.topic.name"
                )
        return plan_flow(
            source, target, self.mapping, others=mappings, taken=taken, mirrored=mirrored
        )

    def report(self, plan: FlowPlan) -> None:
        """
        Log the topics that a plan refuses: each once, and again if the reason changes.

        The topics that it leaves out are logged together, and again if there are others.
        """
        if plan.left_out != self.left_out:
            self.left_out = plan.left_out
            self._tell("topics.left_out", topics=list(plan.left_out), reason=plan.why_left_out)
        refused = plan.refused
        for topic, reason in refused.items():
            if self.refused.get(topic) != reason:
                self._tell("topic.refused", topic=topic, reason=reason)
        self.refused = refused

    def rehearse(self, plan: FlowPlan) -> FlowPlan:
        """
        Ask the target whether it would create what is missing; nothing is written.

        Returns:
            The plan without the topics that it would not create.

        Raises:
            ConfigError: The target would not create an internal topic.
            NotAuthorized: A right is missing for an internal topic, or for every topic.
            SourceUnavailable, TargetUnavailable: The cluster did not answer.
        """
        self._create_internal(self._missing_internal(), validate_only=True)
        return self._remotes.rehearse(self.without_deleted(plan), self.config_sync.rules)

    def begin(self) -> None:
        """
        Create the internal topics, then `follow`. Call it before the tasks start.

        Raises:
            ConfigError, NotAuthorized: The target refuses to create an internal topic.
        """
        internal = self._missing_internal()
        self._create_internal(internal)
        self._follow(internal, starting=True)

    def follow(self) -> None:
        """
        Create and grow remote topics to match the source topics.

        When this returns, every broker of the target knows every partition of `routes`, so the
        tasks may subscribe.
        """
        self._follow([], starting=False)

    def follow_configs(self) -> None:
        """Sync topic configurations to the remote topics; only differences are written."""
        wanted, unseen = self.differences(self.routes)
        for remote, reason in unseen.items():
            self._tell("topic.alter-failed", topic=remote, set={}, deleted=[], reason=reason)
        self._tell_changes(wanted, self._target.alter(wanted))

    def differences(self, routes: Mapping[str, str]) -> tuple[dict[str, Changes], dict[str, str]]:
        """
        Return what has to change on remote topics, by name, and which cannot be described, and why.

        Remote topics that are up to date or do not exist are excluded.

        Args:
            routes: Remote topic by source topic.
        """
        sources = self._source.describe(sorted(routes))
        remotes = self._target.describe(sorted(routes.values()))
        found = {
            remote: changes
            for topic, remote in routes.items()
            if topic in sources.entries and remote in remotes.entries
            if (
                changes := config_changes(
                    sources.entries[topic], remotes.entries[remote], self.config_sync.rules
                )
            )
        }
        unseen = {routes[topic]: str(refusal) for topic, refusal in sources.refused.items()}
        return found, unseen | {name: str(refusal) for name, refusal in remotes.refused.items()}

    def _follow(self, internal: Sequence[TopicSpec], *, starting: bool) -> None:
        on_source, on_target = self._source.list(), self._target.list()
        hidden = self._add_unlisted(on_source, on_target)
        plan = self.without_deleted(self.plan(on_source, on_target).refusing(hidden))
        plan = self._without_strangers(plan, on_target)
        plan = self._remotes.settle(
            plan,
            self.config_sync.rules,
            known=Counter(partition.topic for partition in self.partitions),
            internal={spec.name: spec.partitions for spec in internal},
        )
        for topic in sorted(self.routes.keys() - on_source.keys()):
            self.deleted.add(topic)
            self._tell("topic.deleted", topic=topic, remote=self.routes[topic])
        self._take(self._fitting(plan, starting=starting))

    def _fitting(self, plan: FlowPlan, *, starting: bool) -> FlowPlan:
        """
        Raise the limits of copies, and refuse the topics whose copies still accept too little.

        Only at a start, and for new topics. A topic that is mirrored already continues: a record
        that does not fit stops its partition.
        """
        new = (one for one in plan.routes if starting or one.source_topic not in self._begun)
        refused = raise_limits(
            replace(plan, routes=tuple(new)),
            source=self._source,
            target=self._target,
            sync=self.config_sync,
            report=self._tell_changes,
        )
        for topic in refused:
            self._begun.pop(topic, None)  # begun while on standby; it is compared again
        return plan.refusing(refused)

    def _add_unlisted(self, on_source: dict[str, int], on_target: dict[str, int]) -> dict[str, str]:
        """
        Add to both lists the topics that this run mirrors, that exist, and that were not listed.

        Returns:
            Why topics cannot be mirrored any more, by source topic: they may not be described.
        """
        hidden: dict[str, str] = {}
        for topic, count in self._source.existing(sorted(self._begun.keys() - on_source)).items():
            on_source[topic] = count or 1
            if count is None:
                hidden[topic] = f"DESCRIBE on {topic} ({self._flow.source}) is not granted any more"
        sources = {remote: topic for topic, remote in self._begun.items()}
        for remote, count in self._target.existing(sorted(sources.keys() - on_target)).items():
            on_target[remote] = count or 1
            if count is None:
                why = f"DESCRIBE on {remote} ({self._flow.target}) is not granted any more"
                hidden[sources[remote]] = why
        return hidden

    def trust(self, topics: Iterable[str]) -> None:
        """Record that the copies of these source topics were checked: this flow may write them."""
        self._trusted = set(topics)

    def _without_strangers(self, plan: FlowPlan, on_target: Mapping[str, int]) -> FlowPlan:
        """Refuse topics that are new to this run and whose existing copy is not ours."""
        known, now_s = self._begun.keys() | self._trusted, time.monotonic()
        fresh = {
            route.source_topic
            for route in plan.routes
            if route.remote_topic in on_target and route.source_topic not in known
        }
        waiting = self._strangers.waiting(fresh, now_s=now_s)
        asked = plan.only(fresh - waiting.keys())
        found = self._strange(asked, on_target) if asked.routes else {}
        for topic, why in found.items():
            self._strangers.refused(topic, why, now_s=now_s)
        self._strangers.keep(waiting.keys() | found.keys())
        self._trusted |= fresh - waiting.keys() - found.keys()
        return plan.refusing(waiting | found)

    def _strange(self, plan: FlowPlan, on_target: Mapping[str, int]) -> dict[str, str]:
        mode = mode_of(self._settings)
        partitions = remote_partitions(self._clusters, plan, on_target, mode=mode)
        return strangers(plan, partitions, has_company=self.mapping.notes_provenance)

    def without_deleted(self, plan: FlowPlan) -> FlowPlan:
        """
        Refuse topics that were mirrored before and whose copy no longer exists.

        Raises:
            SourceUnavailable, TargetUnavailable: The cluster did not answer.
        """
        why = (
            f"the copy was deleted on {self._flow.target}; it is not created again, because it "
            f"would lack what was mirrored before. docs/operations.md says how to mirror a topic "
            f"again from its start"
        )
        now_s, topics = time.monotonic(), {route.source_topic for route in plan.to_create}
        waiting = self._deletions.waiting(topics, now_s=now_s)
        gone = topics & self.routes.keys()
        asked = [one for one in plan.to_create if one.source_topic not in gone | waiting.keys()]
        found, is_whole = mirrored_before(self._clusters, asked, mode=mode_of(self._settings))
        if not is_whole:
            found |= topics & (self._deletions.names | self._begun.keys())
        for topic in gone | found:
            self._deletions.refused(topic, why, now_s=now_s)
        self._deletions.keep(gone | found | waiting.keys())
        return plan.refusing(dict.fromkeys(gone | found | waiting.keys(), why))

    def _take(self, plan: FlowPlan) -> None:
        self.report(plan)
        self.routes = {route.source_topic: route.remote_topic for route in plan.routes}
        since = {t: remote for t, remote in self._begun.items() if t in self.refused}
        self._begun = since | self.routes
        self._trusted &= self.routes.keys() | self.refused.keys()
        self.partitions = {
            TopicPartition(route.source_topic, p): TopicPartition(route.remote_topic, p)
            for route in plan.routes
            for p in range(route.partitions)
        }

    def _create_internal(self, specs: Sequence[TopicSpec], *, validate_only: bool = False) -> None:
        """Create internal topics. If one is refused, the whole flow cannot start."""
        refused = self._target.create(specs, validate_only=validate_only)
        for name, refusal in refused.items():
            if isinstance(refusal, NotAuthorized):
                raise refusal
            what = "see internal.topic.replication.factor and internal.topic.min.insync.replicas"
            if name == self.quarantine:
                what = f"see {QUARANTINE_FACTOR}, or create it yourself (docs/quarantine.md)"
            raise ConfigError(f"{self._flow}: {refusal}. The flow needs this topic: {what}.")

    def _missing_internal(self) -> list[TopicSpec]:
        present = self._target.list()
        return [spec for spec in internal_topics(self._settings) if spec.name not in present]

    def _tell_changes(self, wanted: Mapping[str, Changes], refused: Mapping[str, str]) -> None:
        for remote, changes in wanted.items():
            fields = {"topic": remote, "set": dict(changes.set), "deleted": list(changes.delete)}
            if remote in refused:
                self._tell("topic.alter-failed", **fields, reason=refused[remote])
            else:
                self._tell("topic.altered", **fields)

    def _tell(self, name: str, **fields: object) -> None:
        self._on_event(name, fields)
