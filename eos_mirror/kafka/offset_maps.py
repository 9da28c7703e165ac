"""
Reads the offset maps of a flow: whole, or repeatedly, each time only new records.

A read_committed reader stops at the first transaction that is open on the topic. Records that other
tasks committed after it are missing, as if they had never been written. A caller that needs a whole
map waits.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

from eos_mirror.core.flow import Flow
from eos_mirror.core.map_records import place_of
from eos_mirror.core.map_window import MapWindow
from eos_mirror.core.metadata import decode
from eos_mirror.core.offset_map import MapTail, OffsetMap
from eos_mirror.core.records import TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.errors import RestartTask, TargetUnavailable
from eos_mirror.kafka.deadline import Deadline
from eos_mirror.kafka.groups import CommittedOffsets
from eos_mirror.kafka.metadata import ClusterMetadata
from eos_mirror.kafka.retry import retrying
from eos_mirror.kafka.topic_reader import TopicReader, read_compacted
from eos_mirror.ports import UNSTABLE, GroupOffset, Unstable

DECIDED_WITHIN = timedelta(seconds=60)
"""A transaction of ours that is open for longer has no producer any more: it hangs."""


NOT_WHOLE = "its offset map is not whole; `eos-mirror translate` says what is missing"
"""It contains no numbers, which differ each time: a reason is reported when it changes."""


def whole_map(metadata: ClusterMetadata, flow: Flow, config: Mapping[str, Any]) -> dict[str, bytes]:
    """
    Return the offset map topic as committed before the call: newest value by key.

    Args:
        metadata: Metadata client of the target.
        config: Client settings for connection to the target and security.

    Raises:
        TargetUnavailable: A transaction on the topic stays open, or the target did not answer.
    """
    log = TopicPartition(flow.offset_map_topic, 0)
    if log.topic not in metadata.topics([log.topic]):
        return {}
    with _known_soon():
        written = metadata.high_watermarks([log])[log]

    def wait_for_markers(_: Deadline) -> None:
        with _known_soon():
            stable = metadata.ends([log])[log]
        if stable < written:
            raise TargetUnavailable(
                f"{flow}: {log} cannot be read to its end: a transaction is open since offset "
                f"{stable}. If no task is alive, kafka-transactions.sh find-hanging "
                f"--max-transaction-timeout 1 names its producer."
            )

    retrying(wait_for_markers, within=DECIDED_WITHIN)
    return read_compacted(config, log.topic, group=flow.shadow_group)


def map_unless_open(
    metadata: ClusterMetadata, flow: Flow, config: Mapping[str, Any]
) -> dict[str, bytes] | Unstable:
    """
    Return the same as `whole_map`, but do not wait; `Unstable` while a transaction is open.

    Raises:
        RestartTask: The target did not answer (TargetUnavailable).
    """
    log = TopicPartition(flow.offset_map_topic, 0)
    if log.topic not in metadata.topics([log.topic]):
        return {}
    with _known_soon():
        stable, written = metadata.ends([log])[log], metadata.high_watermarks([log])[log]
    if stable < written:
        return UNSTABLE
    # at a first start nothing was written, so no reader is needed
    return read_compacted(config, log.topic, group=flow.shadow_group) if written else {}


@contextmanager
def _known_soon() -> Iterator[None]:
    """
    Turn "unknown topic" into an outage, which is asked again.

    The topic exists, as another broker just said. It is new, and the leader does not know it yet.
    """
    try:
        yield
    except TargetUnavailable:
        raise
    except RestartTask as exc:
        raise TargetUnavailable(str(exc)) from exc


class FollowedMaps:
    """
    Holds the needed part of each offset map. Used by one thread.

    Attributes:
        reasons: Why the last `read` found no whole map, by remote partition.
    """

    def __init__(self, flow: Flow, config: Mapping[str, Any]) -> None:
        """
        Args:
            config: Client settings for connection to the target and security.
        """
        self._log = TopicReader(config, flow.offset_map_topic, group=flow.shadow_group)
        self._tails = CommittedOffsets(config, flow.shadow_group, side=Side.TARGET)
        self._windows: dict[TopicPartition, MapWindow] = {}
        self.reasons: dict[TopicPartition, str] = {}

    def read(self, lowest: Mapping[TopicPartition, int]) -> dict[TopicPartition, OffsetMap]:
        """
        Return maps as of their last commits, for partitions that were ever mirrored.

        A map that cannot be read is skipped: see `reasons`.

        Args:
            lowest: Smallest upstream offset to translate, by remote partition. The map may lack
                what lies before it.

        Raises:
            RestartTask: The target did not answer (TargetUnavailable).
        """
        # the tails first: a segment that is spilled in between is then known to be newer
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
        """Return False if reading again may help; it does not help a damaged map."""
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
        for key, value in self._log.updates():
            place = place_of(key)
            if place is not None and isinstance(place[1], int):
                remote, number = place[0], place[1]
                with suppress(ValueError):  # reported where the map is read
                    self._windows.setdefault(remote, MapWindow()).put(number, value)
        for window in self._windows.values():
            with suppress(ValueError):
                window.trim()
