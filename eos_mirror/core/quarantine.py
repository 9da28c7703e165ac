"""
The records of a quarantine: what the target refused, with its place and the reason.

Key, value and headers are those that would have been copied. Nine headers follow; those that
Connect's dead letter queues have, too, have the same names here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from eos_mirror.core.records import Headers, TopicPartition, TopicRecord
from eos_mirror.core.topic_limits import BATCH_HEADER_BYTES, SenderLimits, TopicLimits, room_of

FLOW: Final = "__connect.errors.connector.name"
SOURCE_TOPIC: Final = "__connect.errors.topic"
SOURCE_PARTITION: Final = "__connect.errors.partition"
SOURCE_OFFSET: Final = "__connect.errors.offset"
REASON: Final = "__connect.errors.exception.message"
CODE: Final = "eos-mirror.code"
TIMESTAMP: Final = "eos-mirror.timestamp"
TOPIC_ID: Final = "eos-mirror.topic.id"
COPY: Final = "eos-mirror.copy"
REPLAYED_FROM: Final = "eos-mirror.replayed.partition"
REPLAYED_AT: Final = "eos-mirror.replayed.offset"
ADDED: Final = (
    FLOW,
    SOURCE_TOPIC,
    SOURCE_PARTITION,
    SOURCE_OFFSET,
    REASON,
    CODE,
    TIMESTAMP,
    TOPIC_ID,
    COPY,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantinedRecord:
    """
    A record that the target refused.

    Attributes:
        flow: The flow that moved it here, such as `A->B`.
        source: Where it is on the source.
        offset: Its upstream offset.
        topic_id: Id of the source topic; empty if the source has none.
        code: Kafka's name of the error.
        reason: In words, with the setting that helps.
        timestamp: Its own, in milliseconds since the epoch; -1: it has none.
        copy: Its number among the copies that a message handler made of one record, from 0.
    """

    flow: str
    source: TopicPartition
    offset: int
    topic_id: str
    code: str
    reason: str
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers | None
    copy: int = 0

    def encode(self) -> TopicRecord:
        """Return the record to write."""
        texts = (
            self.flow,
            self.source.topic,
            self.source.partition,
            self.offset,
            self.reason,
            self.code,
            self.timestamp,
            self.topic_id,
            self.copy,
        )
        added = [(name, str(text).encode()) for name, text in zip(ADDED, texts, strict=True)]
        return TopicRecord(self.key, self.value, [*(self.headers or ()), *added])


class Place(NamedTuple):
    """Where a record is in a quarantine: partition and offset."""

    partition: int
    offset: int

    def replayed(self) -> TopicRecord:
        """Return the record that says that this one was replayed; it is in the same partition."""
        headers: Headers = [
            (REPLAYED_FROM, str(self.partition).encode()),
            (REPLAYED_AT, str(self.offset).encode()),
        ]
        return TopicRecord(None, None, headers, self.partition)


def decode_replayed(record: TopicRecord) -> Place | None:
    """Return which record of the quarantine was replayed; None if the record does not say that."""
    names = tuple(name for name, _ in record.headers or ())
    if names != (REPLAYED_FROM, REPLAYED_AT) or record.value is not None:
        return None
    numbers = [value or b"" for _, value in record.headers or ()]
    if not all(number.isdigit() for number in numbers):
        return None
    partition, offset = map(int, numbers)
    return Place(partition, offset)


def decode_quarantined(record: TopicRecord) -> QuarantinedRecord:
    """
    Decode a record of a quarantine.

    Raises:
        ValueError: Another program wrote it.
    """
    headers = record.headers or []
    own, added = headers[: -len(ADDED)], headers[-len(ADDED) :]
    if tuple(name for name, _ in added) != ADDED:
        raise ValueError("it has no headers of eos_mirror")
    flow, topic, partition, offset, reason, code, timestamp, topic_id, copy = (
        (value or b"").decode() for _, value in added
    )
    return QuarantinedRecord(
        flow=flow,
        source=TopicPartition(topic, int(partition)),
        offset=int(offset),
        topic_id=topic_id,
        code=code,
        reason=reason,
        timestamp=int(timestamp),
        key=record.key,
        value=record.value,
        headers=own or None,
        copy=int(copy),
    )


def fault_of(limits: TopicLimits | None, sender: SenderLimits) -> str:
    """Return why a topic cannot be a quarantine; empty if it can. Without limits, it is gone."""
    if limits is None:
        return "it does not exist, or DESCRIBE_CONFIGS on it is not granted; restart the flow"
    if limits.needs_keys:
        return "it is compacted. Set its cleanup.policy to delete"
    least = sender.batch_bytes + BATCH_HEADER_BYTES
    if limits.max_message_bytes < least:
        return (
            f"it accepts {limits.max_message_bytes} bytes. Raise its max.message.bytes to {least}"
        )
    return ""


def fitting(
    records: Sequence[TopicRecord], limits: TopicLimits, sender: SenderLimits
) -> Sequence[TopicRecord]:
    """Return the records before the first one that is too large for a quarantine."""
    most = min(limits.max_message_bytes - BATCH_HEADER_BYTES, sender.max_request_bytes)
    sizes = (room_of(record.key, record.value, record.headers) for record in records)
    count = next((i for i, size in enumerate(sizes) if size > most), len(records))
    return records[:count]
