"""The offset maps of a flow, read again and again: each time only what is new."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from eos_mirror.core.flow import Flow
from eos_mirror.core.metadata import decode
from eos_mirror.core.offset_map import MapTail, OffsetMap, Segment, decode_segment
from eos_mirror.core.records import TopicPartition
from eos_mirror.errors import ForeignWriter
from eos_mirror.kafka.following import FollowedTopic
from eos_mirror.kafka.groups import CommittedOffsets


class FollowedMaps:
    """
    One thread uses it.

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
        self._segments: dict[TopicPartition, dict[int, Segment]] = {}
        self._maps: dict[TopicPartition, tuple[bytes, OffsetMap]] = {}
        self.unreadable: dict[TopicPartition, str] = {}

    def read(self, remotes: Sequence[TopicPartition]) -> dict[TopicPartition, OffsetMap]:
        """
        The maps of these partitions, as of their last commits; of those that were ever mirrored.

        Raises:
            ForeignWriter: A record of the topic is not ours.
            RestartTask: By class.
        """
        # the tails first: what is spilled in between is then known to be newer
        tails = self._tails.read(remotes)
        self._follow()
        found = {}
        self.unreadable = {}
        for remote, shadow in tails.items():
            try:
                found[remote] = self._map(remote, decode(shadow.metadata).tail)
            except ValueError as exc:  # also while a spilled segment waits for its neighbours
                self.unreadable[remote] = str(exc)
        return found

    def _map(self, remote: TopicPartition, tail: bytes) -> OffsetMap:
        known = self._maps.get(remote)
        if known is None or known[0] != tail:
            segments = self._segments.get(remote, {}).values()
            known = self._maps[remote] = (tail, OffsetMap(segments, MapTail.decode(tail)))
        return known[1]

    def _follow(self) -> None:
        for key, value in self._log.news():
            try:
                topic, partition, number = json.loads(key)
                if isinstance(number, int):
                    segments = self._segments.setdefault(TopicPartition(topic, partition), {})
                    if value is None:
                        segments.pop(number, None)
                    else:
                        segments[number] = decode_segment(value)
            except (TypeError, ValueError) as exc:
                raise ForeignWriter(f"{self._topic}: {exc}") from exc
