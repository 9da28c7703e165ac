"""Determines what an audit has to compare: everything that was ever mirrored, as it is now."""

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from eos_mirror.audit.compacted import Compaction
from eos_mirror.audit.extent import Cause, OffsetWindow, PartitionSnapshot, Unproven
from eos_mirror.core.map_records import StartRecord, segments_in, starts_in
from eos_mirror.core.map_segment import decode_segment
from eos_mirror.core.metadata import decode
from eos_mirror.core.offset_map import MapTail, OffsetMap
from eos_mirror.core.plan import TopicMapping
from eos_mirror.core.records import TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.driver.cluster_facts import TIMESTAMP_TYPE
from eos_mirror.errors import ConfigError, MirrorError
from eos_mirror.kafka.authorization import MIRROR_FROM, missing_topic_rights
from eos_mirror.kafka.groups import CommittedOffsets
from eos_mirror.kafka.metadata import ClusterMetadata
from eos_mirror.kafka.offset_maps import whole_map
from eos_mirror.kafka.open_transactions import OpenTransaction, open_transactions
from eos_mirror.kafka.retry import retrying
from eos_mirror.kafka.topics import Topics
from eos_mirror.ports import KnownTopic
from eos_mirror.settings import clients
from eos_mirror.settings.model import FlowSettings
from eos_mirror.settings.plugins import policy_of, topic_filter_of

SETTLED_WITHIN_S = 10.0
OPEN_FOR = timedelta(seconds=5)
"""A transaction of the source that stays open for this long hides records from the comparison."""

HANDLED_AND_COMPACTED = (
    "it is compacted, and a message handler makes its records: which of them compaction may remove "
    "is not known"
)
CREATE_TIME = "CreateTime"
CLEANUP_POLICY, COMPACT = "cleanup.policy", "compact"


@dataclass(frozen=True, slots=True, kw_only=True)
class Incomparable:
    """A partition that was mirrored but cannot be compared at all, and why."""

    source: TopicPartition
    target: TopicPartition
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """
    The partitions of a flow that were ever mirrored.

    Attributes:
        copies: Partitions that can be compared, in order, by remote topic: a topic that was
            renamed has two.
        incomparable: The other partitions.
    """

    copies: Mapping[str, Sequence[PartitionSnapshot]]
    incomparable: Sequence[Incomparable]


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """
    A period by record timestamps.

    In each partition it begins at the first record at `start` or later, and ends before the first
    record at `end` or later. None means no limit.
    """

    start: datetime | None = None
    end: datetime | None = None


