"""Shows where a flow is in each partition, and skips records that the target does not accept."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from eos_mirror.core.claims import Claim, DeliveryMode, parse_claim
from eos_mirror.core.ledger import Kind
from eos_mirror.core.map_records import segments_of, start_of
from eos_mirror.core.metadata import decode
from eos_mirror.core.records import TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.driver.cluster_facts import FlowFacts
from eos_mirror.driver.flow_clusters import FlowClusters, open_clusters
from eos_mirror.driver.ledger import note
from eos_mirror.driver.topic_sync import TopicSync
from eos_mirror.errors import ConfigError, RangeUnreadable
from eos_mirror.kafka.metadata import ClusterMetadata
from eos_mirror.kafka.offset_maps import whole_map
from eos_mirror.kafka.ranges import RangeReader
from eos_mirror.kafka.topic_reader import read_compacted
from eos_mirror.operate.adopt import pairs_of, switch_of
from eos_mirror.operate.noted_mode import facts_of_this_mode
from eos_mirror.operate.status import flow_status
from eos_mirror.operate.stopped_topic import start_left_stopped, stopped_topic
from eos_mirror.runtime.control import EventSink
from eos_mirror.settings.clients import mode_of, source_admin, target_admin
from eos_mirror.settings.model import FlowSettings

COMMAND: Final = "offsets skip"
SHOWN: Final = 5
"""Number of records that are shown of those to skip."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionOffsets:
    """
    Where a flow is in one partition.

    Attributes:
        next_offset: Source offset to resume from; None if nothing was committed yet.
        stable: Last stable offset of the source; None if no leader answers.
        end: High watermark of the source; None if no leader answers.
        map_start: First source offset that the offset map covers; None without one.
        claim: The writer of the remote partition; None if there is none now.
    """

    source: TopicPartition
    remote: TopicPartition
    next_offset: int | None
    stable: int | None
    end: int | None
    lag: int | None
    map_start: int | None
    claim: Claim | None


def flow_offsets(settings: FlowSettings, *, topics: str) -> list[PartitionOffsets]:
    """
    Return the offsets of each partition of the topics that a pattern matches. Writes nothing.

    Raises:
        SourceUnavailable, TargetUnavailable: A cluster did not answer in time.
        NotAuthorized: A right is missing.
        ForeignRecord: A record of the claims topic is not ours.
    """
    clusters = open_clusters(settings)
    statuses = [
        one
        for one in flow_status(settings).partitions
        if re.fullmatch(topics, one.source.topic) is not None
    ]
    stable, _ = clusters.source_metadata.ends_or_reasons([one.source for one in statuses])
    claims = _claims(settings)
    starts = _map_starts(settings, [one.remote for one in statuses])
    return [
        PartitionOffsets(
            source=one.source,
            remote=one.remote,
            next_offset=one.position,
            stable=stable.get(one.source),
            end=one.end,
            lag=one.lag,
            map_start=starts.get(one.remote),
            claim=claims.get(one.remote),
        )
        for one in statuses
    ]


def _claims(settings: FlowSettings) -> dict[TopicPartition, Claim]:
    """Return the newest live claim by remote partition."""
    flow = settings.flow
    found: dict[TopicPartition, Claim] = {}
    records = read_compacted(target_admin(settings), flow.claims_topic, group=flow.shadow_group)
    for key, value in records.items():
        try:
            claim = parse_claim(key, value.decode(errors="replace"))
        except ValueError:  # the record of the mode
            continue
        found[claim.remote] = claim
    return found


def _map_starts(
    settings: FlowSettings, remotes: Sequence[TopicPartition]
) -> dict[TopicPartition, int]:
    if mode_of(settings) is not DeliveryMode.EXACTLY_ONCE:
        return {}
    target = target_admin(settings)
    entries = whole_map(ClusterMetadata(target, side=Side.TARGET), settings.flow, target)
    found: dict[TopicPartition, int] = {}
    for remote in remotes:
        segments, start = segments_of(entries, remote), start_of(entries, remote)
        if segments:
            found[remote] = segments[0].upstream_start
        elif start is not None:
            found[remote] = start.next_offset
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Skip:
    """
    Offsets of a source partition that are not mirrored.

    Attributes:
        start: The next offset of the flow.
        end: Where the flow continues.
    """

    source: TopicPartition
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedRecord:
    """
    A record that would not be mirrored. What it contains is not shown.

    Attributes:
        at: Its timestamp, in UTC.
        key_bytes, value_bytes: None without one.
    """

    offset: int
    at: datetime
    key_bytes: int | None
    value_bytes: int | None


