"""
The offset maps of a flow: whole, or again and again, each time only what is new.

A read_committed reader is held up by the first transaction that is open on the topic: what other
tasks committed behind it is missing, as if it had never been written. Who needs a whole map waits.
"""

from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any

from eos_mirror.core.flow import Flow
from eos_mirror.core.map_records import place_of
from eos_mirror.core.map_window import MapWindow
from eos_mirror.core.metadata import decode
from eos_mirror.core.offset_map import MapTail, OffsetMap
from eos_mirror.core.records import TopicPartition
from eos_mirror.errors import TargetUnavailable
from eos_mirror.kafka.following import FollowedTopic
from eos_mirror.kafka.groups import CommittedOffsets
from eos_mirror.kafka.metadata import ClusterMetadata
from eos_mirror.kafka.retry import retrying
from eos_mirror.kafka.topic_reader import read_compacted
from eos_mirror.ports import UNSTABLE, GroupOffset, Unstable

DECIDED_WITHIN = timedelta(seconds=60)
"""A transaction of ours that is open for longer is nobody's: it hangs."""


NOT_WHOLE = "its offset map is not whole; `eos-mirror translate` says what is missing"
"""Without numbers, which are others each time: a reason is reported when it changes."""


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
        reasons: By remote partition, why the last `read` found no whole map.
    """

    def __init__(self, flow: Flow, config: Mapping[str, Any]) -> None:
        """
        Args:
            config: Connection to the target and security.
        """
        self._log = FollowedTopic(config, flow.offset_map_topic, group=flow.shadow_group)
        self._tails = CommittedOffsets(config, flow.shadow_group, source=False)
        self._windows: dict[TopicPartition, MapWindow] = {}
        self.reasons: dict[TopicPartition, str] = {}

    def read(self, lowest: Mapping[TopicPartition, int]) -> dict[TopicPartition, OffsetMap]:
        """
        Maps as of their last commits, of the partitions that were ever mirrored. One that cannot
        be read is left out: see `reasons`.

        Args:
            lowest: Smallest upstream offset that is to be translated, by remote partition. What
                lies before it may be missing in the map.

        Raises:
            RestartTask: By class.
        """
        # the tails first: what is spilled in between is then known to be newer
        shadows, denied = self._tails.read_or_reasons(list(lowest))
        self.reasons = {remote: str(reason) for remote, reason in denied.items()}
        tails = self._decoded(shadows)
        self._follow(lowest)
        if not all(self._reaches(remote, lowest[remote], tail) for remote, tail in tails.items()):
            self._windows.clear()
            self._log.rewind()
            self._follow(lowest)
        return self._maps(tails)

    def _decoded(
        self, shadows: Mapping[TopicPartition, GroupOffset]
    ) -> dict[TopicPartition, MapTail]:
        tails = {}
        for remote, shadow in shadows.items():
            try:
                tails[remote] = MapTail.decode(decode(shadow.metadata).tail)
            except ValueError as exc:
                self.reasons[remote] = str(exc)
        return tails

    def _reaches(self, remote: TopicPartition, lowest: int, tail: MapTail) -> bool:
        """Reading again does not help a map that is damaged."""
        try:
            return self._windows[remote].reaches(lowest, tail.upstream_start)
        except ValueError:
            return True

    def _maps(self, tails: Mapping[TopicPartition, MapTail]) -> dict[TopicPartition, OffsetMap]:
        found = {}
        for remote, tail in tails.items():
            try:
                found[remote] = OffsetMap(self._windows[remote].segments(), tail)
            except ValueError:  # also while a spilled segment waits for its neighbours
                self.reasons[remote] = NOT_WHOLE
        return found

    def _follow(self, lowest: Mapping[TopicPartition, int]) -> None:
        for remote in lowest.keys() | self._windows.keys():
            window = self._windows.setdefault(remote, MapWindow())
            window.lowest = lowest.get(remote)
        for key, value in self._log.news():
            place = place_of(key)
            if place is not None and isinstance(place[1], int):
                remote, number = place[0], place[1]
                with suppress(ValueError):  # said where the map is read
                    self._windows.setdefault(remote, MapWindow()).put(number, value)
        for window in self._windows.values():
            with suppress(ValueError):
                window.trim()
