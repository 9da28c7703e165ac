"""
Record batches as they lie in a Fetch answer: taken apart, filtered and stamped, never decoded.

A batch has a header of 61 bytes and a body. Everything here reads headers only, so its cost does
not depend on the number of records.

Source: Kafka's DefaultRecordBatch, LegacyRecord and CompletedFetch.
"""

import zlib
from collections.abc import Sequence
from struct import Struct
from typing import Final, NamedTuple

from crc32c import crc32c

from eos_mirror.wire.crc import shifted
from eos_mirror.wire.errors import Corrupt, Malformed
from eos_mirror.wire.own_records import varint

HEADER: Final = Struct(">qiibIhiqqqhii")
"""
Base offset, length, leader epoch, magic, checksum, attributes, last offset delta, base timestamp,
max timestamp, producer id, producer epoch, base sequence, count of records.
"""

HEADER_BYTES: Final = 61
CHECKED_FROM: Final = 21
"""The checksum covers a batch from here."""

CODEC_BITS: Final = 0x07
APPEND_TIME_BIT: Final = 0x08
TRANSACTIONAL_BIT: Final = 0x10
CONTROL_BIT: Final = 0x20
HORIZON_BIT: Final = 0x40

MAGIC: Final = 2
SEQUENCES: Final = 1 << 31

_INT32 = Struct(">i")
_UINT32 = Struct(">I")
_INT64 = Struct(">q")
_PRODUCER = Struct(">qhi")
_TYPE_OF_MARKER = Struct(">hh")

_LENGTH_AT, _EPOCH_AT, _MAGIC_AT, _CHECKSUM_AT, _PRODUCER_AT = 8, 12, 16, 17, 43
_ATTRIBUTES_AT = 22
"""The lower byte of the attributes, which holds every bit that Kafka knows."""

_LOG_OVERHEAD = 12
"""Offset and length, which the length does not count."""

_LEAST_LENGTHS = {0: 14, 1: 22, MAGIC: HEADER_BYTES - _LOG_OVERHEAD}
_OLD_HEADERS = {0: Struct(">qiIBb"), 1: Struct(">qiIBbq")}
_OLD_CHECKSUM_AT, _OLD_CHECKED_FROM = 12, 16
_ABORT = 0
_NO_ID = -1


class Batch:
    """
    A batch in a buffer. One is made for each fetched batch, so nothing here is computed twice.

    Attributes:
        view: The whole batch. Writable if it is to be stamped.
        base_offset: Offset of its first record, as fetched. Of a compressed set of old messages
            (magic 0 and 1): offset of its last record.
        next_offset: Last offset of the batch + 1. The last records may be compacted away.
        leader_epoch: None if the broker did not write it.
        attributes: Codec, timestamp type and the other bits.
        first_ms: Base timestamp, which no record needs to have; -1 is none.
        last_ms: Largest timestamp.
        count: Number of records according to the header; 1 for old messages.
        magic: Version of the format. Only version 2 has all fields.
        size: Bytes of the batch.
    """

    __slots__ = (
        "attributes", "base_offset", "count", "first_ms", "last_ms", "leader_epoch", "magic",
        "next_offset", "size", "view",
    )  # fmt: skip

    def __init__(self, view: memoryview, header: tuple[int, ...]) -> None:
        """Take the fields of `HEADER`, already unpacked."""
        base, length, epoch, magic, _, attributes, last, first_ms, last_ms, _, _, _, count = header
        self.view = view
        self.base_offset = base
        self.next_offset = base + last + 1
        self.leader_epoch = None if epoch < 0 else epoch
        self.attributes = attributes
        self.first_ms = first_ms
        self.last_ms = last_ms
        self.count = count
        self.magic = magic
        self.size = length + _LOG_OVERHEAD


