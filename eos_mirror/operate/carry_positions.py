"""
Carries positions over between exactly once and at least once, while none of the tasks runs.

The switch claims every partition, like a task, so that no older writer can commit afterwards.
It cannot fence a paused process of at-least-once mode: see docs/operations.md.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from eos_mirror.core.claims import DeliveryMode
from eos_mirror.core.map_records import StartRecord, records_of, start_key, start_of
from eos_mirror.core.messages import MirrorConfig, Orders, TaskReport
from eos_mirror.core.metadata import (
    GroupMetadata,
    decode,
    encode_group,
)
from eos_mirror.core.offset_map import MapTail
from eos_mirror.core.records import Position, TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.driver.flow_clusters import FlowClusters
from eos_mirror.errors import RetriableError, UnsafeError
from eos_mirror.kafka.deadline import Deadline
from eos_mirror.kafka.groups import set_group_offsets
from eos_mirror.kafka.retry import retrying
from eos_mirror.kafka.topic_writer import WITHIN
from eos_mirror.operate.fenced_positions import FencedPositions
from eos_mirror.operate.origins import refuse_earlier_topic
from eos_mirror.ports import (
    ClaimsLog,
    GroupOffset,
    KnownTopic,
    Lane,
    ShadowOffset,
    Unstable,
)
from eos_mirror.replication.config import (
    COMMIT_BUDGET,
    FLUSH_BUDGET,
    MARKERS_LOST_AFTER,
)
from eos_mirror.replication.ownership import Ownership
from eos_mirror.replication.partition import OwnedPartition

Pairs = Mapping[TopicPartition, TopicPartition]
"""Remote partition by source partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """
    Switches the mode of one flow.

    Attributes:
        pairs: Partitions that the flow mirrors and that exist on the target.
        config: The configuration of the flow's tasks.
    """

    clusters: FlowClusters
    claims: ClaimsLog
    lane: Lane
    pairs: Pairs
    config: MirrorConfig

    def to_exactly_once(self, noted: DeliveryMode) -> int:
        """
        Copy the positions of a mode at least once to the shadow group.

        Returns:
            The number of positions.

        Raises:
            UnsafeError: A position belongs to another source topic with the same name.
        """
        clusters = self.clusters
        offsets = retrying(partial(clusters.offsets_by_source(noted).read, list(self.pairs)))
        topics = clusters.source_metadata.topics(sorted({p.topic for p in offsets}))
        for source, offset in offsets.items():
            refuse_earlier_topic(source, offset, topics[source.topic])
        return self.carry({source: offset.position for source, offset in offsets.items()})

    def carry(
        self,
        positions: Mapping[TopicPartition, Position],
        *,
        ends: Mapping[TopicPartition, int] | None = None,
    ) -> int:
        """
        Write these positions to the shadow group, in one transaction and under our claims.

        Earlier entries of the offset map are deleted, because the map now has a gap.

        Args:
            ends: High watermarks of remote partitions for which the positions were found.

        Returns:
            The number of positions.

        Raises:
            UnsafeError: A remote partition has another end now. Nothing was written.
        """
        if not positions:
            return 0
        topics = self.clusters.source_metadata.topics(sorted({p.topic for p in positions}))
        remotes = [self.pairs[source] for source in positions]
        ownership = Ownership(self.config.flow, self.lane, self.claims, _Operator())
        producer = ownership.new_incarnation()
        ownership.claim(remotes)
        if grown := self._grown(ends or {}):
            ownership.release(remotes)
            raise UnsafeError(f"{self.config.flow}: {grown} grew meanwhile: others write it")
        owned = self._owned(positions, topics)
        starts = {start_key(one.remote): _start(one, topics).encode() for one in owned}
        commits = {
            one.remote: one.commit_of(
                incarnation=ownership.incarnation, claims_topic_id=self.config.claims_topic_id
            )
            for one in owned
        }
        producer.begin()
        entries = {**dict.fromkeys(self._old_map(remotes)), **starts}
        producer.send_to(self.config.flow.offset_map_topic, records_of(entries))
        producer.flush(within=FLUSH_BUDGET)
        producer.commit(commits, within=COMMIT_BUDGET)
        ownership.release(remotes)
        return len(owned)

    def _grown(self, ends: Mapping[TopicPartition, int]) -> TopicPartition | None:
        """Return a partition that does not end where it did; whom we fenced may have written."""
        now = self.clusters.target.ends(list(ends)) if ends else {}
        return next((one for one, end in ends.items() if now[one].written != end), None)

    def _owned(
        self, positions: Mapping[TopicPartition, Position], topics: Mapping[str, KnownTopic]
    ) -> list[OwnedPartition]:
        """Return where each partition resumes on both sides. Our claims must be in place."""
        ends = self.clusters.target.ends([self.pairs[source] for source in positions])
        return [
            OwnedPartition(
                source=source,
                remote=self.pairs[source],
                topic_id=topics[source.topic].topic_id,
                position=position,
                tail=MapTail.empty(
                    position.next_offset, downstream=ends[self.pairs[source]].stable
                ),
                sequence=0,
                committed=None,
                committed_at=0.0,
            )
            for source, position in positions.items()
        ]

    def _old_map(self, remotes: Sequence[TopicPartition]) -> list[str]:
        return [
            key
            for topic in {remote.topic for remote in remotes}
            for key in self._map_entries(topic)
        ]

    def _map_entries(self, topic: str) -> Mapping[str, bytes]:
        def ask(_: Deadline) -> Mapping[str, bytes]:
            found = self.clusters.target.map_entries(topic)
            if isinstance(found, Unstable):
                raise RetriableError(
                    f"{self.clusters.flow}: {self.clusters.flow.offset_map_topic} is undecided"
                )
            return found

        return retrying(ask, within=MARKERS_LOST_AFTER)

    def to_at_least_once(self, mode: DeliveryMode) -> int:
        """
        Copy the shadow offsets to where this mode has its positions.

        Returns:
            The number of positions.

        Raises:
            RetriableError: A shadow offset stays unstable: transaction markers are lost.
        """
        sources = {remote: source for source, remote in self.pairs.items()}
        topics = self.clusters.source_metadata.topics(sorted({one.topic for one in self.pairs}))
        with self.fenced() as fenced:
            for remote, shadow in fenced.shadows.items():
                source = sources[remote]
                offset = GroupOffset(
                    position=shadow.position, metadata=self._group_metadata(remote, shadow)
                )
                refuse_earlier_topic(source, offset, topics[source.topic])
            offsets = {
                sources[remote]: GroupOffset(
                    position=shadow.position, metadata=self._group_metadata(remote, shadow)
                )
                for remote, shadow in fenced.shadows.items()
            }
            self._store(offsets, mode)
        return len(offsets)

    def between(self, noted: DeliveryMode, wanted: DeliveryMode) -> int:
        """Copy the positions of one mode at least once to another; return their number."""
        clusters = self.clusters
        read = clusters.offsets_by_source(noted).read
        found = retrying(partial(read, list(self.pairs)))
        topics = clusters.source_metadata.topics(sorted({one.topic for one in found}))
        for source, one in found.items():
            refuse_earlier_topic(source, one, topics[source.topic])
        offsets = {
            source: GroupOffset(position=one.position, metadata=_of_group(topics[source.topic]))
            for source, one in found.items()
        }
        self._store(offsets, wanted)
        return len(offsets)

    def _store(self, offsets: Mapping[TopicPartition, GroupOffset], mode: DeliveryMode) -> None:
        """Store positions where a mode at least once has them."""
        clusters = self.clusters
        if mode is DeliveryMode.SOURCE:
            clusters.connect_offsets.commit(offsets, within=WITHIN)
        else:
            group, admin = clusters.flow.source_group, clusters.source_topics.admin
            set_group_offsets(admin, group, offsets, side=Side.SOURCE)

    @contextmanager
    def fenced(self) -> Iterator[FencedPositions]:
        """
        Claim every partition for the length of the block, and yield the positions.

        If the block raises, the claims stay, and the next claimant ends them.

        Raises:
            RetriableError: A shadow offset stays unstable: transaction markers are lost.
        """
        remotes = list(self.pairs.values())
        ownership = Ownership(self.config.flow, self.lane, self.claims, _Operator())
        producer = ownership.new_incarnation()
        ownership.claim(remotes)
        yield FencedPositions(
            shadows=self._stable(remotes),
            producer=producer,
            incarnation=ownership.incarnation,
            map_topic=self.config.flow.offset_map_topic,
            sources={remote: source for source, remote in self.pairs.items()},
            positions=self.config.positions,
        )
        ownership.release(remotes)

    @contextmanager
    def forgotten(self) -> Iterator[None]:
        """
        Claim every partition for the length of the block; after it, delete the offset map.

        The shadow offsets are deleted by the brokers, with the remote topic.
        """
        remotes = list(self.pairs.values())
        ownership = Ownership(self.config.flow, self.lane, self.claims, _Operator())
        producer = ownership.new_incarnation()
        ownership.claim(remotes)
        yield
        keys = self._old_map(remotes)
        if keys:
            producer.begin()
            producer.send_to(self.config.flow.offset_map_topic, records_of(dict.fromkeys(keys)))
            producer.flush(within=FLUSH_BUDGET)
            producer.commit({}, within=COMMIT_BUDGET)
        ownership.release(remotes)

    def _stable(self, remotes: Sequence[TopicPartition]) -> dict[TopicPartition, ShadowOffset]:
        def ask(_: Deadline) -> dict[TopicPartition, ShadowOffset]:
            found = self.clusters.target.shadow_offsets(remotes)
            unstable = [str(r) for r, shadow in found.items() if isinstance(shadow, Unstable)]
            if unstable:
                raise RetriableError(f"{self.clusters.flow}: undecided: {', '.join(unstable)}")
            return {r: one for r, one in found.items() if isinstance(one, ShadowOffset)}

        return retrying(ask, within=MARKERS_LOST_AFTER)

    def _group_metadata(self, remote: TopicPartition, shadow: ShadowOffset) -> str:
        entries = self._map_entries(remote.topic)
        start = start_of(entries, TopicPartition(remote.topic, 0))
        return encode_group(
            GroupMetadata(
                topic_id=decode(shadow.metadata).topic_id,
                partitions=start.partitions if start is not None else remote.partition + 1,
            )
        )


def _of_group(topic: KnownTopic) -> str:
    return encode_group(GroupMetadata(topic_id=topic.topic_id, partitions=topic.partitions))


def _start(owned: OwnedPartition, topics: Mapping[str, KnownTopic]) -> StartRecord:
    topic = topics[owned.source.topic]
    return StartRecord(
        topic_id=topic.topic_id,
        next_offset=owned.position.next_offset,
        partitions=topic.partitions,
        downstream=owned.tail.downstream_end or 0,
    )


class _Operator:
    """A `ports.TaskContext` without a runtime: an operator waits at the terminal."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self.slot = None

    def orders(self) -> Orders:
        """Return no orders."""
        return Orders()

    def report(self, report: TaskReport) -> None:
        """Ignore the report; no driver receives it."""

    def event(self, name: str, fields: Mapping[str, Any]) -> None:
        """Ignore the event; no driver receives it."""

    @contextmanager
    def watch(self, what: str, budget: timedelta) -> Iterator[None]:  # noqa: ARG002 (of the protocol)
        """Run the block without a watchdog: the operator has Ctrl-C."""
        yield
