"""
Sets the position of one partition, forward or back.

Forward is a skip. Back begins a new offset map at the end of the copy: what the copy holds already
is not in the map any more, and the records after the position are mirrored again.
"""

from dataclasses import dataclass, replace
from typing import Final

from eos_mirror.core.ledger import Kind
from eos_mirror.core.map_records import StartRecord, place_of, start_of
from eos_mirror.core.metadata import decode
from eos_mirror.core.records import TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.driver.ledger import note
from eos_mirror.errors import ConfigError, RetriableError, UnsafeError
from eos_mirror.kafka.deadline import Deadline
from eos_mirror.kafka.metadata import ClusterMetadata
from eos_mirror.kafka.offset_maps import whole_map
from eos_mirror.kafka.retry import retrying
from eos_mirror.operate.fenced_positions import FencedPositions
from eos_mirror.operate.moved_partition import MovedPartition
from eos_mirror.operate.skip import Skip, SkippedRecord, first_records, note_skip
from eos_mirror.ports import ShadowOffset
from eos_mirror.replication.config import MARKERS_LOST_AFTER
from eos_mirror.runtime.control import EventSink
from eos_mirror.settings.clients import target_admin
from eos_mirror.settings.model import FlowSettings

COMMAND: Final = "offsets set"


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """
    A change of a position.

    Attributes:
        start: The next offset of the flow. The flow continues at `end`.
        has_records: Whether the copy holds records.
    """

    source: TopicPartition
    remote: TopicPartition
    start: int
    end: int
    has_records: bool

    @property
    def skip(self) -> Skip | None:
        """Return what is not mirrored; None if the position does not move forward."""
        if self.end <= self.start:
            return None
        return Skip(source=self.source, start=self.start, end=self.end)

    @property
    def is_back(self) -> bool:
        """Return whether records are mirrored again."""
        return self.end < self.start


class PositionSetter:
    """Sets the position of one partition. It may be interrupted, and run again."""

    def __init__(
        self,
        settings: FlowSettings,
        source: TopicPartition,
        to: int,
        *,
        accept_duplicates: bool,
        on_event: EventSink,
    ) -> None:
        """
        Args:
            to: The offset with which the flow continues.
            accept_duplicates: The position may go back although the copy holds records.
            on_event: Receives events about topics that are created.
        """
        self._partition = MovedPartition(settings, source, COMMAND, on_event=on_event)
        self._to, self._accept_duplicates = to, accept_duplicates

    def plan(self) -> Move:
        """
        Return what would be changed now. Writes nothing.

        Raises:
            ConfigError: The partition is not mirrored, the flow mirrors at least once, or the
                offset is not in the log of the source.
            UnsafeError: The copy would have records twice, or the position is of another topic.
            RestartTask: A cluster did not answer.
        """
        remote, shadow = self._partition.found()
        return self._checked(remote, self._partition.started(shadow))

    def records(self, skip: Skip) -> list[SkippedRecord]:
        """See `first_records`."""
        return first_records(self._partition, skip)

    def run(self, *, reason: str) -> Move:
        """
        Set the position, with an entry in the ledger before it. The topic is stopped meanwhile.

        Raises:
            UnsafeError: The run of the flow has not stopped the topic in time; it stays ordered.
            Others: As `plan`.
        """
        self.plan()
        with self._partition.fenced(reason) as (remote, fenced):
            shadow = self._partition.started(fenced.shadows.get(remote))
            move = self._checked(remote, shadow)
            topic_id = decode(shadow.metadata).topic_id
            if move.skip is not None:
                note_skip(self._partition, move.skip, topic_id, reason)
                fenced.move(remote, move.end)
            elif move.is_back:
                self._go_back(move, fenced, topic_id, reason)
        return move

    def is_left_stopped(self) -> bool:
        """Return whether an interrupted run of the command has left the topic stopped."""
        return self._partition.is_left_stopped()

    def finish(self) -> bool:
        """
        Start the topic if an interrupted run of the command has left it stopped.

        Returns:
            Whether it had.

        Errors: as `run`.
        """
        return self._partition.start_left_stopped()

    def _checked(self, remote: TopicPartition, shadow: ShadowOffset) -> Move:
        source, start = self._partition.source, shadow.position.next_offset
        move = Move(source=source, remote=remote, start=start, end=self._to, has_records=False)
        if self._to == start:
            return move
        self._refuse_other_topic(shadow)
        self._refuse_outside()
        if not move.is_back:
            return move
        move = replace(move, has_records=self._has_records(remote))
        if move.has_records and not self._accept_duplicates:
            raise UnsafeError(
                f"{self._partition.where}: it continues at {start}, so from {self._to} on {remote} "
                f"would have records twice. Add --accept-duplicates if its consumers accept that."
            )
        return move

    def _refuse_other_topic(self, shadow: ShadowOffset) -> None:
        where, source = self._partition.where, self._partition.source
        try:
            known = decode(shadow.metadata).topic_id
        except ValueError as exc:
            raise UnsafeError(f"{where}: the shadow offset was not written by us: {exc}") from exc
        topic = self._partition.clusters.source_metadata.topics([source.topic]).get(source.topic)
        if topic is None or topic.topic_id != known:
            raise UnsafeError(
                f"{where}: the source topic was deleted or created again, and the position is of "
                f"the earlier one. `offsets reset` lets the new one be mirrored."
            )

    def _refuse_outside(self) -> None:
        source, flow = self._partition.source, self._partition.settings.flow
        metadata = self._partition.clusters.source_metadata
        first, end = metadata.log_start(source), metadata.ends([source])[source]
        if not first <= self._to <= end:
            raise ConfigError(
                f"{self._partition.where}: --to {self._to} is outside of its log on "
                f"{flow.source}, which can be read from {first} to {end}"
            )

    def _has_records(self, remote: TopicPartition) -> bool:
        """Return whether a consumer can read a record of the copy."""
        target = self._partition.clusters.target
        return bool(target.first_offsets({remote: 0}, committed=True)[remote])

    def _go_back(self, move: Move, fenced: FencedPositions, topic_id: str, reason: str) -> None:
        settings, clusters = self._partition.settings, self._partition.clusters
        downstream = self._decided_end(move.remote)
        target = target_admin(settings)
        metadata = ClusterMetadata(target, side=Side.TARGET)
        entries = whole_map(metadata, settings.flow, target)
        details = {
            "partition": str(move.source),
            "topic_id": topic_id,
            "from": move.start,
            "to": move.end,
            "remote": str(move.remote),
            "downstream": downstream,
            "duplicates": move.has_records,
            "reason": reason or "set by an operator",
        }
        note(settings, clusters.target_topics, Kind.REWIND, details)
        before = start_of(entries, move.remote)
        if before is None:
            topic = move.source.topic
            partitions = clusters.source_metadata.topics([topic])[topic].partitions
        else:
            partitions = before.partitions  # partitions that were added since begin at their start
        start = StartRecord(
            topic_id=topic_id,
            next_offset=move.end,
            partitions=partitions,
            downstream=downstream,
        )
        old_map = [key for key in entries if (place := place_of(key)) and place[0] == move.remote]
        fenced.begin_again(move.remote, start, old_map)

    def _decided_end(self, remote: TopicPartition) -> int:
        """Return where the copy ends. Markers of the earlier writer may still be in flight."""

        def ask(_: Deadline) -> int:
            end = self._partition.clusters.target.ends([remote])[remote]
            if not end.is_decided:
                raise RetriableError(f"{self._partition.where}: {remote} is undecided")
            return end.written

        return retrying(ask, within=MARKERS_LOST_AFTER)
