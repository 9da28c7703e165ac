"""
The offset maps of a flow: whole, or again and again, each time only what is new.

A read_committed reader is held up by the first transaction that is open on the topic: what other
tasks committed behind it is missing, as if it had never been written. Who needs a whole map waits.
"""

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from eos_mirror.core.flow import Flow
from eos_mirror.core.map_window import MapWindow
from eos_mirror.core.metadata import decode
from eos_mirror.core.offset_map import MapTail, OffsetMap
from eos_mirror.core.records import TopicPartition
from eos_mirror.errors import ForeignWriter, TargetUnavailable
from eos_mirror.kafka.compacted import read_compacted
from eos_mirror.kafka.following import FollowedTopic
from eos_mirror.kafka.groups import CommittedOffsets
from eos_mirror.kafka.metadata import ClusterMetadata
from eos_mirror.kafka.retry import retrying
from eos_mirror.ports import UNSTABLE, Unstable

DECIDED_WITHIN = timedelta(seconds=60)
"""A transaction of ours that is open for longer is nobody's: it hangs."""


def whole_map(metadata: ClusterMetadata, flow: Flow, config: Mapping[str, Any]) -> dict[str, bytes]:
    """
    Every record of the offset map topic that was committed before the call, newest value by key.

    Args:
        metadata: Of the target.
        config: Connection to the target and security.

    Raises:
        TargetUnavailable: A transaction that was open on it stays open, or by class.
    """
    log = TopicPartition(flow.offset_map_topic, 0)
    if log.topic not in metadata.topics([log.topic]):
        return {}
    written = metadata.high_watermarks([log])[log]

    def wait_for_markers() -> None:
        stable = metadata.ends([log])[log]
        if stable < written:
            raise TargetUnavailable(
                f"{flow}: {log} cannot be read to its end: a transaction is open since offset "
                f"{stable}. If no task is alive, kafka-transactions.sh find-hanging names its "
                f"producer."
            )

    retrying(wait_for_markers, within=DECIDED_WITHIN)
    return read_compacted(config, log.topic, group=flow.shadow_group)


def map_unless_open(
    metadata: ClusterMetadata, flow: Flow, config: Mapping[str, Any]
) -> dict[str, bytes] | Unstable:
    """
    The same for those who cannot wait: `Unstable` while a transaction is open.

    Raises:
        RestartTask: By class.
    """
    log = TopicPartition(flow.offset_map_topic, 0)
    if log.topic not in metadata.topics([log.topic]):
        return {}
    stable, written = metadata.ends([log])[log], metadata.high_watermarks([log])[log]
    if stable < written:
        return UNSTABLE
    # at a first start nothing was written, and no reader is needed to know that
    return read_compacted(config, log.topic, group=flow.shadow_group) if written else {}


class FollowedMaps:
    """
    Holds of each map what is asked for. One thread uses it.

    Attributes:
        unreadable: Why, by partition, where the last `read` found no whole map.
    """

    def __init__(self, flow: Flow, config: Mapping[str, Any]) -> None:
        """
        Args:
            config: Connection to the target and security.
        """
        self._topic = flow.offset_map_topic
        self._log = FollowedTopic(config, flow.offset_map_topic, group=flow.shadow_group)
        self._tails = CommittedOffsets(config, flow.shadow_group, source=False)
        self._windows: dict[TopicPartition, MapWindow] = {}
        self.unreadable: dict[TopicPartition, str] = {}

    def read(self, lowest: Mapping[TopicPartition, int]) -> dict[TopicPartition, OffsetMap]:
        """
        Maps as of their last commits, of the partitions that were ever mirrored.

        Args:
            lowest: Smallest upstream offset that is to be translated, by remote partition. What
                lies before it may be missing in the map.

        Raises:
            ForeignWriter: A record of the topic is not ours.
            RestartTask: By class.
        """
        # the tails first: what is spilled in between is then known to be newer
        shadows = self._tails.read(list(lowest))
        try:
            tails = {p: MapTail.decode(decode(s.metadata).tail) for p, s in shadows.items()}
            self._follow(lowest)
            if not all(
                self._windows[remote].reaches(lowest[remote], tail.upstream_start)
                for remote, tail in tails.items()
            ):
                self._windows.clear()
                self._log.rewind()
                self._follow(lowest)
        except ValueError as exc:
            raise ForeignWriter(f"{self._topic}: {exc}") from exc
        return self._maps(tails)

    def _maps(self, tails: Mapping[TopicPartition, MapTail]) -> dict[TopicPartition, OffsetMap]:
        found = {}
        self.unreadable = {}
        for remote, tail in tails.items():
            try:
                found[remote] = OffsetMap(self._windows[remote].segments(), tail)
            except ValueError as exc:  # also while a spilled segment waits for its neighbours
                self.unreadable[remote] = str(exc)
        return found

    def _follow(self, lowest: Mapping[TopicPartition, int]) -> None:
        for remote in lowest.keys() | self._windows.keys():
            window = self._windows.setdefault(remote, MapWindow())
            window.lowest = lowest.get(remote)
        for key, value in self._log.news():
            topic, partition, number = json.loads(key)
            if isinstance(number, int):
                remote = TopicPartition(topic, partition)
                self._windows.setdefault(remote, MapWindow()).put(number, value)
        for window in self._windows.values():
            window.trim()
