"""
Records of the offset map topic.

Key `["<remote topic>",<partition>,<number>]`: a spilled segment (core/offset_map.py).
Key `["<remote topic>",<partition>,"start"]`: written by the transaction that committed the first
position, and by a command that begins a new map. By it, a task distinguishes a partition that was
never mirrored from one whose shadow offset was lost.

A record with any other key is not ours. It belongs to no partition and is skipped.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from eos_mirror.core.offset_map import Segment, decode_segment
from eos_mirror.core.records import TopicPartition, TopicRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class StartRecord:
    """
    How a partition began.

    Attributes:
        topic_id: Identity of the source topic.
        next_offset: Position resolved from the configured start.
        partitions: Partition count of the source topic then; later partitions are growth.
        downstream: Records of the remote partition before this offset are not in the offset map:
            they were taken over, or a command has begun a new map.
    """

    topic_id: str
    next_offset: int
    partitions: int
    downstream: int = 0

    def encode(self) -> bytes:
        """Return the record value. Versions that do not know `downstream` ignore it."""
        fields: dict[str, object] = {
            "topic_id": self.topic_id,
            "next_offset": self.next_offset,
            "partitions": self.partitions,
        }
        if self.downstream:
            fields["downstream"] = self.downstream
        return json.dumps(fields, separators=(",", ":")).encode()

    @staticmethod
    def decode(data: bytes) -> "StartRecord":
        """
        Decode a start record.

        Raises:
            ValueError: Not a start record.
        """
        try:
            fields = json.loads(data)
            return StartRecord(
                topic_id=str(fields["topic_id"]),
                next_offset=int(fields["next_offset"]),
                partitions=int(fields["partitions"]),
                downstream=int(fields.get("downstream", 0)),
            )
        except (KeyError, TypeError, ValueError) as exc:
            raise ValueError(f"not a start record: {data[:80]!r}") from exc


def place_of(key: str | bytes | None) -> tuple[TopicPartition, int | str] | None:
    """Return the remote partition, and segment number or `start`; None if the key is not ours."""
    try:
        topic, partition, kind = json.loads(key or "")
    except (ValueError, TypeError):
        return None
    is_ours = isinstance(topic, str) and isinstance(partition, int) and isinstance(kind, int | str)
    return (TopicPartition(topic, partition), kind) if is_ours else None


def segment_key(remote: TopicPartition, number: int) -> str:
    """Return the record key of a spilled segment."""
    return json.dumps([remote.topic, remote.partition, number], separators=(",", ":"))


def start_key(remote: TopicPartition) -> str:
    """Return the record key of a start record."""
    return json.dumps([remote.topic, remote.partition, "start"], separators=(",", ":"))


def records_of(entries: Mapping[str, bytes | None]) -> list[TopicRecord]:
    """Return the records to write for these entries; None is a tombstone."""
    return [TopicRecord(key.encode(), value) for key, value in entries.items()]


def segments_of(entries: Mapping[str, bytes], remote: TopicPartition) -> list[Segment]:
    """
    Return the spilled segments of one partition, in order.

    Raises:
        ValueError: A record cannot be read.
    """
    found = []
    for key, value in entries.items():
        place = place_of(key)
        if place is not None and place[0] == remote and isinstance(place[1], int):
            found.append(decode_segment(value))
    return sorted(found, key=lambda segment: segment.number)


def starts_in(entries: Mapping[str, bytes]) -> dict[TopicPartition, StartRecord]:
    """
    Return every remote partition that was ever begun, with its start record.

    Raises:
        ValueError: A record cannot be read.
    """
    found = {}
    for key, value in entries.items():
        place = place_of(key)
        if place is not None and place[1] == "start":
            found[place[0]] = StartRecord.decode(value)
    return found


def segments_in(entries: Mapping[str, bytes]) -> dict[TopicPartition, list[bytes]]:
    """
    Return the spilled segments of every remote partition that has any, encoded and in no order.

    They are not decoded here, so a damaged one affects only its own partition.
    """
    found: dict[TopicPartition, list[bytes]] = {}
    for key, value in entries.items():
        place = place_of(key)
        if place is not None and isinstance(place[1], int):
            found.setdefault(place[0], []).append(value)
    return found


def start_of(entries: Mapping[str, bytes], remote: TopicPartition) -> StartRecord | None:
    """Return the start record of one partition; None if it was never mirrored."""
    value = entries.get(start_key(remote))
    return None if value is None else StartRecord.decode(value)
