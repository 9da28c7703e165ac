"""The positions of a flow by source partition, wherever its mode keeps them."""

from collections.abc import Mapping

from eos_mirror.core.records import TopicPartition
from eos_mirror.driver.flow_clusters import FlowClusters
from eos_mirror.errors import SourceUnavailable, TargetUnavailable
from eos_mirror.ports import GroupOffset
from eos_mirror.settings.clients import mode_of
from eos_mirror.settings.model import FlowSettings


class FlowPositions:
    """Reads positions: of the shadow group, the source group, or MirrorMaker 2's topic."""

    def __init__(self, settings: FlowSettings, clusters: FlowClusters) -> None:
        self._settings, self._clusters = settings, clusters

    def read(
        self, pairs: Mapping[TopicPartition, TopicPartition]
    ) -> dict[TopicPartition, GroupOffset]:
        """
        Return positions by source partition; partitions without one are skipped.

        Args:
            pairs: Remote partition by source partition.

        Raises:
            SourceUnavailable, TargetUnavailable: The cluster with the positions did not answer.
        """
        if not self._settings.exactly_once:
            mode = mode_of(self._settings)
            return self._clusters.offsets_by_source(mode).read(list(pairs))
        found = self._clusters.shadow_offsets.read(list(pairs.values()))
        return {source: found[remote] for source, remote in pairs.items() if remote in found}

    def have_reached(
        self, ends: Mapping[TopicPartition, int], pairs: Mapping[TopicPartition, TopicPartition]
    ) -> bool:
        """
        Return True if every partition has reached its end; those without a pair are skipped.

        False while the cluster with the positions does not answer: the tasks wait for it, too.

        Args:
            ends: Next offset by source partition.
            pairs: Remote partition by source partition.
        """
        asked = {source: pairs[source] for source in ends if source in pairs}
        if not asked:
            return True
        try:
            found = self.read(asked)
        except (SourceUnavailable, TargetUnavailable):
            return False
        return all(p in found and found[p].position.next_offset >= ends[p] for p in asked)
