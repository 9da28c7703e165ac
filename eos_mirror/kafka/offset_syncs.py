"""
Offset syncs of the at-least-once mode, on the target: written by tasks, read by the group task.

Source: KIP-382; Kafka's OffsetSyncWriter and OffsetSyncStore.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from eos_mirror.core.internal_records import OffsetSync
from eos_mirror.core.offset_syncs import Sync, SyncStore
from eos_mirror.core.records import TopicPartition
from eos_mirror.core.retries import Retries
from eos_mirror.kafka.best_effort import BestEffortTopic
from eos_mirror.kafka.following import FollowedTopic
from eos_mirror.kafka.metadata import ClusterMetadata


class KafkaOffsetSyncs:
    """What `replication/adapters.py` calls `OffsetSyncs`."""

    def __init__(self, metadata: ClusterMetadata, topic: BestEffortTopic) -> None:
        """
        Args:
            metadata: Of the target.
        """
        self._metadata = metadata
        self._topic = topic

    def pairs(
        self, positions: Mapping[TopicPartition, tuple[TopicPartition, int]]
    ) -> list[OffsetSync]:
        """See there."""
        ends = self._metadata.ends(list(positions))
        return [
            OffsetSync(partition=source, upstream=position, downstream=ends[remote])
            for remote, (source, position) in positions.items()
        ]

    def write(self, pairs: Sequence[OffsetSync]) -> bool:
        """See there."""
        have_arrived = [self._topic.write(pair.key, pair.value) for pair in pairs]
        return any(have_arrived)


class FollowedSyncs:
    """
    Reads them again and again: each time only what is new.

    Attributes:
        unreadable: Records of others in the topic.
        reasons: By remote partition, why nobody knew at the last `read` where the copy ends.
    """

    def __init__(self, config: Mapping[str, Any], topic: str, *, group: str) -> None:
        """
        Args:
            config: Connection to the target and security.
            group: One that this principal may describe. It is never joined.
        """
        self._topic = FollowedTopic(config, topic, group=group)
        self._metadata = ClusterMetadata(config, source=False)
        self._stores: dict[TopicPartition, SyncStore] = {}
        self._is_loaded = False
        self.unreadable = 0
        self.reasons: dict[TopicPartition, str] = {}
        self._retries = Retries()

    def read(
        self, partitions: Mapping[TopicPartition, TopicPartition]
    ) -> dict[TopicPartition, tuple[SyncStore, int]]:
        """
        What is known of these partitions, and where their copies end. A partition without an end
        is left out: see `reasons`.

        Args:
            partitions: Remote partition by source partition.

        Raises:
            RestartTask: By class.
        """
        for key, value in self._topic.news():
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
                store.clear(sync)  # nothing older: who was told of it could be sent back
        self._is_loaded = True
        known = [source for source in partitions if source in self._stores]
        ends = self._ends([partitions[source] for source in known])
        return {
            remote: (self._stores[source], ends[remote])
            for source in known
            if (remote := partitions[source]) in ends
        }

    def _ends(self, remotes: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        """A copy without a leader is not asked each time: the question takes some seconds."""
        now_s = time.monotonic()
        waiting = self._retries.waiting(map(str, remotes), now_s=now_s)
        self.reasons = {one: waiting[str(one)] for one in remotes if str(one) in waiting}
        asked = [one for one in remotes if one not in self.reasons]
        ends, reasons = self._metadata.ends_or_reasons(asked)
        for remote, reason in reasons.items():
            self.reasons[remote] = str(reason)
            self._retries.refused(str(remote), str(reason), now_s=now_s)
        self._retries.accepted(map(str, ends))
        return ends