class Surveyor:
    """Queries both clusters. Writes nothing."""

    def __init__(self, settings: FlowSettings) -> None:
        self._flow = settings.flow
        self._target_config = clients.target_admin(settings)
        self._source_config = clients.source_admin(settings)
        self._source = ClusterMetadata(self._source_config, side=Side.SOURCE)
        self._target = ClusterMetadata(self._target_config, side=Side.TARGET)
        self._shadows = CommittedOffsets(
            self._target_config, self._flow.shadow_group, side=Side.TARGET, stable=True
        )
        self._source_topics = Topics(self._source_config, side=Side.SOURCE)
        self._target_topics = Topics(self._target_config, side=Side.TARGET)
        self._mapping = TopicMapping(
            flow=settings.flow,
            policy=policy_of(settings),
            topic_filter=topic_filter_of(settings),
            queues=settings.queues,
        )
        self._sources: Mapping[str, str] = {}
        self._has_handler = settings.transforms.handler is not None

    def survey(self, is_wanted: Callable[[str], bool], period: Period | None = None) -> Survey:
        """
        Take a snapshot of the flow.

        A topic that the source has lost, and that is not configured any more, is left out.

        Args:
            is_wanted: Decides by the name of a source topic.
            period: Period of the records; None means all records.

        Raises:
            ConfigError: The flow never ran, none of its topics is wanted, or one may not be read.
            RestartTask: A cluster did not answer (SourceUnavailable or TargetUnavailable).
        """
        on_source = self._source_topics.list()
        self._sources = self._mapping.sources_of_copies(on_source)

        def is_over(topic: str) -> bool:
            return topic not in on_source and self._mapping.remote_of(topic) is None

        starts = {
            remote: start
            for remote, start in starts_in(self._map_entries()).items()
            if is_wanted(topic := self._source_of(remote).topic) and not is_over(topic)
        }
        if not starts:
            raise ConfigError(f"{self._flow}: no such topic was ever mirrored: nothing to verify")
        faults = self._faults(starts)
        self._check_rights([remote for remote in starts if remote not in faults])
        maps = self._frozen([remote for remote in starts if remote not in faults], faults)
        snapshot = self._in_period(self._standings(maps, starts), period or Period())
        copies: defaultdict[str, list[PartitionSnapshot]] = defaultdict(list)
        for one in sorted(snapshot, key=lambda one: one.source):
            if self._has_handler and one.compaction is not None:
                faults[one.target] = HANDLED_AND_COMPACTED
            else:
                copies[one.target.topic].append(one)
        incomparable = [
            Incomparable(source=self._source_of(remote), target=remote, reason=reason)
            for remote, reason in sorted(faults.items())
        ]
        return Survey(copies=copies, incomparable=incomparable)

    def _in_period(
        self, snapshots: list[PartitionSnapshot], period: Period
    ) -> list[PartitionSnapshot]:
        """Limit each partition to the period: Kafka knows the first offset at a time or later."""
        starts = self._first_since(period.start, snapshots)
        ends = self._first_since(period.end, snapshots)
        return [
            replace(
                one, window=OffsetWindow(start=starts.get(one.source, 0), end=ends.get(one.source))
            )
            for one in snapshots
        ]

    def _first_since(
        self, at: datetime | None, snapshots: list[PartitionSnapshot]
    ) -> dict[TopicPartition, int]:
        if at is None or not snapshots:
            return {}
        return self._source.since(at, [one.source for one in snapshots])

    def look_again(self, one: PartitionSnapshot) -> PartitionSnapshot:
        """Return the partition with its current log starts and ends. The frozen end stays."""
        return replace(
            one,
            source_start=self._source.starts([one.source])[one.source],
            target_start=max(one.target_start, self._target.starts([one.target])[one.target]),
            source_log_end=self._source.ends([one.source])[one.source],
            target_log_end=self._target.ends([one.target])[one.target],
        )

    def _source_of(self, remote: TopicPartition) -> TopicPartition:
        """Return the source partition. If the topic is gone, the name of its copy decides."""
        name = self._sources.get(remote.topic) or self._mapping.policy.upstream_topic(remote.topic)
        return TopicPartition(name or remote.topic, remote.partition)

    def _map_entries(self) -> Mapping[str, bytes]:
        return whole_map(self._target, self._flow, self._target_config)

    def _faults(self, starts: Mapping[TopicPartition, StartRecord]) -> dict[TopicPartition, str]:
        """Find topics that were deleted or created again, and partitions without a leader."""
        sources = self._source.topics(sorted({self._source_of(remote).topic for remote in starts}))
        targets = self._target.topics(sorted({remote.topic for remote in starts}))
        faults = {}
        for remote, start in starts.items():
            topic = self._source_of(remote).topic
            if remote.topic not in targets:
                faults[remote] = f"{remote.topic} is gone from {self._flow.target}"
            elif topic not in sources:
                faults[remote] = f"{topic} is gone from {self._flow.source}"
            elif sources[topic].topic_id != start.topic_id:
                faults[remote] = f"{topic} was deleted and created again"
            elif remote.partition in targets[remote.topic].leaderless:
                faults[remote] = f"{remote} has no leader on {self._flow.target}"
            elif remote.partition in sources[topic].leaderless:
                faults[remote] = f"{self._source_of(remote)} has no leader on {self._flow.source}"
        return faults

    def _check_rights(self, remotes: Sequence[TopicPartition]) -> None:
        """
        Check all rights before Spark starts, and report the missing ones together.

        Raises:
            ConfigError: Rights are missing; the message has a line for each.
        """
        sides = (
            (self._source_topics, self._flow.source, map(self._source_of, remotes)),
            (self._target_topics, self._flow.target, remotes),
        )
        missing = [
            f"{self._flow}: {right} ({alias}) is missing: grant it, or exclude the topic with "
            f"--topics"
            for topics, alias, partitions in sides
            for right in missing_topic_rights(
                topics, {one.topic: MIRROR_FROM for one in partitions}
            )
        ]
        if missing:
            raise ConfigError(*missing)

    def _frozen(
        self, remotes: Sequence[TopicPartition], faults: dict[TopicPartition, str]
    ) -> dict[TopicPartition, tuple[int, OffsetMap]]:
        """Read the ends first, then the maps, so that these cover all commits below the ends."""
        if not remotes:
            return {}
        ends = self._target.ends(remotes)
        shadows = retrying(partial(self._shadows.read, remotes))
        segments = segments_in(self._map_entries())
        maps = {}
        for remote in remotes:
            shadow = shadows.get(remote)
            if shadow is None:
                faults[remote] = "its shadow offset is gone, and with it the end of the offset map"
                continue
            try:
                tail = MapTail.decode(decode(shadow.metadata).tail)
                found = [decode_segment(data) for data in segments.get(remote, ())]
                maps[remote] = ends[remote], OffsetMap(found, tail)
            except ValueError as exc:
                faults[remote] = f"its offset map is damaged: {exc}"
        return maps

    def _settled_ends(
        self, maps: Mapping[TopicPartition, tuple[int, OffsetMap]]
    ) -> Mapping[TopicPartition, int]:
        """Wait briefly until the ends are after all committed data: its markers may be late."""
        deadline = time.monotonic() + SETTLED_WITHIN_S
        while True:
            ends = self._target.ends(list(maps))
            late = [
                r for r, (_, offsets) in maps.items() if ends[r] < (offsets.downstream_end or 0)
            ]
            if not late or time.monotonic() > deadline:
                return ends

    def _standings(
        self,
        maps: Mapping[TopicPartition, tuple[int, OffsetMap]],
        starts: Mapping[TopicPartition, StartRecord],
    ) -> list[PartitionSnapshot]:
        if not maps:
            return []
        remotes = list(maps)
        sources = [self._source_of(remote) for remote in remotes]
        source_starts, source_ends = self._source.starts(sources), self._source.ends(sources)
        target_starts, target_ends = self._target.starts(remotes), self._settled_ends(maps)
        hidden = open_transactions(self._source, self._source_config, sources, within=OPEN_FOR)
        configs = _Configs(
            source=_read(self._source_topics, {one.topic for one in sources}),
            target=_read(self._target_topics, {one.topic for one in remotes}),
        )
        ids_on_source = self._source.topics(sorted({one.topic for one in sources}))
        ids_on_target = self._target.topics(sorted({one.topic for one in remotes}))
        return [
            PartitionSnapshot(
                source=source,
                source_start=source_starts[source],
                target=remote,
                target_start=max(target_starts[remote], starts[remote].downstream),
                target_end=maps[remote][0],
                offsets=maps[remote][1],
                timestamps=configs.has_own_times(remote.topic),
                compaction=configs.compaction(source.topic, remote.topic),
                source_log_end=source_ends[source],
                target_log_end=target_ends[remote],
                source_topic_id=_id(ids_on_source.get(source.topic)),
                target_topic_id=_id(ids_on_target.get(remote.topic)),
                hidden=_hidden(source, hidden.get(source)),
            )
            for source, remote in zip(sources, remotes, strict=True)
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Configs:
    """The topic configs of both sides, by topic."""

    source: Mapping[str, Mapping[str, str]]
    target: Mapping[str, Mapping[str, str]]

    def has_own_times(self, remote: str) -> bool:
        """Return whether records keep the timestamps of their writer."""
        return self.target[remote].get(TIMESTAMP_TYPE, CREATE_TIME) == CREATE_TIME

    def compaction(self, source: str, remote: str) -> Compaction | None:
        """Return which side is compacted; None if neither is."""
        on_source = COMPACT in self.source[source].get(CLEANUP_POLICY, "")
        on_target = COMPACT in self.target[remote].get(CLEANUP_POLICY, "")
        return Compaction(source=on_source, target=on_target) if on_source or on_target else None


def _hidden(source: TopicPartition, found: OpenTransaction | None) -> Unproven | None:
    if found is None:
        return None
    return Unproven(
        partition=source,
        start=found.since,
        end=found.end,
        cause=Cause.OPEN_TRANSACTION,
        reason=str(found),
    )


def _id(topic: KnownTopic | None) -> str:
    """Return the topic id; empty for a deleted topic, so that no earlier proof counts for it."""
    return topic.topic_id if topic else ""


def _read(topics: Topics, names: Collection[str]) -> dict[str, dict[str, str]]:
    configs = topics.configs(sorted(names))
    if len(configs) < len(names):
        raise MirrorError("a topic was deleted during the check; run verify again")
    return configs
