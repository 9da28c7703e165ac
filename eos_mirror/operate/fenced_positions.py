"""The positions of a flow while no other writer can move them, and what a command does to them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from eos_mirror.core.connect_positions import position_records
from eos_mirror.core.map_records import StartRecord, records_of, segment_key, start_key
from eos_mirror.core.messages import OffsetsTopic
from eos_mirror.core.metadata import decode, encode, handed_over
from eos_mirror.core.offset_map import MapTail
from eos_mirror.core.records import Position, RecordRun, TopicPartition, TopicRecord
from eos_mirror.errors import RestartTask, UnsafeError
from eos_mirror.ports import Delivered, ShadowCommit, ShadowOffset, TransactionalProducer
from eos_mirror.replication.config import COMMIT_BUDGET, FLUSH_BUDGET


@dataclass(frozen=True, slots=True, kw_only=True)
class FencedPositions:
    """
    The positions of a flow while no other writer can move them.

    Attributes:
        shadows: Shadow offset by remote partition.
        incarnation: Of the producer.
        sources: Source partition by remote partition.
        positions: Where a source connector stores positions, too; None for other flows.
    """

    shadows: dict[TopicPartition, ShadowOffset]
    producer: TransactionalProducer
    incarnation: str
    map_topic: str
    sources: Mapping[TopicPartition, TopicPartition]
    positions: OffsetsTopic | None = None

    def mark_handed_over(self) -> None:
        """
        Mark them in one transaction: a task that starts later does not resume at them.

        Raises:
            RestartTask: The outcome is unknown.
        """
        if self.shadows:
            commits = {
                remote: ShadowCommit(
                    position=shadow.position, metadata=handed_over(shadow.metadata)
                )
                for remote, shadow in self.shadows.items()
            }
            self._commit(commits)

    def move(self, remote: TopicPartition, to: int) -> None:
        """
        Commit a later position. The offset map has no record for what lies before it.

        Raises:
            ValueError: The shadow offset was not written by us, or `to` is before it.
            RestartTask: The outcome is unknown.
        """
        before = decode(self.shadows[remote].metadata)
        tail = MapTail.decode(before.tail)
        tail.advance(to)
        after = replace(
            before,
            incarnation=self.incarnation,
            sequence=before.sequence + 1,
            tail=tail.encode(),
        )
        self.producer.begin()
        self._store(remote, to)
        commit = ShadowCommit(position=Position(to), metadata=encode(after))
        self.producer.commit({remote: commit}, within=COMMIT_BUDGET)

    def begin_again(
        self, remote: TopicPartition, start: StartRecord, old_map: Iterable[str]
    ) -> None:
        """
        Commit a position that may be earlier, and begin a new offset map there.

        Args:
            start: Position on the source, and the end of the copy.
            old_map: Keys of the earlier map, which is deleted: it ends after the position.

        Raises:
            ValueError: The shadow offset was not written by us.
            RestartTask: The outcome is unknown.
        """
        before = decode(self.shadows[remote].metadata)
        tail = MapTail.empty(start.next_offset, downstream=start.downstream)
        after = replace(
            before,
            incarnation=self.incarnation,
            sequence=before.sequence + 1,
            tail=tail.encode(),
        )
        entries = {**dict.fromkeys(old_map), start_key(remote): start.encode()}
        commit = ShadowCommit(position=Position(start.next_offset), metadata=encode(after))
        self.producer.begin()
        self.producer.send_to(self.map_topic, records_of(entries))
        self._store(remote, start.next_offset)
        self.producer.flush(within=FLUSH_BUDGET)
        self.producer.commit({remote: commit}, within=COMMIT_BUDGET)

    def append(
        self,
        runs: Mapping[TopicPartition, Sequence[RecordRun]],
        beside: Mapping[str, Sequence[TopicRecord]],
        note: Callable[[Mapping[TopicPartition, Delivered]], None],
    ) -> None:
        """
        Append records to copies without moving a position, in one transaction.

        The offset map passes over them.

        Args:
            runs: By remote partition, which has a shadow offset. Each is a batch of its own.
            beside: Records for topics of our own, by topic.
            note: Called with where the records are, before they are committed.

        Raises:
            RefusedByTarget: The target refuses a record; nothing is appended.
            UnsafeError: Someone else writes a copy; nothing is appended.
            ValueError: A shadow offset was not written by us.
            RestartTask: The outcome is unknown.
        """
        self.producer.begin()
        for remote, some in runs.items():
            for number, run in enumerate(some, 1):
                self.producer.send(run, remote, batch=number)
        for topic, records in beside.items():
            self.producer.send_to(topic, records)
        delivered = self.producer.flush(within=FLUSH_BUDGET)
        segments: dict[str, bytes | None] = {}
        commits = {r: self._passing_over(r, delivered[r], segments) for r in runs}
        if segments:
            self.producer.send_to(self.map_topic, records_of(segments))
        note(delivered)
        self.producer.commit(commits, within=COMMIT_BUDGET)

    def _passing_over(
        self, remote: TopicPartition, where: Delivered, segments: dict[str, bytes | None]
    ) -> ShadowCommit:
        if where.last is None or where.first is None:
            raise RestartTask(f"{remote}: the target did not say where the records are")
        if where.last - where.first != where.count - 1:
            raise UnsafeError(f"{remote}: someone else writes it; nothing was appended")
        shadow = self.shadows[remote]
        before = decode(shadow.metadata)
        tail = MapTail.decode(before.tail)
        tail.pass_over(where.last + 1)
        if tail.needs_spill():
            number, encoded = tail.spill()
            segments[segment_key(remote, number)] = encoded
        after = replace(
            before,
            incarnation=self.incarnation,
            sequence=before.sequence + 1,
            tail=tail.encode(),
        )
        self.shadows[remote] = ShadowOffset(position=shadow.position, metadata=encode(after))
        return ShadowCommit(position=shadow.position, metadata=encode(after))

    def _store(self, remote: TopicPartition, next_offset: int) -> None:
        """Store a position of a source connector where MirrorMaker 2 reads it, too."""
        if self.positions is not None:
            records = position_records(self.positions, {self.sources[remote]: next_offset})
            self.producer.send_to(self.positions.topic, records)

    def _commit(self, commits: Mapping[TopicPartition, ShadowCommit]) -> None:
        self.producer.begin()
        self.producer.commit(commits, within=COMMIT_BUDGET)
