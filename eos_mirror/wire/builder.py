"""Builds record batches from runs, and from records of our own topics."""

from collections.abc import Sequence
from typing import Final, Protocol

from crc32c import crc32c

from eos_mirror.core.records import DecodedRun, Headers, TopicRecord
from eos_mirror.wire.batches import CHECKED_FROM, HEADER_BYTES, Batch, batch_at
from eos_mirror.wire.codecs import compressed
from eos_mirror.wire.compiled_encoder import CompiledEncoder, is_encodable
from eos_mirror.wire.own_encoder import OwnEncoder

_UNLIMITED: Final = 2**31 - 1
"""The length of a batch is a signed field of 32 bits."""

_LENGTH, _CHECKSUM = slice(8, 12), slice(17, 21)
_CODEC_AT = 22
_LOG_OVERHEAD = 12


class Encoder(Protocol):
    """Encodes one batch."""

    count: int
    """Records so far."""

    @property
    def size(self) -> int:
        """Bytes of the batch so far."""

    def extend(
        self,
        timestamps: Sequence[int],
        keys: Sequence[bytes | None],
        values: Sequence[bytes | None],
        headers: Sequence[Headers | None],
    ) -> int:
        """Append records while they fit and can be encoded, and return how many did."""

    def batch(self) -> bytearray:
        """Return the batch, not compressed."""


class BatchBuilder:
    """
    Builds one batch. The batch has no producer: `batches.stamp` writes it.

    The first record decides whether the compiled encoder is used. A record that it cannot encode
    ends the batch, as one that does not fit, and begins the next one.
    """

    def __init__(self, *, codec: int, max_bytes: int, max_records: int) -> None:
        """
        Begin a batch.

        Args:
            codec: One of `codecs.CODECS`.
            max_bytes: Largest batch before compression. A single record may exceed it.
            max_records: At least 1.
        """
        self._codec = codec
        self._max_bytes = max_bytes
        self._max_records = max_records
        self._encoder: Encoder | None = None

    @property
    def count(self) -> int:
        """Records so far."""
        return 0 if self._encoder is None else self._encoder.count

    @property
    def size(self) -> int:
        """Bytes of the batch before compression, which never adds any."""
        return HEADER_BYTES if self._encoder is None else self._encoder.size

    def add(self, run: DecodedRun, start: int) -> int:
        """
        Append records of a run, beginning with the one at index `start`.

        Returns:
            Index of the first record that did not fit; `len(run.offsets)` if all did. An empty
            builder accepts at least one.
        """
        stop = min(len(run.offsets), start + self._max_records - self.count)
        if start >= stop:
            return start
        if self._encoder is None:
            self._encoder = _encoder(run.timestamps[start], run.headers[start], self._max_bytes)
        return start + self._encoder.extend(
            run.timestamps[start:stop],
            run.keys[start:stop],
            run.values[start:stop],
            run.headers[start:stop],
        )

    def build(self) -> bytearray:
        """
        Return the batch: offsets from 0, no leader epoch, no producer. Call it once.

        Raises:
            ValueError: The builder is empty.
        """
        if self._encoder is None:
            raise ValueError("a batch has at least one record")
        return _compressed(self._codec, self._encoder.batch())

    def built(self) -> Batch:
        """Return `build()`, ready for `batches.stamp`."""
        return _whole(self.build())


def record_batch(records: Sequence[TopicRecord], *, timestamp_ms: int, codec: int) -> Batch:
    """
    Return records of a topic of ours as one batch, ready for `batches.stamp`.

    Args:
        records: At least one; their partition is not read.
        timestamp_ms: Timestamp of all of them.
        codec: One of `codecs.CODECS`.
    """
    encodable = all(is_encodable(timestamp_ms, record.headers) for record in records)
    kind = CompiledEncoder if encodable else OwnEncoder
    encoder: Encoder = kind(max_bytes=_UNLIMITED)
    encoder.extend(
        [timestamp_ms] * len(records),
        [record.key for record in records],
        [record.value for record in records],
        [record.headers for record in records],
    )
    return _whole(_compressed(codec, encoder.batch()))


def _encoder(timestamp: int, headers: Headers | None, max_bytes: int) -> Encoder:
    """Return the encoder for a batch that begins with such a record."""
    if is_encodable(timestamp, headers):
        return CompiledEncoder(max_bytes=max_bytes)
    return OwnEncoder(max_bytes=max_bytes)


def _compressed(codec: int, batch: bytearray) -> bytearray:
    """Return the batch with its body compressed, or unchanged if that does not make it smaller."""
    if not codec:
        return batch
    body = compressed(codec, memoryview(batch)[HEADER_BYTES:])
    if len(body) >= len(batch) - HEADER_BYTES:
        return batch
    smaller = bytearray(memoryview(batch)[:HEADER_BYTES])
    smaller += body
    smaller[_LENGTH] = (len(smaller) - _LOG_OVERHEAD).to_bytes(4)
    smaller[_CODEC_AT] = codec
    smaller[_CHECKSUM] = crc32c(memoryview(smaller)[CHECKED_FROM:]).to_bytes(4)
    return smaller


def _whole(batch: bytearray) -> Batch:
    whole = batch_at(memoryview(batch), 0)
    if whole is None:
        raise ValueError("the batch is incomplete")
    return whole
