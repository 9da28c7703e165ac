"""Skips records that cannot be copied: moves the position of one partition forward."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from eos_mirror.core.ledger import Kind
from eos_mirror.core.metadata import decode
from eos_mirror.core.records import TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.driver.ledger import note
from eos_mirror.errors import ConfigError, RangeUnreadable
from eos_mirror.kafka.ranges import RangeReader
from eos_mirror.operate.moved_partition import MovedPartition
from eos_mirror.runtime.control import EventSink
from eos_mirror.settings.clients import source_admin
from eos_mirror.settings.model import FlowSettings

COMMAND: Final = "offsets skip"
SHOWN: Final = 5
"""Number of records that are shown of those to skip."""


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
        self._partition = MovedPartition(settings, source, COMMAND, on_event=on_event)
        self._to = to

    def plan(self) -> Skip:
        """
        Return what would be skipped now. Writes nothing.

        Raises:
            ConfigError: The partition is not mirrored, or the offset is not in what is left of it.
            RestartTask: A cluster did not answer.
        """
        _, shadow = self._partition.found()
        return self._checked(self._partition.started(shadow).position.next_offset)

    def records(self, skip: Skip) -> list[SkippedRecord]:
        """See `first_records`."""
        return first_records(self._partition, skip)

    def run(self, *, reason: str) -> Skip:
        """
        Skip the records, with an entry in the ledger before it. The topic is stopped meanwhile.

        Raises:
            UnsafeError: The run of the flow has not stopped the topic in time; it stays ordered.
            Others: As `plan`.
        """
        self.plan()
        with self._partition.fenced(reason) as (remote, fenced):
            shadow = fenced.shadows[remote]
            skip = self._checked(shadow.position.next_offset)
            note_skip(self._partition, skip, decode(shadow.metadata).topic_id, reason)
            fenced.move(remote, skip.end)
        return skip

    def finish(self) -> bool:
        """
        Finish a command that was interrupted after it had moved the position.

        Returns:
            Whether there was one.

        Errors: as `run`.
        """
        _, shadow = self._partition.found()
        if shadow is None or shadow.position.next_offset != self._to:
            return False
        return self._partition.start_left_stopped()

    def _checked(self, next_offset: int) -> Skip:
        source, where = self._partition.source, self._partition.where
        if self._to <= next_offset:
            raise ConfigError(
                f"{where}: it continues at {next_offset} already; --to must be larger"
            )
        end = self._partition.clusters.source_metadata.ends([source])[source]
        if self._to > end:
            raise ConfigError(f"{where}: it ends at {end}; --to must not be larger")
        return Skip(source=source, start=next_offset, end=self._to)


def first_records(partition: MovedPartition, skip: Skip) -> list[SkippedRecord]:
    """
    Return the first records of the source that would not be mirrored; none if all are gone.

    Raises:
        RestartTask: The source did not answer.
    """
    metadata = partition.clusters.source_metadata
    start = max(skip.start, metadata.log_start(skip.source))
    end = min(skip.end, metadata.ends([skip.source])[skip.source])
    reader = RangeReader(source_admin(partition.settings), side=Side.SOURCE)
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


def note_skip(partition: MovedPartition, skip: Skip, topic_id: str, reason: str) -> None:
    """
    Add a `drop` to the ledger.

    Args:
        topic_id: Id of the source topic.
        reason: In the words of the operator; may be empty.
    """
    details = {
        "partition": str(skip.source),
        "topic_id": topic_id,
        "from": skip.start,
        "to": skip.end,
        "records": skip.end - skip.start,
        "reason": reason or "skipped by an operator",
    }
    note(partition.settings, partition.clusters.target_topics, Kind.DROP, details)


def _size(data: bytes | None) -> int | None:
    return None if data is None else len(data)
