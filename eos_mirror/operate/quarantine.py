"""Reads what the quarantine of a flow holds."""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime

from eos_mirror.core.quarantine import QuarantinedRecord, decode_quarantined
from eos_mirror.core.records import TopicPartition, TopicRecord
from eos_mirror.core.side import Side
from eos_mirror.errors import ConfigError
from eos_mirror.kafka.metadata import ClusterMetadata
from eos_mirror.kafka.ranges import Columns, RangeReader
from eos_mirror.settings.clients import target_admin
from eos_mirror.settings.model import FlowSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """
    A record in a quarantine.

    Attributes:
        place: Partition of the quarantine.
        at: Its offset there.
        moved_at: When it was moved there.
    """

    place: TopicPartition
    at: int
    moved_at: datetime
    record: QuarantinedRecord


def quarantined(settings: FlowSettings, is_wanted: Callable[[str], bool]) -> Iterator[Held]:
    """
    Yield the records in the quarantine of a flow. Records of other programs are left out.

    Args:
        is_wanted: Decides by the name of a source topic.

    Raises:
        ConfigError: There is no such topic.
        RangeUnreadable: Records were deleted while they were read.
        RestartTask: The target did not answer (TargetUnavailable).
    """
    topic, config = settings.quarantine_topic, target_admin(settings)
    metadata = ClusterMetadata(config, side=Side.TARGET)
    known = metadata.topics([topic]).get(topic)
    if known is None:
        raise ConfigError(
            f"{settings.flow}: there is no quarantine {topic} on {settings.flow.target}: a run "
            f"with errors.tolerance = all creates it"
        )
    places = [TopicPartition(topic, number) for number in range(known.partitions)]
    starts, ends = metadata.starts(places), metadata.ends(places)
    with closing(RangeReader(config, side=Side.TARGET)) as reader:
        for place in places:
            for columns in reader.read(place, starts[place], ends[place]):
                yield from (
                    held for held in _decoded(place, columns) if is_wanted(held.record.source.topic)
                )


def _decoded(place: TopicPartition, columns: Columns) -> Iterator[Held]:
    for i, offset in enumerate(columns.offsets):
        raw = TopicRecord(columns.keys[i], columns.values[i], columns.headers[i])
        try:
            record = decode_quarantined(raw)
        except ValueError:
            continue
        moved_at = datetime.fromtimestamp(columns.timestamps[i][1] / 1000, UTC)
        yield Held(place=place, at=offset, moved_at=moved_at, record=record)
