"""The workers of a MirrorMaker 2: sees if they run, fences their tasks, stops their connectors."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from eos_mirror.core.claims import DeliveryMode
from eos_mirror.core.connect_connectors import (
    CHECKPOINT_CONNECTOR,
    ConnectorFacts,
    ConnectRecord,
    connector_facts,
    records_that_start,
    records_that_stop,
)
from eos_mirror.core.connect_offsets import SOURCE_CONNECTOR, Owner, next_offsets, offsets_topic
from eos_mirror.core.flow import Flow
from eos_mirror.core.records import TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.driver.lane import lane_of
from eos_mirror.errors import RetriableError, UnsafeError
from eos_mirror.kafka.client import new_producer
from eos_mirror.kafka.deadline import Deadline
from eos_mirror.kafka.groups import hosts_of_members
from eos_mirror.kafka.retry import retrying
from eos_mirror.kafka.topic_reader import TopicReader, read_log
from eos_mirror.kafka.topic_writer import append_records
from eos_mirror.kafka.topics import Topics
from eos_mirror.settings.clients import claims_producer, target_admin, task_config
from eos_mirror.settings.model import FlowSettings

SESSION_ENDS: Final = timedelta(seconds=15)
"""After this, a worker that is gone is no member any more: its default session lasts 10 s."""

FENCED_WITHIN: Final = timedelta(seconds=60)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mm2:
    """
    A MirrorMaker 2, as Kafka Connect names what belongs to it.

    Attributes:
        connector: Name of its source connector.
        group: Group of its workers.
        offsets_topic: Where it stores its positions.
        config_topic: Where it stores the state of its connectors.
        is_dedicated: The workers run nothing else: none of them may be alive, and this program
            stops and starts their connectors. On a Connect cluster their owner does.
    """

    connector: str
    group: str
    offsets_topic: str
    config_topic: str
    is_dedicated: bool = False

    def owner(self, flow: Flow) -> Owner:
        """Return whose positions it stores for a flow."""
        return Owner(self.connector, flow.source)

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


def source_connector(settings: FlowSettings, *, topics: Topics) -> "Mm2Workers":
    """Return a flow that ran as a source connector, whose positions are those of MirrorMaker 2."""
    return Mm2Workers(
        settings,
        dedicated_mm2(settings.flow),
        topics=topics,
        name="the source connector",
        code="mode:source",
        mode=DeliveryMode.SOURCE,
    )


class Mm2Workers:
    """
    The workers of one MirrorMaker 2, seen from the target, where they keep their state.

    They are an `Origin`.
    """

    def __init__(
        self,
        settings: FlowSettings,
        mm2: Mm2,
        *,
        topics: Topics,
        name: str = "MirrorMaker 2",
        code: str = "mm2",
        mode: DeliveryMode | None = None,
    ) -> None:
        """
        Args:
            topics: Of the target.
            name, code, mode: See `Origin`; a source connector of ours has the same positions.
        """
        self.name, self.code, self.mode = name, code, mode
        self._settings, self._mm2, self._topics = settings, mm2, topics

    def refuse_running(self) -> None:
        """
        Refuse while MirrorMaker 2 may write.

        A dedicated worker that was killed stays a member of its group until its session ends.

        Raises:
            UnsafeError: A dedicated worker is alive, or the connector of a Connect cluster is
                neither stopped nor deleted.
        """
        if self._mm2.is_dedicated:
            self._refuse_members()
        else:
            self._refuse_connector()

    def _refuse_members(self) -> None:
        flow, hosts = self._settings.flow, set[str]()

        def until_none_is_left(_: Deadline) -> None:
            nonlocal hosts
            hosts = hosts_of_members(self._topics.admin, self._mm2.group, side=Side.TARGET)
            if hosts:
                raise RetriableError("members are left")

        with suppress(RetriableError):
            retrying(until_none_is_left, within=SESSION_ENDS)
            return
        raise UnsafeError(
            f"{flow}: MirrorMaker 2 runs: group {self._mm2.group} on {flow.target} has members "
            f"({', '.join(sorted(hosts))}). Stop it first."
        )

    def _refuse_connector(self) -> None:
        name, facts = self._mm2.connector, self.facts()
        if facts.exists and not facts.is_stopped:
            raise UnsafeError(
                f"{self._settings.flow}: connector {name} is not stopped, says "
                f"{self._mm2.config_topic}. Stop it with PUT /connectors/{name}/stop, or delete "
                f"it first."
            )

    def positions(self, sources: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """See `Origin`."""
        flow = self._settings.flow
        target = target_admin(self._settings)
        topic = TopicReader(target, self._mm2.offsets_topic, group=flow.shadow_group)
        stored = next_offsets(topic.updates(), self._mm2.owner(flow))
        return {one: stored[one] for one in sources if one in stored}

    def facts(self) -> ConnectorFacts:
        """Return what the config topic says of the source connector; nothing without the topic."""
        return connector_facts(self._config_records(), self._mm2.connector)

    def _config_records(self) -> list[tuple[str, bytes | None]]:
        flow = self._settings.flow
        return read_log(
            target_admin(self._settings), self._mm2.config_topic, group=flow.shadow_group
        )

    def fence(self) -> bool:
        """
        Fence every task that ever wrote exactly once; False if there is none.

        A task that is started again has its id again: see `stop`.

        Raises:
            RetriableError: An id is still in use by a transaction that does not end.
        """
        ids = self._mm2.transactional_ids(self.facts().tasks_ever)
        lane = lane_of(task_config(self._settings, slot=0, claims_topic_id=""))

        def until_fenced(_: Deadline) -> None:
            if left := set(ids) - lane.fence(ids):
                raise RetriableError(f"not fenced: {', '.join(sorted(left))}")

        if ids:
            retrying(until_fenced, within=FENCED_WITHIN)
        return bool(ids)

    def stop(self) -> None:
        """
        Stop the connectors of dedicated workers: if these start again, they run no task.

        A worker that was suspended reads it when it continues.

        Raises:
            TargetUnavailable: It is not known if it was written.
            NotAuthorized: WRITE on the config topic is missing.
        """
        self._write(records_that_stop)

    def start(self) -> None:
        """Start the connectors that `stop` has stopped. Errors: as `stop`."""
        if self.facts().is_stopped:
            self._write(records_that_start)

    def _write(self, records_for: Callable[[str], list[ConnectRecord]]) -> None:
        """Write the state of the connectors that exist."""
        if not self._mm2.is_dedicated:
            return
        known = self._config_records()
        records = [
            record
            for name in (self._mm2.connector, CHECKPOINT_CONNECTOR)
            if connector_facts(known, name).exists
            for record in records_for(name)
        ]
        if records:
            producer = new_producer(claims_producer(self._settings))
            append_records(producer, self._mm2.config_topic, records)
