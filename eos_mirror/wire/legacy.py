"""
Reads messages of format 0 and 1, which Kafka wrote before 0.11 and brokers still keep.

A message is one record, or a compressed set of messages in its value. In a set of format 1, offsets
are relative: the message outside has the offset of the last one inside.

Source: Kafka's LegacyRecord and AbstractLegacyRecordBatch.
"""

from struct import Struct
from typing import Final

from eos_mirror.wire.batches import APPEND_TIME_BIT, CODEC_BITS, Batch, batch_at, checked
from eos_mirror.wire.codecs import CODECS, decompressed
from eos_mirror.wire.errors import Corrupt
from eos_mirror.wire.own_records import Record

_FIELDS_AT: Final = {0: 18, 1: 26}
"""Where key and value begin."""

_INT32 = Struct(">i")


def old_records(batch: Batch, *, limit_bytes: int) -> list[Record]:
    """
    Return the records of a message, or of the compressed set in it. Its checksum was verified.

    Args:
        limit_bytes: Largest set after decompression.

    Raises:
        Corrupt: It cannot be read.
    """
    codec = batch.attributes & CODEC_BITS
    if not codec:
        return [_record(batch, batch.base_offset, batch.last_ms)]
    if codec == CODECS["lz4"] and batch.magic == 0:
        raise Corrupt("lz4 in message format 0 has a checksum that only old clients can read")
    _, value = _fields(batch)
    if value is None:
        raise Corrupt("a compressed set has no value")
    content = memoryview(decompressed(codec, value, limit_bytes=limit_bytes))
    return _relative(batch, _messages(content, batch.magic))


def _messages(content: memoryview, magic: int) -> list[Batch]:
    messages, at = [], 0
    while (message := batch_at(content, at)) is not None:
        if message.magic != magic or message.attributes & CODEC_BITS:
            raise Corrupt("a compressed set contains another format, or another set")
        messages.append(checked(message))
        at += message.size
    if at != len(content) or not messages:
        raise Corrupt("a compressed set is truncated")
    return messages


def _relative(batch: Batch, messages: list[Batch]) -> list[Record]:
    """Return the messages of a set as records, with the offsets and timestamps of the log."""
    base = 0
    if batch.magic == 1 and batch.base_offset:  # old librdkafka wrote 0 and absolute offsets
        base = batch.base_offset - messages[-1].base_offset
    if base < 0:
        raise Corrupt("the offsets in a compressed set exceed its own")
    append_ms = batch.last_ms if batch.attributes & APPEND_TIME_BIT and batch.magic else None
    return [
        _record(
            message,
            base + message.base_offset,
            message.last_ms if append_ms is None else append_ms,
        )
        for message in messages
    ]


def _record(message: Batch, offset: int, timestamp: int) -> Record:
    key, value = _fields(message)
    return (
        offset,
        timestamp,
        None if key is None else bytes(key),
        None if value is None else bytes(value),
        None,
    )


def _fields(message: Batch) -> tuple[memoryview | None, memoryview | None]:
    """Return key and value."""
    key, at = _field(message.view, _FIELDS_AT[message.magic])
    value, at = _field(message.view, at)
    if at != message.size:
        raise Corrupt(f"{message.size - at} bytes follow the value of a message")
    return key, value


def _field(view: memoryview, at: int) -> tuple[memoryview | None, int]:
    if at + 4 > len(view):
        raise Corrupt("a message is truncated")
    length: int = _INT32.unpack_from(view, at)[0]
    at += 4
    if length < 0:
        return None, at
    if at + length > len(view):
        raise Corrupt(f"a field of {length} bytes does not fit into its message")
    return view[at : at + length], at + length
