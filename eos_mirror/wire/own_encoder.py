"""
Writes the records of a batch in Python, header keys in any bytes.

The compiled encoder is much faster, but it refuses header keys with surrogates, and it writes
wrong timestamps if the first record has none. Otherwise both write the same bytes.

Source: Kafka's DefaultRecord and ByteUtils.
"""

from collections.abc import Sequence

from crc32c import crc32c

from eos_mirror.core.records import Headers
from eos_mirror.wire.batches import CHECKED_FROM, HEADER, HEADER_BYTES, MAGIC
from eos_mirror.wire.own_records import KEY_ERRORS, signed

_NO_FIELD = b"\x01"
"""The length -1."""


class OwnEncoder:
    """Encodes one batch, record by record. Implements `builder.Encoder`."""

    def __init__(self, *, max_bytes: int) -> None:
        """
        Begin a batch.

        Args:
            max_bytes: Largest batch. The first record is accepted, whatever its size.
        """
        self.count = 0
        self.size = HEADER_BYTES
        self._max_bytes = max_bytes
        self._first_ms = self._last_ms = 0
        self._records: list[bytes] = []

    def extend(
        self,
        timestamps: Sequence[int],
        keys: Sequence[bytes | None],
        values: Sequence[bytes | None],
        headers: Sequence[Headers | None],
    ) -> int:
        """Append records while they fit, and return how many did."""
        start = self.count
        for ms, key, value, each in zip(timestamps, keys, values, headers, strict=True):
            if not self.count:
                self._first_ms = self._last_ms = ms
            record = encoded_record(self.count, ms - self._first_ms, key, value, each)
            if self.count and self.size + len(record) > self._max_bytes:
                break
            self._records.append(record)
            self._last_ms = max(ms, self._last_ms)
            self.count += 1
            self.size += len(record)
        return self.count - start

    def batch(self) -> bytearray:
        """Return the batch, not compressed."""
        batch = bytearray(HEADER_BYTES)
        batch += b"".join(self._records)
        HEADER.pack_into(
            batch, 0, 0, self.size - 12, -1, MAGIC, 0, 0, self.count - 1, self._first_ms,
            self._last_ms, -1, -1, -1, self.count,
        )  # fmt: skip
        batch[17:21] = crc32c(memoryview(batch)[CHECKED_FROM:]).to_bytes(4)
        return batch


def encoded_record(
    delta: int, delta_ms: int, key: bytes | None, value: bytes | None, headers: Headers | None
) -> bytes:
    """
    Return a record with its length.

    Args:
        delta: Its offset, relative to the batch.
        delta_ms: Its timestamp, relative to the batch.
    """
    parts = [b"\0", _varint(signed(delta_ms)), _varint(delta), _field(key), _field(value)]
    parts.append(_varint(len(headers or ())))
    for name, data in headers or ():
        parts += (_field(name.encode(errors=KEY_ERRORS)), _field(data))
    record = b"".join(parts)
    return _varint(len(record)) + record


def _field(data: bytes | None) -> bytes:
    return _NO_FIELD if data is None else _varint(len(data)) + data


def _varint(number: int) -> bytes:
    number = number << 1 if number >= 0 else ~(number << 1)
    out = bytearray()
    while number > 0x7F:  # noqa: PLR2004 - seven bits a byte
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
