"""
Decodes batches of one partition into the columns of a run.

The compiled reader does the work. What it refuses is read again by `own_records`, which decides
whether the batch is corrupt.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby, islice
from operator import lt
from struct import Struct
from typing import Final, NamedTuple

from aiokafka.record.default_records import DefaultRecordBatch

from eos_mirror.core.records import DecodedRun, Headers, TopicPartition
from eos_mirror.wire.batches import (
    APPEND_TIME_BIT,
    CODEC_BITS,
    HEADER_BYTES,
    MAGIC,
    Batch,
    checked,
)
from eos_mirror.wire.codecs import LIMIT_BYTES, Bytes, decompressed
from eos_mirror.wire.errors import Corrupt, Malformed
from eos_mirror.wire.legacy import old_records
from eos_mirror.wire.own_records import Origin, Record, parsed_records
from eos_mirror.wire.single_records import is_single, joined

SLACK: Final = bytes(32)
"""The compiled reader checks a length after it has read it, so it may read on for a few bytes."""

_READER_ERRORS = (RuntimeError, ValueError, ArithmeticError, MemoryError, LookupError)
"""What the compiled reader raises for a record that it cannot read."""

_BASE_OFFSET = Struct(">q")
_ATTRIBUTES_AT = 22


class _Columns(NamedTuple):
    """The columns of `DecodedRun`."""

    offsets: list[int]
    timestamps: list[int]
    keys: list[bytes | None]
    values: list[bytes | None]
    headers: list[Headers | None]

    def followed_by(self, others: "_Columns") -> "_Columns":
        """Append the records of another batch."""
        if not self.offsets:
            return others
        self.offsets.extend(others.offsets)
        self.timestamps.extend(others.timestamps)
        self.keys.extend(others.keys)
        self.values.extend(others.values)
        self.headers.extend(others.headers)
        return self


def decoded(
    partition: TopicPartition,
    batches: Sequence[Batch],
    *,
    next_offset: int,
    limit_bytes: int = LIMIT_BYTES,
) -> DecodedRun | None:
    """
    Return the records of neighbouring batches; None if none is at or after `next_offset`.

    The checksum of each batch is verified first. Batches may be stamped: their original offsets
    and leader epochs are used.

    Args:
        limit_bytes: Largest batch after decompression.

    Raises:
        Corrupt: A batch cannot be read; names the partition and the base offset. Stop the
            partition.
    """
    columns = _Columns([], [], [], [], [])
    for singles, some in groupby(batches, key=is_single):
        group = list(some)
        more = _singles(group, columns.offsets) if singles and len(group) > 1 else None
        if more is not None:
            columns = columns.followed_by(more)
            continue
        for batch in group:
            try:
                more = _columns(checked(batch), limit_bytes)
                _check_offsets(batch, more.offsets, columns.offsets)
            except Malformed as exc:
                raise Corrupt(f"{partition} base offset {batch.base_offset}: {exc}") from exc
            columns = columns.followed_by(more)
    if not columns.offsets:
        return None
    run = DecodedRun(
        partition=partition,
        **columns._asdict(),
        leader_epoch=batches[-1].leader_epoch,
        size_bytes=sum(map(len, filter(None, columns.values))),
        codec=batches[-1].attributes & CODEC_BITS,
    )
    return run.from_offset(next_offset)


def _singles(batches: Sequence[Batch], earlier: list[int]) -> _Columns | None:
    """Return the records of batches that are `is_single`; None if each must be read alone."""
    parts = joined(batches)
    if parts is None or (earlier and batches[0].base_offset <= earlier[-1]):
        return None
    try:
        found = _read(_with_slack(parts))
    except _READER_ERRORS:
        return None
    if len(found.offsets) != len(batches) or any(found.offsets) or any(found.timestamps):
        return None
    return found._replace(
        offsets=[batch.base_offset for batch in batches],
        timestamps=[batch.first_ms for batch in batches],
    )


def _with_slack(parts: Iterable[Bytes]) -> memoryview:
    return memoryview(b"".join((*parts, SLACK)))[: -len(SLACK)]


def _check_offsets(batch: Batch, offsets: list[int], earlier: list[int]) -> None:
    """
    Check that the offsets increase, and are those of the batch.

    A broker does not check them in batches that are not compressed.
    """
    if not offsets:
        return
    first, last = offsets[0], offsets[-1]
    if batch.magic == MAGIC and first < batch.base_offset:
        raise Corrupt(f"offset {first} precedes the batch")
    if last >= batch.next_offset:
        raise Corrupt(f"offset {last} follows the batch")
    if earlier and first <= earlier[-1]:
        raise Corrupt(f"offset {first} follows offset {earlier[-1]}")
    if last - first == len(offsets) - 1:
        increases = offsets == list(range(first, last + 1))
    else:
        increases = all(map(lt, offsets, islice(offsets, 1, None)))
    if not increases:
        raise Corrupt("the offsets do not increase")


def _columns(batch: Batch, limit_bytes: int) -> _Columns:
    if batch.magic != MAGIC:
        return _transposed(old_records(batch, limit_bytes=limit_bytes))
    view = batch.view
    body = decompressed(batch.attributes & CODEC_BITS, view[HEADER_BYTES:], limit_bytes=limit_bytes)
    header = bytearray(view[:HEADER_BYTES])
    _BASE_OFFSET.pack_into(header, 0, batch.base_offset)
    header[_ATTRIBUTES_AT] &= ~CODEC_BITS
    whole = _with_slack((header, body))
    try:
        return _read(whole)
    except _READER_ERRORS:
        append_ms = batch.last_ms if batch.attributes & APPEND_TIME_BIT else None
        origin = Origin(batch.base_offset, batch.first_ms, append_ms)
        return _transposed(parsed_records(whole[HEADER_BYTES:], batch.count, origin))


def _read(whole: memoryview) -> _Columns:
    """
    Return the columns of a batch that is not compressed.

    A loop that drops each record object is 15% faster than a comprehension for each column.
    """
    columns = offsets, timestamps, keys, values, headers = _Columns([], [], [], [], [])
    for record in DefaultRecordBatch(whole):
        offsets.append(record.offset)
        timestamps.append(record.timestamp)
        keys.append(record.key)
        values.append(record.value)
        headers.append(record.headers or None)
    return columns


def _transposed(records: list[Record]) -> _Columns:
    if not records:
        return _Columns([], [], [], [], [])
    offsets, timestamps, keys, values, headers = map(list, zip(*records, strict=True))
    return _Columns(offsets, timestamps, keys, values, headers)