class Fetched(NamedTuple):
    """
    What a broker returned for one partition.

    Attributes:
        batches: Committed batches with records at or after the fetched position.
        next_offset: Where reading resumes: after every complete batch, also after skipped ones.
        needed_bytes: Size of the first batch if no complete batch arrived; else None.
    """

    batches: list[Batch]
    next_offset: int
    needed_bytes: int | None


def fetched_batches(
    view: memoryview, *, next_offset: int, aborted: Sequence[tuple[int, int]] = ()
) -> Fetched:
    """
    Take the records field of a Fetch answer apart.

    Control batches, batches of aborted transactions and empty batches are skipped, after their
    checksum was verified: a flipped bit must not hide records. The checksums of the returned
    batches are not verified. The first batch may begin before `next_offset`. A truncated last
    batch is ignored. A faulty batch ends the result; the next fetch begins with it.

    Args:
        view: The bytes, of format "B".
        next_offset: The fetched position.
        aborted: (producer id, first offset) of each aborted transaction, from the same answer.

    Raises:
        Malformed: The first new batch is faulty. Stop the partition.

    Source: Kafka's CompletedFetch.
    """
    batches: list[Batch] = []
    transactions = _Aborted(aborted) if aborted else None
    at = floor = 0
    try:
        while (batch := batch_at(view, at)) is not None:
            _check_offsets(batch, floor)
            if not _is_skipped(batch, next_offset, transactions):
                batches.append(batch)
            at += batch.size
            floor = batch.next_offset
    except Malformed:
        if floor <= next_offset:
            raise
    needed_bytes = _needed_bytes(view) if at == 0 and len(view) else None
    return Fetched(batches, max(floor, next_offset), needed_bytes)


def batch_at(view: memoryview, at: int) -> Batch | None:
    """
    Return the batch that begins at an index of a buffer; None if it is not complete.

    Raises:
        Malformed: Its length or its version cannot be right.
    """
    if len(view) - at <= _MAGIC_AT:
        return None
    length: int = _INT32.unpack_from(view, at + _LENGTH_AT)[0]
    magic = view[at + _MAGIC_AT]
    least = _LEAST_LENGTHS.get(magic)
    if least is None or length < least:
        raise Malformed(
            f"no batch of {_LOG_OVERHEAD + length} bytes has message format {magic} (base offset "
            f"{_INT64.unpack_from(view, at)[0]})"
        )
    end = at + _LOG_OVERHEAD + length
    if end > len(view):
        return None
    if magic == MAGIC:
        return Batch(view[at:end], HEADER.unpack_from(view, at))
    return _old_message(view[at:end], magic)


def _old_message(view: memoryview, magic: int) -> Batch:
    """Return a message of format 0 or 1, which may be a compressed set of messages."""
    offset, length, crc, _, attributes, *timestamp = _OLD_HEADERS[magic].unpack_from(view)
    ms = timestamp[0] if timestamp else -1
    return Batch(
        view, (offset, length, _NO_ID, magic, crc, attributes, 0, ms, ms, _NO_ID, -1, -1, 1)
    )


def _needed_bytes(view: memoryview) -> int:
    if len(view) < _LOG_OVERHEAD:
        return HEADER_BYTES
    length: int = _INT32.unpack_from(view, _LENGTH_AT)[0]
    return _LOG_OVERHEAD + length


def _check_offsets(batch: Batch, floor: int) -> None:
    """Check that a batch begins at or after the end of the one before, and does not end before."""
    if batch.base_offset < floor or batch.next_offset <= batch.base_offset:
        raise Malformed(
            f"a batch claims offsets {batch.base_offset} to {batch.next_offset - 1}, and the one "
            f"before it ends at {floor - 1}"
        )


def _is_skipped(batch: Batch, next_offset: int, transactions: "_Aborted | None") -> bool:
    """
    Decide whether a batch has no record that is to be copied.

    Raises:
        Corrupt: It would be skipped, but its checksum is wrong.
    """
    is_aborted = transactions is not None and transactions.contain(batch)
    if not (
        is_aborted
        or (batch.magic == MAGIC and (batch.attributes & CONTROL_BIT or batch.count == 0))
        or batch.next_offset <= next_offset
    ):
        return False
    checked(batch)
    return True


