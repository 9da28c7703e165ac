"""
Offset syncs of at-least-once mode, on the target.

Mirror tasks write them, the checkpoint task reads them.

Source: KIP-382; Kafka's OffsetSyncWriter and OffsetSyncStore.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from eos_mirror.core.internal_records import OffsetSync
from eos_mirror.core.offset_syncs import Sync, SyncStore
from eos_mirror.core.records import TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.kafka.metadata import ClusterMetadata
from eos_mirror.kafka.spaced_offsets import SpacedOffsets
from eos_mirror.kafka.topic_reader import TopicReader
from eos_mirror.kafka.topic_writer import BestEffortWriter


class KafkaOffsetSyncs:
    """Implements `OffsetSyncs` of `replication/adapters.py`."""

    def __init__(self, metadata: ClusterMetadata, topic: BestEffortWriter) -> None:
        """
        Args:
            metadata: Metadata client of the target.
        """
        self._metadata = metadata
        self._topic = topic

    def pairs(
        self, positions: Mapping[TopicPartition, tuple[TopicPartition, int]]
    ) -> list[OffsetSync]:
        """See `OffsetSyncs.pairs`."""
        ends = self._metadata.ends(list(positions))
        return [
            OffsetSync(partition=source, upstream=position, downstream=ends[remote])
            for remote, (source, position) in positions.items()
        ]

    def write(self, pairs: Sequence[OffsetSync]) -> bool:
        """See `OffsetSyncs.write`."""
        have_arrived = [self._topic.write(pair.key, pair.value) for pair in pairs]
        return any(have_arrived)


class FollowedSyncs:
    """
    Reads offset syncs repeatedly, each time only new records.

    Attributes:
        unreadable: Number of records in the topic that are no offset syncs.
        reasons: Why the end of the copy was unknown at the last `read`, by remote partition.
    """

    def __init__(self, config: Mapping[str, Any], topic: str, *, group: str) -> None:
        """
        Args:
            config: Client settings for connection to the target and security.
            group: A group that this principal may describe. It is never joined.
        """
        self._topic = TopicReader(config, topic, group=group)
        self._ends = SpacedOffsets(ClusterMetadata(config, side=Side.TARGET).ends_or_reasons)
        self._stores: dict[TopicPartition, SyncStore] = {}
        self._is_loaded = False
        self.unreadable = 0
        self.reasons: dict[TopicPartition, str] = {}

    def read(
        self, partitions: Mapping[TopicPartition, TopicPartition]
    ) -> dict[TopicPartition, tuple[SyncStore, int]]:
        """
        Return, by remote partition, the known syncs and the end of the copy.

        A partition without a known end is skipped: see `reasons`.

        Args:
            partitions: Remote partition by source partition.

        Raises:
            RestartTask: The target did not answer (TargetUnavailable).
        """
        for key, value in self._topic.updates():
            try:
                one = OffsetSync.decode(key, value)
            except ValueError:
                self.unreadable += 1
                continue
            sync = Sync(one.upstream, one.downstream)
            store = self._stores.get(one.partition)
            if store is None:
                self._stores[one.partition] = SyncStore(sync)
            elif self._is_loaded:
                store.add(sync)
            else:
                # keep nothing older: a group that already has a checkpoint could be sent back
                store.clear(sync)
        self._is_loaded = True
        known = [source for source in partitions if source in self._stores]
        ends, self.reasons = self._ends.read([partitions[source] for source in known])
        return {
            remote: (self._stores[source], ends[remote])
            for source in known
            if (remote := partitions[source]) in ends
        }
