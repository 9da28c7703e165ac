"""
Reads the records of a batch in Python, every length checked, and header keys in any bytes.

The compiled reader is more than ten times as fast, but it refuses header keys that are not UTF-8,
and it checks lengths after it has used them. This one decides what a record is.

Source: Kafka's DefaultRecord and ByteUtils.
"""

from typing import Final, NamedTuple

from eos_mirror.core.records import Headers
from eos_mirror.wire.errors import Corrupt

VARINT_BYTES: Final = 10
KEY_ERRORS: Final = "surrogateescape"
"""Bytes that are not UTF-8 become surrogates, and become the same bytes again."""

Record = tuple[int, int, bytes | None, bytes | None, Headers | None]
"""Offset, timestamp, key, value, headers."""


class Origin(NamedTuple):
    """
    What records are relative to.

    Attributes:
        base_offset: Offset of the batch.
        first_ms: Its base timestamp.
        append_ms: Timestamp of all records, if the broker set it; else None.
    """

    base_offset: int
    first_ms: int
    append_ms: int | None


def parsed_records(body: memoryview, count: int, origin: Origin) -> list[Record]:
    """
    Return the records of an uncompressed body.

    Args:
        count: Number of records that the header promises.

    Raises:
        Corrupt: The body does not consist of exactly that many records.
    """
    records, at = [], 0
    for _ in range(count):
        length, at = varint(body, at)
        end = at + length
        if length < 0 or end > len(body):
            raise Corrupt(f"a record of {length} bytes does not fit")
        records.append(_record(body[at:end], origin))
        at = end
    if at != len(body):
        raise Corrupt(f"{len(body) - at} bytes follow the last record")
    return records


def _record(view: memoryview, origin: Origin) -> Record:
    if not len(view):
        raise Corrupt("a record is empty")
    delta_ms, at = varint(view, 1)  # byte 0 holds attributes, which Kafka does not use
    delta, at = varint(view, at)
    key, at = _field(view, at)
    value, at = _field(view, at)
    count, at = varint(view, at)
    if count < 0:
        raise Corrupt(f"a record has {count} headers")
    headers: Headers = []
    for _ in range(count):
        name, at = _field(view, at)
        if name is None:
            raise Corrupt("a header has no key")
        data, at = _field(view, at)
        headers.append((name.decode(errors=KEY_ERRORS), data))
    if at != len(view):
        raise Corrupt(f"{len(view) - at} bytes follow the last header of a record")
    ms = origin.append_ms
    if ms is None:
        ms = signed(origin.first_ms + delta_ms)
    return origin.base_offset + delta, ms, key, value, headers or None


def _field(view: memoryview, at: int) -> tuple[bytes | None, int]:
    length, at = varint(view, at)
    if length < 0:
        return None, at
    end = at + length
    if end > len(view):
        raise Corrupt(f"a field of {length} bytes does not fit into its record")
    return bytes(view[at:end]), end


def varint(view: memoryview, at: int) -> tuple[int, int]:
    """
    Return the zigzag number at an index, and the index after it.

    Raises:
        Corrupt: It does not end in time.
    """
    number = shift = 0
    for byte in view[at : at + VARINT_BYTES]:
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004 - the sign bit of a byte
            number &= 0xFFFF_FFFF_FFFF_FFFF
            return number >> 1 ^ -(number & 1), at
        shift += 7
    raise Corrupt("a number does not end")


def signed(number: int) -> int:
    """Return what a signed field of 64 bits makes of a number, as Java's `long` does."""
    return (number + 2**63) % 2**64 - 2**63
