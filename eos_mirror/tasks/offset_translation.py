"""Translates group offsets of the source into checkpoints, by the offset map or offset syncs."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from eos_mirror.core.checkpoints import Pair, exact, sparse
from eos_mirror.core.flow import Flow
from eos_mirror.core.internal_records import Checkpoint
from eos_mirror.core.records import TopicPartition
from eos_mirror.kafka.offset_maps import FollowedMaps
from eos_mirror.kafka.offset_syncs import FollowedSyncs
from eos_mirror.ports import GroupOffset

Offsets = Mapping[str, Mapping[TopicPartition, GroupOffset]]
"""Committed offsets by group and source partition."""

Translate = Callable[[int], Pair | None]
Reader = Callable[
    [Mapping[TopicPartition, TopicPartition], Mapping[TopicPartition, int]],
    tuple[Mapping[TopicPartition, Translate], Mapping[TopicPartition, str]],
]
"""Receives the remote partition, and the smallest offset to translate, of each source partition.

Returns a translation for each known remote partition, and the reason for each unknown one."""


class Translated(NamedTuple):
    """
    The result of a translation.

    Attributes:
        checkpoints: One for every offset that can be translated.
        ahead: Groups that have read records that are not mirrored yet.
        reasons: By remote partition, why no group is translated on it.
    """

    checkpoints: list[Checkpoint]
    ahead: set[str]
    reasons: Mapping[TopicPartition, str]


class OffsetTranslation:
    """Translates offsets of one flow. It keeps what it read from the target, and reads updates."""

    def __init__(
        self,
        flow: Flow,
        target: Mapping[str, str],
        *,
        syncs_topic: str | None,
    ) -> None:
        """
        Args:
            target: Connection to the target and its security.
            syncs_topic: Topic of the offset syncs (at least once); None to use the offset map,
                which is exact.
        """
        self._read = _reader(flow, target, syncs_topic=syncs_topic)

    def translate(self, found: Offsets, routes: Mapping[str, str]) -> Translated:
        """
        Translate committed offsets into checkpoints.

        Args:
            found: Committed offsets on mirrored topics.
            routes: Remote topic by source topic.

        Raises:
            RestartTask: The target did not answer (TargetUnavailable).
        """
        remotes = {
            partition: TopicPartition(routes[partition.topic], partition.partition)
            for offsets in found.values()
            for partition in offsets
        }
        lowest: dict[TopicPartition, int] = {}
        for offsets in found.values():
            for partition, offset in offsets.items():
                at = offset.position.next_offset
                lowest[partition] = min(at, lowest.get(partition, at))
        known, reasons = self._read(remotes, lowest)
        checkpoints, ahead = [], set()
        for group, offsets in found.items():
            for partition, offset in offsets.items():
                remote, at = remotes[partition], offset.position.next_offset
                translate = known.get(remote)
                pair = None if translate is None else translate(at)
                if pair is None or pair.upstream < at:
                    ahead.add(group)
                if pair is not None:
                    checkpoints.append(_checkpoint(group, remote, pair, offset.metadata))
        return Translated(checkpoints, ahead, reasons)


def _checkpoint(group: str, remote: TopicPartition, pair: Pair, metadata: str) -> Checkpoint:
    return Checkpoint(
        group=group,
        partition=remote,
        upstream=pair.upstream,
        downstream=pair.downstream,
        metadata=metadata,
    )


def _reader(flow: Flow, target: Mapping[str, str], *, syncs_topic: str | None) -> Reader:
    """Return the reader of the mode: exactly once has a map, at least once has syncs."""
    if syncs_topic is None:
        maps = FollowedMaps(flow, target)
        return lambda remotes, lowest: (
            {
                remote: partial(exact, offsets)
                for remote, offsets in maps.read(
                    {remotes[partition]: offset for partition, offset in lowest.items()}
                ).items()
            },
            maps.reasons,
        )
    syncs = FollowedSyncs(target, syncs_topic, group=flow.shadow_group)
    return lambda remotes, _lowest: (
        {
            remote: partial(sparse, store, end)
            for remote, (store, end) in syncs.read(remotes).items()
        },
        syncs.reasons,
    )
