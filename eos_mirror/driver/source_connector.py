"""What the driver does for a flow that is a source connector, and for one that was."""

from collections.abc import Iterable, Mapping
from contextlib import suppress

from eos_mirror.core.assignment import assign
from eos_mirror.core.claims import DeliveryMode
from eos_mirror.core.records import TopicPartition
from eos_mirror.driver.flow_clusters import FlowClusters
from eos_mirror.driver.mm2_workers import Mm2Workers, dedicated_mm2
from eos_mirror.driver.task_reports import TaskStatus
from eos_mirror.errors import TargetUnavailable
from eos_mirror.settings.clients import mode_of
from eos_mirror.settings.model import FlowSettings


class SourceConnector:
    """The source connector of a flow. For a sink, every method but `takes_over` does nothing."""

    def __init__(self, settings: FlowSettings, clusters: FlowClusters) -> None:
        self._settings, self._clusters = settings, clusters
        mm2 = dedicated_mm2(settings.flow)
        self._mm2 = Mm2Workers(settings, mm2, topics=clusters.target_topics)

    def takes_over(self) -> bool:
        """Return True if the start takes over what a source connector, or MirrorMaker 2, copied."""
        settings, noted = self._settings, self._clusters.mode.read()
        if settings.is_source_connector and settings.exactly_once:
            return noted is not DeliveryMode.SOURCE or settings.adopts_source
        return settings.adopts_source and noted is DeliveryMode.SOURCE

    @property
    def needs_election(self) -> bool:
        """True if nothing else keeps the tasks of two runs apart."""
        return mode_of(self._settings) is DeliveryMode.SOURCE

    def refuse_running_mm2(self) -> None:
        """Raise UnsafeError while a MirrorMaker 2 has workers: both would copy."""
        if self._settings.is_source_connector:
            self._mm2.refuse_running()

    def begin(self) -> None:
        """Fence MirrorMaker 2, which may take turns, and note that tasks begin."""
        if not self._settings.is_source_connector:
            return
        self._mm2.fence()
        self._mm2.start()  # `adopt` may have stopped its connectors
        if self.needs_election and self._clusters.mode.was_stopped():
            self._clusters.mode.replace(DeliveryMode.SOURCE)

    def note_stop(self, tasks: Iterable[TaskStatus]) -> None:
        """Note that the tasks have ended, if each of them said so, and if the target answers."""
        if self.needs_election and all(task.has_ended for task in tasks):
            with suppress(TargetUnavailable):
                self._clusters.mode.note_stop()

    def assigned(
        self,
        before: Mapping[TopicPartition, int],
        partitions: Iterable[TopicPartition],
        *,
        slots: int,
    ) -> Mapping[TopicPartition, int]:
        """Return the slot for each partition; nothing if the source group assigns them."""
        if not self._settings.is_source_connector:
            return {}
        return assign(before, list(partitions), slots=slots)
