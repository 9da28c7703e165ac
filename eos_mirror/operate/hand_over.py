"""Hands the copies of a flow over to MirrorMaker 2, which continues each where it ends."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eos_mirror.core.claims import DeliveryMode
from eos_mirror.core.connect_offsets import AS_JAVA, records_of
from eos_mirror.core.ledger import Kind
from eos_mirror.core.records import TopicPartition
from eos_mirror.driver.cluster_facts import FlowFacts, gather
from eos_mirror.driver.flow_clusters import FlowClusters, open_clusters
from eos_mirror.driver.ledger import note
from eos_mirror.driver.mm2_workers import Mm2, Mm2Workers
from eos_mirror.driver.topic_sync import TopicSync
from eos_mirror.errors import ConfigError, UnsafeError
from eos_mirror.kafka.client import new_producer
from eos_mirror.kafka.connect_offsets import offsets_topic_spec
from eos_mirror.kafka.topic_writer import BY_KEY, append_records
from eos_mirror.operate.adopt import pairs_of, switch_of, wait_until_nobody_runs
from eos_mirror.ports import GroupOffset, ShadowOffset
from eos_mirror.runtime.control import EventSink
from eos_mirror.settings.clients import claims_producer
from eos_mirror.settings.model import FlowSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class HandedPartition:
    """
    A source partition whose copy MirrorMaker 2 continues.

    Attributes:
        next_offset: Offset with which it continues.
        stored: Next offset that it had stored; None if it had stored none.
    """

    source: TopicPartition
    next_offset: int
    stored: int | None


class HandOver:
    """Hands one flow over. Each step may be interrupted; then all of it is run again."""

    def __init__(self, settings: FlowSettings, mm2: Mm2, *, on_event: EventSink) -> None:
        """
        Args:
            settings: The flow, configured for exactly once.
            mm2: Who continues the copies.
            on_event: Receives events about topics that are created.
        """
        self._settings, self._mm2 = settings, mm2
        self._clusters: FlowClusters = open_clusters(settings)
        self._workers = Mm2Workers(settings, mm2, topics=self._clusters.target_topics)
        self._topics = TopicSync(settings, self._clusters, on_event=on_event)

    def plan(self) -> list[HandedPartition]:
        """
        Return what would be handed over now. Writes nothing.

        Raises:
            RestartTask: A cluster did not answer.
            ConfigError, UnsafeError: There is nothing to hand over.
        """
        facts = self._gather()
        if self._is_done(facts):
            return []
        return self._handed(
            facts, self._clusters.shadow_offsets.read(list(pairs_of(facts).values()))
        )

    def run(self) -> list[HandedPartition]:
        """
        Store the positions of the flow for MirrorMaker 2, then let its connectors start.

        Before they are stored, the flow and its positions are marked: no run starts any more, and
        no task that was suspended continues.

        Returns:
            What was handed over: nothing if it was before.

        Raises:
            UnsafeError: MirrorMaker 2 or the flow runs. Nothing was written.
            ConfigError: The flow never ran.
            RetriableError: A shadow offset stays unstable: transaction markers are lost.
        """
        self._workers.refuse_running()
        wait_until_nobody_runs(self._settings, self._clusters)
        facts = self._gather()
        if self._is_done(facts):
            return []
        with switch_of(self._settings, self._clusters, facts).fenced() as fenced:
            handed = self._handed(facts, fenced.shadows)
            self._note(handed)
            self._clusters.mode.replace(DeliveryMode.HANDED_OVER)
            fenced.mark_handed_over()
            self._store(handed)
        self._workers.start()
        return handed

    def _gather(self) -> FlowFacts:
        flow = self._settings.flow
        facts = gather(
            self._clusters,
            self._topics.plan,
            mode=DeliveryMode.EXACTLY_ONCE,
            within=self._settings.admin_timeout,
        )
        if not facts.has_claims_topic or facts.noted_mode is None:
            raise ConfigError(f"{flow}: it never ran: there is nothing to hand over")
        if facts.noted_mode is DeliveryMode.SOURCE:
            raise UnsafeError(
                f"{flow}: it runs as a source connector, so MirrorMaker 2 has its positions "
                f"already. Stop the run, then start MirrorMaker 2."
            )
        if facts.noted_mode is DeliveryMode.AT_LEAST_ONCE:
            raise UnsafeError(
                f"{flow}: it mirrors at least once. Adopt it with --from mode:alo first: then its "
                f"positions are exact."
            )
        return facts

    def _is_done(self, facts: FlowFacts) -> bool:
        """
        Return whether the flow was handed over to the end.

        Then MirrorMaker 2 may have copied more, and its positions must not be set back.
        """
        if facts.noted_mode is not DeliveryMode.HANDED_OVER:
            return False
        if self._mm2.is_dedicated:
            known = self._workers.facts()
            return known.exists and not known.is_stopped
        pairs = pairs_of(facts)
        shadows = self._clusters.shadow_offsets.read(list(pairs.values()))
        stored = self._workers.positions(list(pairs))
        return all(
            stored.get(source, 0) >= shadows[remote].position.next_offset
            for source, remote in pairs.items()
            if remote in shadows
        )

    def _handed(
        self, facts: FlowFacts, shadows: Mapping[TopicPartition, GroupOffset | ShadowOffset]
    ) -> list[HandedPartition]:
        """
        Return the partitions of which something was copied: others begin as configured.

        If an earlier attempt was interrupted, a position is never set back.
        """
        again = facts.noted_mode is DeliveryMode.HANDED_OVER
        pairs, handed = pairs_of(facts), []
        stored = self._workers.positions(list(pairs))
        for source, remote in pairs.items():
            next_offset = shadows[remote].position.next_offset if remote in shadows else 0
            known = stored.get(source)
            if next_offset > (known or 0 if again else 0):
                handed.append(HandedPartition(source=source, next_offset=next_offset, stored=known))
        return handed

    def _note(self, handed: Sequence[HandedPartition]) -> None:
        details = {
            "mode": DeliveryMode.HANDED_OVER.value,
            "partitions": len(handed),
            "to": "mm2",
            "positions": {str(one.source): one.next_offset for one in handed},
        }
        note(self._settings, self._clusters.target_topics, Kind.MODE, details)

    def _store(self, handed: Sequence[HandedPartition]) -> None:
        settings, topic = self._settings, self._mm2.offsets_topic
        self._clusters.target_topics.ensure(
            offsets_topic_spec(topic, replication_factor=settings.internal_topic_replication_factor)
        )
        producer = new_producer({**claims_producer(settings), **AS_JAVA})
        positions = {one.source: one.next_offset for one in handed}
        records = records_of(positions, self._mm2.owner(settings.flow))
        append_records(producer, topic, records, partition=BY_KEY)
