"""Lets a topic be mirrored again from its start: deletes its copy, and forgets its positions."""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from eos_mirror.core.claims import DeliveryMode
from eos_mirror.core.ledger import Kind
from eos_mirror.core.plan import Route
from eos_mirror.core.records import TopicPartition
from eos_mirror.driver.cluster_facts import gather
from eos_mirror.driver.flow_clusters import FlowClusters, open_clusters
from eos_mirror.driver.ledger import note
from eos_mirror.driver.topic_sync import TopicSync
from eos_mirror.errors import ConfigError, RetriableError, UnsafeError
from eos_mirror.kafka.deadline import Deadline
from eos_mirror.kafka.retry import retrying
from eos_mirror.operate.adopt import switch_of, wait_until_nobody_runs
from eos_mirror.operate.flow_run import is_run_now
from eos_mirror.runtime.control import EventSink
from eos_mirror.settings.clients import mode_of
from eos_mirror.settings.model import FlowSettings

GONE_WITHIN: Final = timedelta(seconds=30)
"""Brokers delete a topic after they have acknowledged it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """
    What is deleted.

    Attributes:
        end: Sum of the high watermarks of the remote topic; 0 if it does not exist.
    """

    topic: str
    remote: str
    partitions: int
    end: int


class TopicReset:
    """Resets one topic of a flow. It may be interrupted, and run again."""

    def __init__(self, settings: FlowSettings, topic: str, *, on_event: EventSink) -> None:
        """
        Args:
            topic: Name on the source.
            on_event: Receives events about topics that are created.
        """
        self._settings, self._topic = settings, topic
        self._clusters: FlowClusters = open_clusters(settings)
        self._topics = TopicSync(settings, self._clusters, on_event=on_event)

    def plan(self) -> Copy:
        """
        Return what would be deleted. Writes nothing.

        Raises:
            ConfigError: The flow does not mirror the topic, or it mirrors at least once.
            RestartTask: A cluster did not answer.
        """
        flow = self._settings.flow
        if mode_of(self._settings) is not DeliveryMode.EXACTLY_ONCE:
            raise ConfigError(
                f"{flow}: at least once, follow the steps of docs/operations.md, "
                f'"Mirror a topic again from its start"'
            )
        route = self._route()
        on_target = self._clusters.target_topics.list(within=self._settings.admin_timeout)
        if flow.claims_topic not in on_target:
            raise ConfigError(f"{flow}: it never ran: there is nothing to reset")
        remotes = [
            TopicPartition(route.remote_topic, number)
            for number in range(on_target.get(route.remote_topic, 0))
        ]
        ends = self._clusters.target.ends(remotes) if remotes else {}
        return Copy(
            topic=self._topic,
            remote=route.remote_topic,
            partitions=len(remotes),
            end=sum(one.written for one in ends.values()),
        )

    def run(self, *, reason: str) -> Copy:
        """
        Delete the copy and the positions. The next run mirrors the topic from `start.position`.

        Every earlier writer is fenced first. The ledger has an entry before anything is deleted.

        Raises:
            UnsafeError: A run mirrors the flow. Nothing was deleted.
            NotAuthorized: Delete on the remote topic is denied. Nothing was deleted.
            Others: As `plan`.
        """
        self._refuse_run()
        copy = self.plan()
        within = self._settings.admin_timeout
        facts = gather(
            self._clusters, self._topics.plan, mode=mode_of(self._settings), within=within
        )
        pairs = {
            TopicPartition(self._topic, number): TopicPartition(copy.remote, number)
            for number in range(max(copy.partitions, self._route().partitions))
        }
        switch = replace(switch_of(self._settings, self._clusters, facts), pairs=pairs)
        with switch.forgotten():
            details = {"topic": copy.topic, "remote": copy.remote, "end": copy.end}
            topics = self._clusters.target_topics
            note(self._settings, topics, Kind.RESET, {**details, "reason": reason})
            self._delete(copy.remote)
        return copy

    def _refuse_run(self) -> None:
        """A run takes the deletion of a copy that it mirrors for a loss."""
        flow = self._settings.flow
        if is_run_now(self._settings, self._clusters):
            raise UnsafeError(
                f"{flow}: a run mirrors it. Stop every run of the flow, also the standby runs, "
                f"then reset the topic, then start the run."
            )
        wait_until_nobody_runs(self._settings, self._clusters)

    def _route(self) -> Route:
        on_source = self._clusters.source_topics.list(within=self._settings.admin_timeout)
        on_target = self._clusters.target_topics.list(within=self._settings.admin_timeout)
        plan = self._topics.plan(on_source, on_target)
        for route in plan.routes:
            if route.source_topic == self._topic:
                return route
        why = plan.refused.get(self._topic)
        raise ConfigError(
            f"{self._settings.flow}: it does not mirror {self._topic}"
            + (f": {why}" if why is not None else "")
        )

    def _delete(self, remote: str) -> None:
        topics = self._clusters.target_topics

        def until_gone(_: Deadline) -> None:
            if remote in topics.list():
                raise RetriableError(f"{remote} is not deleted yet")

        if remote in topics.list():
            for refusal in topics.delete([remote]).values():
                raise refusal
            retrying(until_gone, within=GONE_WITHIN)
