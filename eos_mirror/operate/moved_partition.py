"""One partition whose position a command moves, while its topic is stopped."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from eos_mirror.core.claims import DeliveryMode
from eos_mirror.core.records import TopicPartition
from eos_mirror.driver.cluster_facts import FlowFacts
from eos_mirror.driver.flow_clusters import FlowClusters, open_clusters
from eos_mirror.driver.topic_sync import TopicSync
from eos_mirror.errors import ConfigError
from eos_mirror.operate.adopt import pairs_of, switch_of
from eos_mirror.operate.fenced_positions import FencedPositions
from eos_mirror.operate.noted_mode import facts_of_this_mode
from eos_mirror.operate.stopped_topic import is_left_stopped, start_left_stopped, stopped_topic
from eos_mirror.ports import ShadowOffset
from eos_mirror.runtime.control import EventSink
from eos_mirror.settings.clients import mode_of
from eos_mirror.settings.model import FlowSettings


class MovedPartition:
    """
    A source partition, its copy, and its position. The flow may run meanwhile.

    Attributes:
        where: Names the partition in messages.
    """

    def __init__(
        self, settings: FlowSettings, source: TopicPartition, command: str, *, on_event: EventSink
    ) -> None:
        """
        Args:
            command: Of this program; the order that stops the topic names it.
            on_event: Receives events about topics that are created.
        """
        self.settings, self.source, self._command = settings, source, command
        self.clusters: FlowClusters = open_clusters(settings)
        self.where = f"{settings.flow} {source}"
        self._topics = TopicSync(settings, self.clusters, on_event=on_event)

    def found(self) -> tuple[TopicPartition, ShadowOffset | None]:
        """
        Return the remote partition, and its shadow offset now. Writes nothing.

        Raises:
            ConfigError: The partition is not mirrored, or the flow mirrors at least once.
            UnsafeError: The flow runs in another mode.
            RestartTask: A cluster did not answer.
        """
        remote = self._remote(self._gather())
        found = self.clusters.shadow_offsets.read([remote]).get(remote)
        if found is None:
            return remote, None
        return remote, ShadowOffset(position=found.position, metadata=found.metadata)

    def started(self, shadow: ShadowOffset | None) -> ShadowOffset:
        """
        Return the shadow offset.

        Raises:
            ConfigError: There is none.
        """
        if shadow is None:
            raise ConfigError(f"{self.where}: nothing was mirrored yet")
        return shadow

    @contextmanager
    def fenced(self, reason: str) -> Iterator[tuple[TopicPartition, FencedPositions]]:
        """
        Stop the topic, claim the partition, and yield it with the positions.

        Args:
            reason: In the words of the operator; may be empty.

        Raises:
            UnsafeError: The run of the flow has not stopped the topic in time; it stays ordered.
            Others: As `found`.
        """
        facts = self._gather()
        remote, topic = self._remote(facts), self.source.topic
        with stopped_topic(self.settings, self.clusters, topic, self._command, reason):
            switch = switch_of(self.settings, self.clusters, facts)
            with replace(switch, pairs={self.source: remote}).fenced() as fenced:
                yield remote, fenced

    def is_left_stopped(self) -> bool:
        """Return whether an interrupted run of this command has left the topic stopped."""
        topic = self.source.topic
        return is_left_stopped(self.settings, self.clusters, topic, self._command)

    def start_left_stopped(self) -> bool:
        """Start the topic if such a run has stopped it, and return whether it has."""
        topic = self.source.topic
        return start_left_stopped(self.settings, self.clusters, topic, self._command)

    def _gather(self) -> FlowFacts:
        flow = self.settings.flow
        if mode_of(self.settings) is not DeliveryMode.EXACTLY_ONCE:
            raise ConfigError(
                f"{flow}: at least once, its positions are the offsets of group "
                f"{flow.source_group} on {flow.source}: stop the flow, and set them with "
                f"kafka-consumer-groups.sh --reset-offsets"
            )
        return facts_of_this_mode(self.settings, self.clusters, self._topics)

    def _remote(self, facts: FlowFacts) -> TopicPartition:
        remote = pairs_of(facts).get(self.source)
        if remote is None:
            raise ConfigError(f"{self.settings.flow}: it does not mirror {self.source}")
        return remote
