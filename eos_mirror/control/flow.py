"""
One flow in the driver: check, prepare, run its tasks, follow its topics.

Nothing is written to a cluster before `check` has passed.
"""

from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any

from eos_mirror.control.task_config import deployment, task_config
from eos_mirror.core.filters import TopicFilter
from eos_mirror.core.plan import FlowPlan, plan_flow
from eos_mirror.core.policy import replication_policy
from eos_mirror.core.records import TopicPartition
from eos_mirror.errors import ConfigError, RetriableError, UnsafeError
from eos_mirror.kafka.access import may_commit_in_group, may_write_transactional_id
from eos_mirror.kafka.groups import group_members
from eos_mirror.kafka.metadata import ClusterMetadata
from eos_mirror.kafka.retry import retrying
from eos_mirror.kafka.target import KafkaTarget
from eos_mirror.kafka.topics import Topics, TopicSpec
from eos_mirror.operate.facts import FlowClusters, FlowFacts, gather
from eos_mirror.operate.preflight import judge
from eos_mirror.ports import ShadowOffset
from eos_mirror.runtime.control import ControlServer, EventSink
from eos_mirror.runtime.herd import Herd
from eos_mirror.runtime.launcher import Launcher
from eos_mirror.runtime.leases import Leases
from eos_mirror.runtime.spec import TaskSpec
from eos_mirror.runtime.supervisor import Patience
from eos_mirror.settings import clients
from eos_mirror.settings.model import FlowSettings

ENTRY = "eos_mirror.control.task:mirror"
INTERNAL_CONFIG = {"cleanup.policy": "compact", "unclean.leader.election.enable": "false"}
LONGEST_TIME_MS = str(2**63 - 1)
SEGMENT_MAX_BYTES = 16 * 1024 * 1024
SESSION_MARGIN = timedelta(seconds=3)
PROBE_INCARNATION = "probe"
BROKER_DEFAULT = -1
"""The wire's word for the replication factor that the brokers are configured with."""


