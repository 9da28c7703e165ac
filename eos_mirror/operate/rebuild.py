"""Finds the positions of a flow again whose shadow offsets are lost."""

from collections.abc import Sequence

from eos_mirror.core.claims import DeliveryMode
from eos_mirror.core.map_records import segments_of, start_of
from eos_mirror.core.records import TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.driver.cluster_facts import FlowFacts, gather
from eos_mirror.driver.flow_clusters import FlowClusters
from eos_mirror.driver.topic_sync import TopicSync
from eos_mirror.errors import ConfigError, UnsafeError
from eos_mirror.kafka.metadata import ClusterMetadata
from eos_mirror.kafka.offset_maps import whole_map
from eos_mirror.operate.adopt import pairs_of, switch_of
from eos_mirror.settings.clients import target_admin
from eos_mirror.settings.model import FlowSettings


class MapOrigin:
    """
    The flow itself, as an `Origin` of its own copies: of what it knew, its offset map is left.

    The end of the map is where a copy had come at least. The records of the copy say how much
    further.
    """

    def __init__(self, settings: FlowSettings, clusters: FlowClusters) -> None:
        """
        Args:
            settings: The flow, configured for exactly once.
        """
        self.name, self.code = "the offset map", "map"
        self.mode: DeliveryMode | None = None
        self._settings, self._clusters = settings, clusters
        self._topics = TopicSync(settings, clusters, on_event=lambda *_: None)

    def refuse_running(self) -> None:
        """See `Origin`: that no task runs is checked for every origin."""

    def fence(self) -> bool:
        """See `Origin`: its earlier writers are fenced by a claim of every partition."""
        with switch_of(self._settings, self._clusters, self._facts()).fenced():
            return True

    def stop(self) -> None:
        """See `Origin`."""

    def start(self) -> None:
        """See `Origin`."""

    def positions(self, sources: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """
        Return where the offset map of each partition ends. See `Origin`.

        Raises:
            ConfigError: The flow has no offset map.
            UnsafeError: A copy has records, and nothing of it is in the map: its writer is not
                fenced by our claims.
        """
        facts, flow = self._facts(), self._settings.flow
        target, pairs = target_admin(self._settings), pairs_of(facts)
        ends = {one.remote: one.end for one in facts.partitions}
        entries = whole_map(ClusterMetadata(target, side=Side.TARGET), flow, target)
        found = {}
        for source in sources:
            segments, start = segments_of(entries, pairs[source]), start_of(entries, pairs[source])
            if segments:
                found[source] = segments[-1].upstream_end
            elif start is not None:
                found[source] = start.next_offset
            elif ends.get(pairs[source]):
                raise UnsafeError(
                    f"{flow} {source}: {pairs[source]} has records, and the offset map has none of "
                    f"them: another program wrote them. Take its copy over with `adopt`, or "
                    f"exclude the topic."
                )
        return found

    def _facts(self) -> FlowFacts:
        facts = gather(
            self._clusters,
            self._topics.plan,
            mode=DeliveryMode.EXACTLY_ONCE,
            within=self._settings.admin_timeout,
        )
        if facts.noted_mode is not DeliveryMode.EXACTLY_ONCE:
            raise ConfigError(
                f"{self._settings.flow}: it has never mirrored exactly once, so it has no offset "
                f"map. `adopt` takes over copies of other programs."
            )
        return facts
