"""
Decides which batches may be passed through unchanged, from their headers.

Whatever the header cannot prove is refused: the records of such a batch are decoded and encoded
again, which costs time but nothing else.

Source: Kafka's ProduceRequest.validateRecords, LogValidator and UnifiedLog.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from eos_mirror.core.topic_limits import TopicLimits
from eos_mirror.wire.batches import (
    APPEND_TIME_BIT,
    CONTROL_BIT,
    HORIZON_BIT,
    MAGIC,
    TRANSACTIONAL_BIT,
    Batch,
)
from eos_mirror.wire.codecs import CODECS

FEW_RECORDS: Final = 8
FEW_BYTES: Final = 8192
"""Below both, a batch costs more than its records: measured with 100-byte records."""

_PLAIN: Final = frozenset(
    codec | bits for codec in CODECS.values() for bits in (0, TRANSACTIONAL_BIT)
)
"""The only attributes that a passed batch may have."""


class Obstacle(Enum):
    """
    Why a batch is not passed through. The values are labels of metrics and never change.

    SMALL: `worth_merging`. CHANGED: its records were filtered, transformed or handled. LIMITED: it
    must be divided, because the target refused a batch or accepts only small ones. COMPRESSION: the
    configuration asks for another codec.
    """

    OLD_FORMAT = "old_format"
    CONTROL = "control"
    APPEND_TIME = "append_time"
    DELETE_HORIZON = "delete_horizon"
    UNKNOWN_ATTRIBUTE = "unknown_attribute"
    GAPS = "gaps"
    BEFORE_POSITION = "before_position"
    TOO_LARGE = "too_large"
    COMPACTED_TARGET = "compacted_target"
    LATE_TIMESTAMP = "late_timestamp"
    EARLY_TIMESTAMP = "early_timestamp"
    SMALL = "small"
    CHANGED = "changed"
    LIMITED = "limited"
    COMPRESSION = "compression"


_REFUSED_BITS: Final = (
    (CONTROL_BIT, Obstacle.CONTROL),
    (APPEND_TIME_BIT, Obstacle.APPEND_TIME),
    (HORIZON_BIT, Obstacle.DELETE_HORIZON),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PassLimits:
    """
    What the topic of the target accepts.

    Attributes:
        max_bytes: Largest batch.
        compacted: It refuses records without a key. No header shows whether there is one.
        latest_ms: Latest timestamp; None: any.
        earliest_ms: Earliest timestamp; None: any. No header shows the earliest timestamp of a
            batch, so with this limit no batch is passed.
    """

    max_bytes: int
    compacted: bool = False
    latest_ms: int | None = None
    earliest_ms: int | None = None


ANYTHING: Final = PassLimits(max_bytes=2**31 - 1)
"""For a batch whose topic is not asked about."""

NOTHING: Final = PassLimits(max_bytes=0)
"""For a topic of which nothing is known."""


def pass_limits(limits: TopicLimits, *, now_ms: int) -> PassLimits:
    """Return what a topic accepts at this moment; milliseconds since the epoch."""
    return PassLimits(
        max_bytes=limits.max_message_bytes,
        compacted=limits.needs_keys,
        latest_ms=None if limits.after_ms is None else now_ms + limits.after_ms,
        earliest_ms=None if limits.before_ms is None else now_ms - limits.before_ms,
    )


def obstacle(batch: Batch, next_offset: int, limits: PassLimits) -> Obstacle | None:
    """
    Return why a batch cannot be passed through; None if it can.

    Args:
        next_offset: The position of the partition.
    """
    return _of_format(batch) or _of_offsets(batch, next_offset) or _of_target(batch, limits)


def _of_format(batch: Batch) -> Obstacle | None:
    if batch.magic != MAGIC:
        return Obstacle.OLD_FORMAT
    if batch.attributes in _PLAIN:
        return None
    for bit, name in _REFUSED_BITS:
        if batch.attributes & bit:
            return name
    return Obstacle.UNKNOWN_ATTRIBUTE


def _of_offsets(batch: Batch, next_offset: int) -> Obstacle | None:
    if batch.count <= 0 or batch.next_offset - batch.base_offset != batch.count:
        return Obstacle.GAPS
    return Obstacle.BEFORE_POSITION if batch.base_offset < next_offset else None


def _of_target(batch: Batch, limits: PassLimits) -> Obstacle | None:
    if limits.compacted:
        return Obstacle.COMPACTED_TARGET
    if limits.earliest_ms is not None:
        return Obstacle.EARLY_TIMESTAMP
    if batch.size > limits.max_bytes:
        return Obstacle.TOO_LARGE
    if limits.latest_ms is not None and max(batch.first_ms, batch.last_ms) > limits.latest_ms:
        return Obstacle.LATE_TIMESTAMP
    return None


def worth_merging(batches: Sequence[Batch]) -> bool:
    """Return whether neighbours are so small that decoding them into fewer batches is cheaper."""
    count = len(batches)
    return (
        count > 1
        and sum(batch.count for batch in batches) < FEW_RECORDS * count
        and sum(batch.size for batch in batches) < FEW_BYTES * count
    )