class _Aborted:
    """The aborted transactions of one Fetch answer, followed batch by batch."""

    __slots__ = ("_open", "_pending")

    def __init__(self, aborted: Sequence[tuple[int, int]]) -> None:
        """Take (producer id, first offset) of each."""
        self._pending = sorted(aborted, key=lambda entry: entry[1], reverse=True)
        self._open: set[int] = set()

    def contain(self, batch: Batch) -> bool:
        """Return whether the next batch belongs to an aborted transaction."""
        if batch.magic != MAGIC:
            return False
        while self._pending and self._pending[-1][1] < batch.next_offset:
            self._open.add(self._pending.pop()[0])
        producer_id: int = _PRODUCER.unpack_from(batch.view, _PRODUCER_AT)[0]
        if batch.attributes & CONTROL_BIT:
            if _is_abort_marker(batch):
                self._open.discard(producer_id)
            return False
        return bool(batch.attributes & TRANSACTIONAL_BIT) and producer_id in self._open


def _is_abort_marker(batch: Batch) -> bool:
    """
    Read the type of a control batch from the key of its only record.

    Raises:
        Corrupt: It is not one record with such a key.
    """
    if batch.count == 0:
        return False
    checked(batch)
    at = HEADER_BYTES
    _, at = varint(batch.view, at)
    at += 1  # attributes
    for _ in ("timestamp", "offset"):
        _, at = varint(batch.view, at)
    length, at = varint(batch.view, at)
    if length < _TYPE_OF_MARKER.size or at + length > batch.size:
        raise Corrupt(f"the marker at offset {batch.base_offset} has no type")
    kind: int = _TYPE_OF_MARKER.unpack_from(batch.view, at)[1]
    return kind == _ABORT


def checked(batch: Batch) -> Batch:
    """
    Return the batch, whose checksum was verified.

    Raises:
        Corrupt: The checksum is wrong. Stop the partition.
    """
    view = batch.view
    if batch.magic == MAGIC:
        stored, computed = _UINT32.unpack_from(view, _CHECKSUM_AT)[0], crc32c(view[CHECKED_FROM:])
    else:
        stored = _UINT32.unpack_from(view, _OLD_CHECKSUM_AT)[0]
        computed = zlib.crc32(view[_OLD_CHECKED_FROM:])
    if stored != computed:
        raise Corrupt(f"wrong checksum of the batch with base offset {batch.base_offset}")
    return batch


def stamp(batch: Batch, producer_id: int, epoch: int, sequence: int, *, transactional: bool) -> int:
    """
    Make a producer the sender of a batch, in place, and return the producer's next sequence.

    The checksum follows from the old one: the body is not read. Whatever was corrupt before still
    fails the check of the broker. `passing.obstacle` returned None for the batch.

    Args:
        sequence: Sequence of its first record.

    Source: KIP-98; docs of `crc`.
    """
    view = batch.view
    before = crc32c(view[CHECKED_FROM:HEADER_BYTES])
    _INT64.pack_into(view, 0, 0)
    _INT32.pack_into(view, _EPOCH_AT, _NO_ID)
    other_bits = view[_ATTRIBUTES_AT] & ~TRANSACTIONAL_BIT
    view[_ATTRIBUTES_AT] = other_bits | (TRANSACTIONAL_BIT if transactional else 0)
    _PRODUCER.pack_into(view, _PRODUCER_AT, producer_id, epoch, sequence)
    change = before ^ crc32c(view[CHECKED_FROM:HEADER_BYTES])
    checksum: int = _UINT32.unpack_from(view, _CHECKSUM_AT)[0]
    _UINT32.pack_into(view, _CHECKSUM_AT, checksum ^ shifted(change, batch.size - HEADER_BYTES))
    return (sequence + batch.count) % SEQUENCES