class FlowRunner:
    """Owns everything of one flow in the driver."""

    def __init__(
        self,
        settings: FlowSettings,
        *,
        on_event: EventSink,
        hidden: Mapping[str, Any] | None = None,
    ) -> None:
        """
        Args:
            on_event: Takes log events; the flow is added to each.
            hidden: Additions to every task's configuration that only tests and the demo make.
        """
        self.settings = settings
        self.flow = settings.flow
        self._on_event = on_event
        self._hidden = dict(hidden or {})
        self._policy = replication_policy(
            settings.replication_policy.value,
            separator=settings.replication_policy_separator,
            internal_separator_enabled=settings.internal_topic_separator_enabled,
            source_alias=self.flow.source,
        )
        self._filter = TopicFilter(
            [pattern.pattern for pattern in settings.topics],
            [pattern.pattern for pattern in settings.topics_exclude],
        )
        source, target = clients.source_admin(settings), clients.target_admin(settings)
        self._clusters = FlowClusters(
            flow=self.flow,
            source_topics=Topics(source, source=True),
            target_topics=Topics(target, source=False),
            source_metadata=ClusterMetadata(source, source=True),
            target=KafkaTarget(
                self.flow, producer_config=clients.target_producer(settings), client_config=target
            ),
        )
        self.routes: dict[str, str] = {}
        self.partitions: dict[TopicPartition, TopicPartition] = {}
        self._stopped: dict[str, str] = {}
        self._claims_topic_id = ""
        self._server: ControlServer | None = None
        self._herd: Herd | None = None
        self.tasks_count = 0

    # ------------------------------------------------------------------ before the start

    def check(self) -> FlowPlan:
        """
        Everything that can be found out without writing.

        Returns:
            The plan.

        Raises:
            ConfigError: Something to fix, one line each.
            UnsafeError: Something on the clusters that would break the guarantee.
        """
        self._wait_for_earlier_run()
        facts = gather(self._clusters, self._plan)
        verdict = judge(facts, deployment=deployment(self.settings))
        for text in verdict.warnings:
            self._tell("flow.warning", {"reason": text})
        faults = [*verdict.faults, *self._group_faults()]
        if faults:
            raise ConfigError(*faults)
        if verdict.dangers:
            raise UnsafeError("\n".join(verdict.dangers))
        self._check_creation(facts)
        self._check_transactional_id()
        self.tasks_count = self._count_tasks(facts.plan)
        return facts.plan

    def _wait_for_earlier_run(self) -> None:
        """Members of another configuration that ended stay in the group for one session."""

        def others_left() -> None:
            members = group_members(
                self._clusters.source_topics.admin, self.flow.source_group, source=True
            )
            if any(deployment(self.settings) not in member.client_id for member in members):
                raise RetriableError("members of another configuration")

        with suppress(RetriableError):  # then it is judged with everything else
            retrying(others_left, within=self.settings.session_timeout + SESSION_MARGIN)

    def _plan(self, source: Mapping[str, int], target: Mapping[str, int]) -> FlowPlan:
        return plan_flow(
            source,
            target,
            policy=self._policy,
            topic_filter=self._filter,
            flow=self.flow,
            heartbeats_replicated=self.settings.heartbeats_replicated,
        )

    def _count_tasks(self, plan: FlowPlan) -> int:
        partitions = sum(route.partitions for route in plan.routes)
        return max(1, min(self.settings.tasks_max, partitions))

    def _group_faults(self) -> list[str]:
        groups = (
            (self._clusters.source_topics.admin, self.flow.source_group, self.flow.source),
            (self._clusters.target_topics.admin, self.flow.shadow_group, self.flow.target),
        )
        return [
            f"{self.flow}: not authorized: READ on group {group} ({alias}). "
            f"Grant it with kafka-acls.sh."
            for admin, group, alias in groups
            if not may_commit_in_group(admin, group)
        ]

    def _check_creation(self, facts: FlowFacts) -> None:
        """Ask the target whether it would create what is missing."""
        self._clusters.target_topics.create(self._missing_internal(), validate_only=True)
        self._clusters.target_topics.create(self._remote_specs(facts.plan), validate_only=True)

    def _check_transactional_id(self) -> None:
        producer = clients.target_producer(self.settings)
        prefix = self.flow.transactional_id("")
        if not may_write_transactional_id(producer, self.flow.transactional_id(PROBE_INCARNATION)):
            raise ConfigError(
                f"{self.flow}: not authorized: WRITE on transactional ids {prefix}* "
                f"({self.flow.target}). Grant it, prefixed, with kafka-acls.sh."
            )

    # ------------------------------------------------------------------ preparation

    def prepare(self) -> None:
        """Create what is missing on the target, and wait until every broker knows it."""
        topics = self._clusters.target_topics
        missing = self._missing_internal()
        topics.create(missing)
        topics.wait_until_known({spec.name: spec.partitions for spec in missing})
        claims = self._clusters.target.topic_ids([self.flow.claims_topic])
        self._claims_topic_id = claims[self.flow.claims_topic]
        self.follow_topics()

    def _missing_internal(self) -> list[TopicSpec]:
        present = self._clusters.target_topics.list()
        config = {
            **INTERNAL_CONFIG,
            "min.insync.replicas": str(self.settings.internal_topic_min_insync_replicas),
        }
        specs = {
            self.flow.claims_topic: config,
            self.flow.offset_map_topic: {**config, "max.message.bytes": str(SEGMENT_MAX_BYTES)},
        }
        return [
            TopicSpec(
                name=name,
                partitions=1,
                replication_factor=self.settings.internal_topic_replication_factor,
                config=settings,
            )
            for name, settings in specs.items()
            if name not in present
        ]

    def _remote_specs(self, plan: FlowPlan) -> list[TopicSpec]:
        """Remote topics to create, so that every record of the source fits unchanged."""
        names = [route.source_topic for route in plan.to_create]
        configs = self._clusters.source_topics.configs(names)
        return [
            TopicSpec(
                name=route.remote_topic,
                partitions=route.partitions,
                replication_factor=self.settings.replication_factor or BROKER_DEFAULT,
                config={
                    "message.timestamp.type": "CreateTime",
                    "message.timestamp.after.max.ms": LONGEST_TIME_MS,
                    "message.timestamp.before.max.ms": LONGEST_TIME_MS,
                    **{
                        name: configs[route.source_topic][name]
                        for name in ("max.message.bytes", "cleanup.policy")
                        if name in configs[route.source_topic]
                    },
                },
            )
            for route in plan.to_create
        ]

    def follow_topics(self) -> None:
        """Create and grow remote topics after the source's, then let the tasks subscribe."""
        topics = self._clusters.target_topics
        plan = self._plan(self._clusters.source_topics.list(), topics.list())
        created = self._remote_specs(plan)
        topics.create(created)
        grown = {small.remote_topic: small.needed for small in plan.too_small}
        topics.grow(grown)
        wanted = {route.remote_topic: route.partitions for route in plan.routes}
        if created or grown or not self.routes:
            topics.wait_until_known(wanted)
        for spec in created:
            self._tell("topic.created", {"topic": spec.name, "partitions": spec.partitions})
        for name, count in grown.items():
            self._tell("topic.grown", {"topic": name, "partitions": count})
        for conflict in plan.conflicts:
            self._tell("topic.refused", {"reason": str(conflict)})
        running = {t for c in plan.conflicts for t in c.source_topics} & self.routes.keys()
        self.routes = {
            **{topic: self.routes[topic] for topic in running},
            **{route.source_topic: route.remote_topic for route in plan.routes},
        }
        self.partitions = {
            TopicPartition(route.source_topic, p): TopicPartition(route.remote_topic, p)
            for route in plan.routes
            for p in range(route.partitions)
        }
        self._give_orders()

    # ------------------------------------------------------------------ tasks

    def start(self, launcher: Launcher, *, patience: Patience, bind: str, advertise: str) -> None:
        """Start the tasks. Returns at once."""
        self._server = ControlServer(Leases(), on_event=self._hear, bind=bind, advertise=advertise)
        self._give_orders()
        self._server.start()
        self._herd = Herd(
            self.tasks_count,
            launcher,
            server=self._server,
            make_spec=self._spec,
            on_event=self._hear,
            patience=patience,
        )
        self._herd.start()

    def stop(self) -> None:
        """Stop the tasks in-band and wait."""
        if self._herd is not None:
            self._herd.stop_all()
        if self._server is not None:
            self._server.stop()

    def statuses(self) -> dict[int, dict[str, Any]]:
        """Status of every task by slot."""
        return {} if self._herd is None else self._herd.statuses()

    @property
    def stopped(self) -> Mapping[str, str]:
        """Partitions that cannot go on, with the reason."""
        return self._stopped

    def reached(self, ends: Mapping[TopicPartition, int]) -> bool:
        """True if the shadow offset of every partition, but the stopped ones, is at its end."""
        waiting = {p: end for p, end in ends.items() if str(p) not in self._stopped}
        remotes = {p: self.partitions[p] for p in waiting}
        shadows = self._clusters.target.shadow_offsets(list(remotes.values())) if remotes else {}
        for partition, end in waiting.items():
            shadow = shadows[remotes[partition]]
            if not isinstance(shadow, ShadowOffset) or shadow.position.next_offset < end:
                return False
        return True

    def source_ends(self) -> Mapping[TopicPartition, int]:
        """Last stable offset of every planned source partition."""
        return self._clusters.source_metadata.ends(list(self.partitions))

    def _spec(self, slot: int, submission: str) -> TaskSpec:
        if self._server is None:
            raise RuntimeError("a task was submitted before the flow was started")
        config = task_config(self.settings, slot=slot, claims_topic_id=self._claims_topic_id)
        hidden = dict(self._hidden)
        pause_at = hidden.pop("pause_at", None)
        if pause_at is not None and submission == "0.0":
            hidden["pause_at"] = pause_at  # once, or no successor would get past it
        return TaskSpec(
            slot=slot,
            submission=submission,
            control_host=self._server.host,
            control_port=self._server.port,
            key=self._server.key,
            entry=ENTRY,
            config={**config, **hidden},
        )

    def _hear(self, name: str, fields: Mapping[str, Any]) -> None:
        if name == "partition.stopped":
            partition, reason = str(fields["partition"]), str(fields["reason"])
            if self._stopped.get(partition) == reason:
                return
            # the successor of the task must not run into the same wall again
            self._stopped[partition] = reason
            self._give_orders()
        self._tell(name, fields)

    def _tell(self, name: str, fields: Mapping[str, Any]) -> None:
        self._on_event(name, {"flow": str(self.flow), **fields})

    def _give_orders(self) -> None:
        if self._server is not None:
            self._server.set_orders({"topics": self.routes, "stopped": self._stopped})
