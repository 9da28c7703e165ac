"""
Reads neighbouring batches of one record each, as one batch that holds all of these records.

A producer without `linger.ms` writes such batches. To prepare the compiled reader takes longer than
to read one record, so it is prepared once for all of them.
"""

from collections.abc import Iterable, Sequence

from eos_mirror.wire.batches import (
    APPEND_TIME_BIT,
    CODEC_BITS,
    HEADER,
    HEADER_BYTES,
    MAGIC,
    Batch,
    checked,
)
from eos_mirror.wire.errors import Corrupt

_OTHERWISE = CODEC_BITS | APPEND_TIME_BIT
_CONTINUED = 0x80
_UNCOUNTED = 12
"""Bytes of a header that the length of a batch does not count."""


def is_single(batch: Batch) -> bool:
    """Return whether a batch has one record that can be read with others, says its header."""
    return (
        batch.count == 1
        and batch.magic == MAGIC
        and not batch.attributes & _OTHERWISE
        and batch.next_offset == batch.base_offset + 1
    )


def joined(batches: Sequence[Batch]) -> list[bytes | memoryview] | None:
    """
    Return the parts of one batch with the records of batches that are `is_single`.

    Its base offset and base timestamp are 0, so its records have offsets and timestamps of 0,
    unless one is not the first of its batch.

    Returns:
        None if a checksum is wrong, a body is not one record of a few kilobytes, or the offsets do
        not increase.
    """
    bodies = [batch.view[HEADER_BYTES:] for batch in batches]
    if not (_increase(batch.base_offset for batch in batches) and all(map(_is_one, bodies))):
        return None
    try:
        for batch in batches:
            checked(batch)
    except Corrupt:
        return None
    count, size = len(batches), HEADER_BYTES - _UNCOUNTED + sum(map(len, bodies))
    header = HEADER.pack(0, size, -1, MAGIC, 0, 0, count - 1, 0, 0, -1, -1, -1, count)
    return [header, *bodies]


def _increase(offsets: Iterable[int]) -> bool:
    last = -1
    for offset in offsets:
        if offset <= last:
            return False
        last = offset
    return True


def _is_one(body: memoryview) -> bool:
    """Return whether a body is one record: its length comes first, in one or two bytes."""
    if len(body) < 2:  # noqa: PLR2004 (no record is so short)
        return False
    low, high = body[0], body[1]
    if low < _CONTINUED:
        return low == 2 * (len(body) - 1)
    return high < _CONTINUED and (low & 0x7F | high << 7) == 2 * (len(body) - 2)
