"""Reads what the quarantine of a flow holds."""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from operator import attrgetter

from eos_mirror.core.quarantine import (
    Place,
    QuarantinedRecord,
    decode_quarantined,
    decode_replayed,
)
from eos_mirror.core.records import TopicPartition, TopicRecord
from eos_mirror.core.side import Side
from eos_mirror.errors import ConfigError, RangeUnreadable
from eos_mirror.kafka.metadata import ClusterMetadata
from eos_mirror.kafka.ranges import RangeReader
from eos_mirror.settings.clients import target_admin
from eos_mirror.settings.model import FlowSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """
    A record in a quarantine.

    Attributes:
        place: Where it is there.
        moved_ms: When it was written there, in milliseconds since the epoch.
        is_replayed: True if it was appended to its copy since.
    """

    place: Place
    moved_ms: int
    record: QuarantinedRecord
    is_replayed: bool

    @property
    def moved_at(self) -> datetime:
        """Return the time at which it was written there."""
        return datetime.fromtimestamp(self.moved_ms / 1000, UTC)


def quarantined(settings: FlowSettings, is_wanted: Callable[[str], bool]) -> Iterator[Held]:
    """
    Yield the records of a flow in its quarantine. Those of others are left out.

    Args:
        is_wanted: Decides by the name of a source topic.

    Raises:
        ConfigError: There is no such topic.
        RangeUnreadable: Records were deleted while they were read.
        RestartTask: The target did not answer (TargetUnavailable).
    """
    config = target_admin(settings)
    metadata = ClusterMetadata(config, side=Side.TARGET)
    places = partitions_of(settings, metadata)
    starts, ends = metadata.starts(places), metadata.ends(places)
    with closing(RangeReader(config, side=Side.TARGET)) as reader:

        def records() -> Iterator[tuple[Place, int, TopicRecord]]:
            for place in places:
                yield from _read(reader, place, starts[place], ends[place])

        replayed = {place for _, _, raw in records() if (place := decode_replayed(raw))}
        for place, moved_ms, raw in records():
            try:
                record = decode_quarantined(raw)
            except ValueError:
                continue
            if record.flow == str(settings.flow) and is_wanted(record.source.topic):
                yield Held(
                    place=place,
                    moved_ms=moved_ms,
                    record=record,
                    is_replayed=place in replayed,
                )


def quarantined_at(settings: FlowSettings, places: Sequence[Place]) -> Generator[Held]:
    """
    Yield the records at these places, while they are read: memory has no more than a few chunks.

    Args:
        places: In the order of `quarantined`, below the last stable offset; none was replayed.

    Raises:
        RangeUnreadable: A record was deleted since, or another one is in its place.
        RestartTask: The target did not answer (TargetUnavailable).
    """
    with closing(RangeReader(target_admin(settings), side=Side.TARGET)) as reader:
        for number, some in groupby(places, key=attrgetter("partition")):
            wanted = list(some)
            partition = TopicPartition(settings.quarantine_topic, number)
            found = _read(reader, partition, wanted[0].offset, wanted[-1].offset + 1)
            left = iter(wanted)
            expected = next(left, None)
            for place, moved_ms, raw in found:
                if place == expected:
                    yield _held(partition, place, moved_ms, raw)
                    expected = next(left, None)
            if expected is not None:
                raise RangeUnreadable(f"{partition}: offset {expected.offset} is gone")


def _held(partition: TopicPartition, place: Place, moved_ms: int, raw: TopicRecord) -> Held:
    try:
        record = decode_quarantined(raw)
    except ValueError as exc:
        raise RangeUnreadable(f"{partition}: offset {place.offset} is another record now") from exc
    return Held(place=place, moved_ms=moved_ms, record=record, is_replayed=False)


def partitions_of(settings: FlowSettings, metadata: ClusterMetadata) -> list[TopicPartition]:
    """
    Return the partitions of a quarantine.

    Raises:
        ConfigError: There is no such topic.
    """
    topic = settings.quarantine_topic
    known = metadata.topics([topic]).get(topic)
    if known is None:
        raise ConfigError(
            f"{settings.flow}: there is no quarantine {topic} on {settings.flow.target}: a run "
            f"with errors.tolerance = all creates it"
        )
    return [TopicPartition(topic, number) for number in range(known.partitions)]


def _read(
    reader: RangeReader, partition: TopicPartition, start: int, end: int
) -> Iterator[tuple[Place, int, TopicRecord]]:
    for columns in reader.read(partition, start, end):
        for i, offset in enumerate(columns.offsets):
            yield (
                Place(partition.partition, offset),
                columns.timestamps[i][1],
                TopicRecord(columns.keys[i], columns.values[i], columns.headers[i]),
            )