class Skipper:
    """Moves the position of one partition forward. It may be interrupted, and run again."""

    def __init__(
        self, settings: FlowSettings, source: TopicPartition, to: int, *, on_event: EventSink
    ) -> None:
        """
        Args:
            to: The offset with which the flow continues.
            on_event: Receives events about topics that are created.
        """
        self._settings, self._source, self._to = settings, source, to
        self._clusters: FlowClusters = open_clusters(settings)
        self._topics = TopicSync(settings, self._clusters, on_event=on_event)

    def plan(self) -> Skip:
        """
        Return what would be skipped now. Writes nothing.

        Raises:
            ConfigError: The partition is not mirrored, or the offset is not in what is left of it.
            RestartTask: A cluster did not answer.
        """
        remote = self._remote(self._gather())
        shadow = self._clusters.shadow_offsets.read([remote]).get(remote)
        if shadow is None:
            raise ConfigError(f"{self._settings.flow} {self._source}: nothing was mirrored yet")
        return self._checked(shadow.position.next_offset)

    def records(self, skip: Skip) -> list[SkippedRecord]:
        """
        Return the first records of the source that would not be mirrored; none if all are gone.

        Raises:
            RestartTask: The source did not answer.
        """
        metadata = self._clusters.source_metadata
        start = max(skip.start, metadata.log_start(skip.source))
        end = min(skip.end, metadata.ends([skip.source])[skip.source])
        reader = RangeReader(source_admin(self._settings), side=Side.SOURCE)
        try:
            first = next(reader.read(skip.source, start, end), None)
        except RangeUnreadable:
            return []
        finally:
            reader.close()
        if first is None:
            return []
        return [
            SkippedRecord(
                offset=first.offsets[n],
                at=datetime.fromtimestamp(first.timestamps[n][1] / 1000, UTC),
                key_bytes=_size(first.keys[n]),
                value_bytes=_size(first.values[n]),
            )
            for n in range(min(SHOWN, len(first.offsets)))
        ]

    def run(self, *, reason: str) -> Skip:
        """
        Skip the records, with an entry in the ledger before it. The topic is stopped meanwhile.

        Raises:
            UnsafeError: The run of the flow has not stopped the topic in time; it stays ordered.
            Others: As `plan`.
        """
        self.plan()
        facts = self._gather()
        remote = self._remote(facts)
        topic = self._source.topic
        with stopped_topic(self._settings, self._clusters, topic, COMMAND, reason):
            switch = switch_of(self._settings, self._clusters, facts)
            with replace(switch, pairs={self._source: remote}).fenced() as fenced:
                shadow = fenced.shadows[remote]
                skip = self._checked(shadow.position.next_offset)
                self._note(skip, decode(shadow.metadata).topic_id, reason)
                fenced.move(remote, skip.end)
        return skip

    def finish(self) -> bool:
        """
        Finish a command that was interrupted after it had moved the position.

        Returns:
            Whether there was one.

        Errors: as `run`.
        """
        remote = self._remote(self._gather())
        shadow = self._clusters.shadow_offsets.read([remote]).get(remote)
        if shadow is None or shadow.position.next_offset != self._to:
            return False
        return start_left_stopped(self._settings, self._clusters, self._source.topic, COMMAND)

    def _gather(self) -> FlowFacts:
        flow = self._settings.flow
        if mode_of(self._settings) is not DeliveryMode.EXACTLY_ONCE:
            raise ConfigError(
                f"{flow}: at least once, its positions are the offsets of group "
                f"{flow.source_group} on {flow.source}: stop the flow, and set them with "
                f"kafka-consumer-groups.sh --reset-offsets"
            )
        return facts_of_this_mode(self._settings, self._clusters, self._topics)

    def _remote(self, facts: FlowFacts) -> TopicPartition:
        remote = pairs_of(facts).get(self._source)
        if remote is None:
            raise ConfigError(f"{self._settings.flow}: it does not mirror {self._source}")
        return remote

    def _checked(self, next_offset: int) -> Skip:
        where = f"{self._settings.flow} {self._source}"
        if self._to <= next_offset:
            raise ConfigError(
                f"{where}: it continues at {next_offset} already; --to must be larger"
            )
        end = self._clusters.source_metadata.ends([self._source])[self._source]
        if self._to > end:
            raise ConfigError(f"{where}: it ends at {end}; --to must not be larger")
        return Skip(source=self._source, start=next_offset, end=self._to)

    def _note(self, skip: Skip, topic_id: str, reason: str) -> None:
        details = {
            "partition": str(skip.source),
            "topic_id": topic_id,
            "from": skip.start,
            "to": skip.end,
            "records": skip.end - skip.start,
            "reason": reason or "skipped by an operator",
        }
        note(self._settings, self._clusters.target_topics, Kind.DROP, details)


def _size(data: bytes | None) -> int | None:
    return None if data is None else len(data)
