"""Takes over the copies of MirrorMaker 2: fences it, finds where they end, and claims them."""

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from threading import Event
from typing import Final

from eos_mirror.core.claims import DeliveryMode
from eos_mirror.core.connect_offsets import SOURCE_CONNECTOR, Owner, offsets_topic
from eos_mirror.core.flow import Flow
from eos_mirror.core.ledger import Kind
from eos_mirror.core.records import Position, TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.driver.cluster_facts import FlowFacts, gather
from eos_mirror.driver.flow_clusters import FlowClusters, open_clusters
from eos_mirror.driver.ledger import create_ledger
from eos_mirror.driver.topic_sync import TopicSync
from eos_mirror.errors import RetriableError, UnsafeError
from eos_mirror.kafka.deadline import Deadline
from eos_mirror.kafka.groups import hosts_of_members
from eos_mirror.kafka.ledger import KafkaLedger
from eos_mirror.kafka.retry import retrying
from eos_mirror.kafka.topic_reader import read_log
from eos_mirror.operate.adopt import lane_of, pairs_of, switch_of, wait_until_nobody_runs
from eos_mirror.operate.mm2_positions import CopiedPartition, Mm2Positions
from eos_mirror.runtime.control import EventSink
from eos_mirror.settings.clients import claims_producer, target_admin, task_config
from eos_mirror.settings.model import FlowSettings

SESSION_ENDS: Final = timedelta(seconds=15)
"""After this, a worker that is gone is no member any more: its default session lasts 10 s."""

FENCED_WITHIN: Final = timedelta(seconds=60)
LOOK_EVERY_S: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Mm2:
    """
    A MirrorMaker 2, as Kafka Connect names what belongs to it.

    Attributes:
        connector: Name of its source connector.
        group: Group of its workers.
        offsets_topic: Where it stored its positions.
        config_topic: Where it stored how many tasks had a transactional id.
        is_dedicated: The workers run nothing else: none of them may be alive. A Connect cluster
            stays; only the connector is stopped, and that cannot be seen on the target.
    """

    connector: str
    group: str
    offsets_topic: str
    config_topic: str
    is_dedicated: bool = False

    def transactional_ids(self, tasks: int) -> list[str]:
        """
        Return the ids of its tasks, as Kafka Connect makes them.

        Those of dedicated workers include that of their leader, which writes the config topic.
        """
        numbered = [f"{self.group}-{self.connector}-{number}" for number in range(tasks)]
        leader = [f"connect-cluster-{self.group}"] if tasks and self.is_dedicated else []
        return numbered + leader


def dedicated_mm2(flow: Flow) -> Mm2:
    """Return the MirrorMaker 2 in dedicated mode that mirrors between these clusters."""
    return Mm2(
        connector=SOURCE_CONNECTOR,
        group=f"{flow.source}-mm2",
        offsets_topic=offsets_topic(flow.source),
        config_topic=f"mm2-configs.{flow.source}.internal",
        is_dedicated=True,
    )


