"""Reads the offset map of one partition from the target."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from eos_mirror.core.flow import Flow
from eos_mirror.core.map_records import segments_of, start_of
from eos_mirror.core.metadata import decode
from eos_mirror.core.offset_map import MapTail, OffsetMap
from eos_mirror.core.records import TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.errors import MirrorError
from eos_mirror.kafka.groups import CommittedOffsets
from eos_mirror.kafka.metadata import ClusterMetadata
from eos_mirror.kafka.offset_maps import whole_map
from eos_mirror.kafka.retry import retrying


@dataclass(frozen=True, slots=True, kw_only=True)
class MapReader:
    """Reads offset maps of one flow. `client_config` connects to the target."""

    flow: Flow
    client_config: Mapping[str, Any]

    def load(self, remote: TopicPartition) -> OffsetMap:
        """
        Return the whole map of a partition, as of its last commit.

        Raises:
            MirrorError: The partition was never mirrored, or its map is damaged.
        """
        # the tail first: a segment that is spilled meanwhile is then known to be newer
        tail = self._tail(remote)
        metadata = ClusterMetadata(self.client_config, side=Side.TARGET)
        entries = whole_map(metadata, self.flow, self.client_config)
        try:
            return OffsetMap(segments_of(entries, remote), tail)
        except ValueError as exc:
            raise MirrorError(f"{self.flow} {remote}: {exc}") from exc

    def taken_over(self, remote: TopicPartition) -> int:
        """Return the end of a copy when the flow took it over; 0 if the flow made all of it."""
        metadata = ClusterMetadata(self.client_config, side=Side.TARGET)
        start = start_of(whole_map(metadata, self.flow, self.client_config), remote)
        return 0 if start is None else start.downstream

    def _tail(self, remote: TopicPartition) -> MapTail:
        offsets = CommittedOffsets(
            self.client_config, self.flow.shadow_group, side=Side.TARGET, stable=True
        )
        shadow = retrying(partial(offsets.read, [remote])).get(remote)
        if shadow is None:
            raise MirrorError(f"{self.flow} {remote}: nothing was mirrored to it yet")
        try:
            return MapTail.decode(decode(shadow.metadata).tail)
        except ValueError as exc:
            raise MirrorError(f"{self.flow} {remote}: {exc}") from exc
