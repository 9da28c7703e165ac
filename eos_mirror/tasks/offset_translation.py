"""Translates group offsets of the source into checkpoints, by the offset map or offset syncs."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from eos_mirror.core.checkpoints import (
    Beginning,
    Pair,
    beginning_of_map,
    beginning_of_syncs,
    exact,
    from_beginning,
    sparse,
    why_untranslated,
)
from eos_mirror.core.flow import Flow
from eos_mirror.core.internal_records import Checkpoint
from eos_mirror.core.records import TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.kafka.metadata import ClusterMetadata
from eos_mirror.kafka.metadata import Offsets as FoundOffsets
from eos_mirror.kafka.offset_maps import FollowedMaps
from eos_mirror.kafka.offset_syncs import FollowedSyncs
from eos_mirror.kafka.spaced_offsets import SpacedOffsets
from eos_mirror.ports import GroupOffset

Offsets = Mapping[str, Mapping[TopicPartition, GroupOffset]]
"""Committed offsets by group and source partition."""


class KnownCopy(NamedTuple):
    """
    What is known about the offsets of one copy.

    Attributes:
        translate: Returns the translation of an upstream offset; None if there is none.
        beginning: Where the part begins that `translate` knows.
    """

    translate: Callable[[int], Pair | None]
    beginning: Beginning


Reader = Callable[
    [Mapping[TopicPartition, TopicPartition], Mapping[TopicPartition, int]],
    tuple[Mapping[TopicPartition, KnownCopy], Mapping[TopicPartition, str]],
]
"""Receives the remote partition, and the smallest offset to translate, of each source partition.

Returns the known copies by remote partition, and the reason for each unknown one."""


class Translated(NamedTuple):
    """
    The result of a translation.

    Attributes:
        checkpoints: One for every offset that can be translated.
        ahead: Groups that have read records that are not mirrored yet.
        reasons: By remote partition, why no group, or none before the beginning of the copy, is
            translated on it.
        before: By group and source partition, why a group is not translated whose offset lies
            before the beginning of the copy.
    """

    checkpoints: list[Checkpoint]
    ahead: set[str]
    reasons: dict[TopicPartition, str]
    before: dict[str, dict[TopicPartition, str]]


class OffsetTranslation:
    """Translates offsets of one flow. It keeps what it read from the target, and reads updates."""

    def __init__(
        self,
        flow: Flow,
        source: Mapping[str, Any],
        target: Mapping[str, str],
        *,
        syncs_topic: str | None,
    ) -> None:
        """
        Args:
            source: Connection to the source and its security.
            target: The same for the target.
            syncs_topic: Topic of the offset syncs (at least once); None to use the offset map,
                which is exact.
        """
        self._read = _reader(flow, target, syncs_topic=syncs_topic)
        self._source = source
        self._metadata: ClusterMetadata | None = None  # few flows need it, and it has a connection
        self._log_starts = SpacedOffsets(self._ask_log_starts)

    def translate(self, found: Offsets, routes: Mapping[str, str]) -> Translated:
        """
        Translate committed offsets into checkpoints.

        Args:
            found: Committed offsets on mirrored topics.
            routes: Remote topic by source topic.

        Raises:
            RestartTask: A cluster did not answer (SourceUnavailable, TargetUnavailable).
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
        copies, reasons = self._read(remotes, lowest)
        log_starts, unknown = self._log_starts_before(lowest, remotes, copies)
        result = Translated([], set(), {**reasons, **unknown}, {})
        for group, offsets in found.items():
            for partition, offset in offsets.items():
                remote, at = remotes[partition], offset.position.next_offset
                copy = copies.get(remote)
                if copy is not None and at < copy.beginning.at.upstream:
                    log_start = log_starts.get(partition)
                    pair = from_beginning(copy.beginning, log_start)
                    if pair is None and remote not in unknown:
                        why = why_untranslated(partition, at, copy.beginning, log_start)
                        result.before.setdefault(group, {})[partition] = why
                else:
                    pair = None if copy is None else copy.translate(at)
                    if pair is None or pair.upstream < at:
                        result.ahead.add(group)
                if pair is not None:
                    result.checkpoints.append(_checkpoint(group, remote, pair, offset.metadata))
        return result

    def _log_starts_before(
        self,
        lowest: Mapping[TopicPartition, int],
        remotes: Mapping[TopicPartition, TopicPartition],
        copies: Mapping[TopicPartition, KnownCopy],
    ) -> tuple[Mapping[TopicPartition, int], dict[TopicPartition, str]]:
        """
        Read the log starts on the source where a group lies before the beginning of its copy.

        Returns:
            The log start by source partition, and by remote partition why it is unknown.
        """
        wanted = [
            partition
            for partition, at in lowest.items()
            if (copy := copies.get(remotes[partition])) is not None
            and copy.beginning.is_first
            and at < copy.beginning.at.upstream
        ]
        if not wanted:
            return {}, {}
        starts, unknown = self._log_starts.read(wanted)
        return starts, {remotes[partition]: reason for partition, reason in unknown.items()}

    def _ask_log_starts(self, partitions: Sequence[TopicPartition]) -> FoundOffsets:
        if self._metadata is None:
            self._metadata = ClusterMetadata(self._source, side=Side.SOURCE)
        return self._metadata.starts_or_reasons(partitions)


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
                remote: KnownCopy(partial(exact, offsets), beginning_of_map(offsets))
                for remote, offsets in maps.read(
                    {remotes[partition]: offset for partition, offset in lowest.items()}
                ).items()
            },
            maps.reasons,
        )
    syncs = FollowedSyncs(target, syncs_topic, group=flow.shadow_group)
    return lambda remotes, _lowest: (
        {
            remote: KnownCopy(partial(sparse, store, end), beginning_of_syncs(store, end))
            for remote, (store, end) in syncs.read(remotes).items()
        },
        syncs.reasons,
    )
