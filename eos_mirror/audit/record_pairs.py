"""Reads the two records of a difference and finds the fields that differ."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from eos_mirror.audit.differences import Difference, Kind
from eos_mirror.audit.examine import Reader, as_copied
from eos_mirror.core.records import Headers, TopicPartition
from eos_mirror.errors import RangeUnreadable


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """
    Everything that a reader sees of a record.

    Attributes:
        timestamp: Type (Kafka's number) and milliseconds; for the source, as the mirror copies it.
    """

    timestamp: tuple[int, int]
    key: bytes | None
    value: bytes | None
    headers: Headers


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordPair:
    """
    The records of a difference.

    Attributes:
        source: None if there is no record, or it has expired; `target` too.
        fields: Names of the fields that differ, if the records should be equal.
    """

    source: Record | None
    target: Record | None
    fields: Sequence[str]


def read_pair(difference: Difference, source: Reader, target: Reader) -> RecordPair:
    """
    Read both records of a difference.

    Raises:
        RestartTask: A cluster did not answer (SourceUnavailable or TargetUnavailable).
    """
    original = copy = None
    if difference.kind is not Kind.FOREIGN:
        original = _record_at(difference.source, difference.upstream_offset, source, is_source=True)
    if difference.kind is not Kind.MISSING:
        copy = _record_at(difference.target, difference.downstream_offset, target, is_source=False)
    fields: Sequence[str] = ()
    if difference.kind is Kind.ALTERED and original is not None and copy is not None:
        fields = list(differing_fields(original, copy))
    return RecordPair(source=original, target=copy, fields=fields)


def differing_fields(original: Record, copy: Record) -> Iterator[str]:
    """Yield the names of the fields in which a copy differs from its original."""
    if original.key != copy.key:
        yield "key"
    if original.value != copy.value:
        yield "value"
    if original.headers != copy.headers:
        is_order = Counter(original.headers) == Counter(copy.headers)
        yield "header order" if is_order else "headers"
    if original.timestamp[1] != copy.timestamp[1]:
        yield "timestamp"
    elif original.timestamp != copy.timestamp:
        yield "timestamp type"


def _record_at(
    partition: TopicPartition, offset: int, reader: Reader, *, is_source: bool
) -> Record | None:
    try:
        for chunk in reader.read(partition, offset, offset + 1):
            (stamp,) = as_copied(chunk.timestamps) if is_source else chunk.timestamps
            return Record(
                timestamp=stamp,
                key=chunk.keys[0],
                value=chunk.values[0],
                headers=chunk.headers[0] or [],
            )
    except RangeUnreadable:
        return None  # expired since
    return None