class Takeover:
    """Takes over one flow. Each step may be interrupted; then all of it is run again."""

    def __init__(
        self, settings: FlowSettings, mm2: Mm2, *, match_last: int, on_event: EventSink
    ) -> None:
        """
        Args:
            settings: The flow, configured for exactly once.
            mm2: What made the copies.
            match_last: So many records at the end of a copy are compared at most.
            on_event: Receives events about topics that are created.
        """
        self._settings = settings
        self._mm2 = mm2
        self._clusters: FlowClusters = open_clusters(settings)
        self._topics = TopicSync(settings, self._clusters, on_event=on_event)
        self._positions = Mm2Positions(
            settings,
            offsets_topic=mm2.offsets_topic,
            owner=Owner(mm2.connector, settings.flow.source),
            match_last=match_last,
        )

    def plan(self) -> list[CopiedPartition]:
        """
        Return where each copy would be continued now. Writes nothing, and fences nothing.

        Raises:
            RestartTask: A cluster did not answer.
            NotAuthorized: A right is missing.
        """
        return self._positions.find(_left(self._gather()))

    def run(self, *, quiet: timedelta) -> list[CopiedPartition]:
        """
        Take over every copy, all in one transaction; the mode of the flow is recorded last.

        A MirrorMaker 2 that writes exactly once is fenced first. Another one cannot be: its copies
        must stand still.

        Args:
            quiet: For so long. A request of a process that was suspended may arrive later.

        Returns:
            What was taken over: nothing of what this flow has a position for.

        Raises:
            UnsafeError: MirrorMaker 2 or the flow runs, or a copy cannot be continued with
                certainty. Nothing was written.
        """
        if self._mm2.is_dedicated:
            self._refuse_workers()
        wait_until_nobody_runs(self._settings, self._clusters)
        facts = self._gather()
        pairs = _left(facts)
        if not self._fence():
            self._wait_for_quiet(list(pairs.values()), quiet)
        ends = self._positions.ends(list(pairs.values()))
        found = self._positions.find(pairs)
        _refuse(self._settings.flow, found)
        if found:
            self._carry(facts, found, ends)
        return found

    def _gather(self) -> FlowFacts:
        """Return what is known of the flow; a refused start may have recorded its mode."""
        facts = gather(
            self._clusters,
            self._topics.plan,
            mode=DeliveryMode.EXACTLY_ONCE,
            within=self._settings.admin_timeout,
        )
        if facts.noted_mode is DeliveryMode.AT_LEAST_ONCE:
            raise UnsafeError(
                f"{self._settings.flow}: it mirrors at least once already, so its copies are not "
                f"MirrorMaker 2's. Adopt it with --from mode:alo."
            )
        return facts

    def _refuse_workers(self) -> None:
        """
        Refuse while MirrorMaker 2 runs: it would write behind our claims.

        A worker that was killed stays a member until its session ends.
        """
        flow, hosts = self._settings.flow, set[str]()

        def until_none_is_left(_: Deadline) -> None:
            nonlocal hosts
            admin = self._clusters.target_topics.admin
            hosts = hosts_of_members(admin, self._mm2.group, side=Side.TARGET)
            if hosts:
                raise RetriableError("members are left")

        with suppress(RetriableError):
            retrying(until_none_is_left, within=SESSION_ENDS)
            return
        raise UnsafeError(
            f"{flow}: MirrorMaker 2 runs: group {self._mm2.group} on {flow.target} has members "
            f"({', '.join(sorted(hosts))}). Stop it, then adopt."
        )

    def _fence(self) -> bool:
        """Fence the tasks of a MirrorMaker 2 that writes exactly once; False if it does not."""
        ids = self._mm2.transactional_ids(self._tasks_ever())
        lane = lane_of(task_config(self._settings, slot=0, claims_topic_id=""))

        def until_fenced(_: Deadline) -> None:
            if left := set(ids) - lane.fence(ids):
                raise RetriableError(f"not fenced: {', '.join(sorted(left))}")

        if ids:
            retrying(until_fenced, within=FENCED_WITHIN)
        return bool(ids)

    def _tasks_ever(self) -> int:
        """Return how many tasks had a transactional id at most; 0 without exactly once."""
        settings = self._settings
        key = f"tasks-fencing-{self._mm2.connector}"
        records = read_log(
            target_admin(settings), self._mm2.config_topic, group=settings.flow.shadow_group
        )
        return max((_tasks_of(value) for name, value in records if name == key), default=0)

    def _wait_for_quiet(self, remotes: Sequence[TopicPartition], quiet: timedelta) -> None:
        """
        Watch the copies stand still.

        Raises:
            UnsafeError: One of them grew.
        """
        ends, until_s = self._positions.ends(remotes), time.monotonic() + quiet.total_seconds()
        pause = Event()
        while time.monotonic() < until_s:
            pause.wait(LOOK_EVERY_S)
            self._refuse_growth(ends)

    def _refuse_growth(self, ends: Mapping[TopicPartition, int]) -> None:
        now = self._positions.ends(list(ends))
        grown = next((remote for remote, end in ends.items() if now[remote] != end), None)
        if grown is not None:
            raise UnsafeError(
                f"{self._settings.flow}: {grown} ended at {ends[grown]}, and now at {now[grown]}: "
                f"MirrorMaker 2 or another client writes it. Stop it, then adopt."
            )

    def _carry(
        self,
        facts: FlowFacts,
        found: Sequence[CopiedPartition],
        ends: Mapping[TopicPartition, int],
    ) -> None:
        """Note the positions in the ledger, then commit them: a kill in between leaves a trace."""
        flow = self._settings.flow
        self._topics.trust(route.source_topic for route in facts.plan.routes)
        self._topics.begin()
        positions = {one.source: one.next_offset for one in found}
        create_ledger(self._settings, self._clusters.target_topics)
        KafkaLedger(claims_producer(self._settings), flow.ledger_topic).append(
            Kind.MODE,
            {
                "mode": DeliveryMode.EXACTLY_ONCE.value,
                "partitions": len(found),
                "from": "mm2",
                "positions": {str(p): at for p, at in positions.items()},
            },
        )
        switch = switch_of(self._settings, self._clusters, facts)
        self._refuse_growth(ends)
        switch.carry({p: Position(at) for p, at in positions.items() if at is not None})
        self._clusters.mode.replace(DeliveryMode.EXACTLY_ONCE)


def _left(facts: FlowFacts) -> dict[TopicPartition, TopicPartition]:
    """Return the partitions without a position of ours, by source partition."""
    ours = {one.remote for one in facts.partitions if one.has_shadow}
    return {source: remote for source, remote in pairs_of(facts).items() if remote not in ours}


def _refuse(flow: Flow, found: Sequence[CopiedPartition]) -> None:
    refused = [one for one in found if one.refusal]
    if refused:
        lines = [f"{flow} {one.source}: {one.refusal}" for one in refused]
        raise UnsafeError("\n".join(lines))


def _tasks_of(value: bytes | None) -> int:
    try:
        return int(json.loads(value or b"{}").get("tasks", 0))
    except (ValueError, TypeError, AttributeError):
        return 0
