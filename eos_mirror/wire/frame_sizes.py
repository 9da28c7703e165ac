"""
How large a compressed body can become: an upper bound from its block headers alone.

Neither zstd nor lz4 has to announce the size of its content, and zstd can shrink zeros to a
thirty-thousandth. But both cut the content into blocks of a known largest size, so counting the
blocks is enough. For what Kafka's clients write, the bound exceeds the size by one block at most.

Source: RFC 8878, section 3.1; the LZ4 frame format, version 1.6.
"""

from collections.abc import Callable
from struct import Struct
from typing import Final

from eos_mirror.wire.errors import Corrupt

_SKIPPABLE_FROM, _SKIPPABLE_TO = 0x184D2A50, 0x184D2A5F
_UINT32 = Struct("<I")

_ZSTD_MAGIC = 0xFD2FB528
_ZSTD_BLOCK_BYTES = 128 << 10
_ZSTD_DICTIONARY_BYTES = (0, 1, 2, 4)
_ZSTD_SIZE_BYTES = (0, 2, 4, 8)
_ZSTD_REPEATED: Final = 1
"""A block of this type is one byte, repeated."""

_LZ4_MAGIC = 0x184D2204
_LZ4_RATIO = 255
"""A block grows to this multiple of its size at most."""

_LZ4_STORED: Final = 1 << 31
_LZ4_BLOCK_BYTES: Final = {4: 64 << 10, 5: 256 << 10, 6: 1 << 20, 7: 4 << 20}


def zstd_bound(data: memoryview) -> int:
    """
    Return the largest size of the content of zstd frames.

    Raises:
        Corrupt: These are no complete frames.
    """
    return _bound(data, _ZSTD_MAGIC, _zstd_frame, "zstd")


def lz4_bound(data: memoryview) -> int:
    """
    Return the largest size of the content of lz4 frames.

    Raises:
        Corrupt: These are no complete frames.
    """
    return _bound(data, _LZ4_MAGIC, _lz4_frame, "lz4")


def _bound(
    data: memoryview, magic: int, frame: Callable[[memoryview, int], tuple[int, int]], codec: str
) -> int:
    """
    Add up the frames of a body.

    Args:
        magic: What a frame begins with. Skippable frames may lie between.
        frame: Returns the largest size of the content of a frame, and the index after it.
        codec: Name of the codec, for the error.
    """
    bound = at = 0
    while at < len(data):
        found = _uint32(data, at)
        if _SKIPPABLE_FROM <= found <= _SKIPPABLE_TO:
            at += 8 + _uint32(data, at + 4)
        elif found == magic:
            size_bytes, at = frame(data, at)
            bound += size_bytes
        else:
            raise Corrupt(f"the body is not {codec}")
    return bound


def _zstd_frame(data: memoryview, at: int) -> tuple[int, int]:
    """Return the largest size of the content of a frame, and the index after it."""
    flags = _byte(data, at + 4)
    is_single_segment = flags >> 5 & 1
    size_bytes = _ZSTD_SIZE_BYTES[flags >> 6] or is_single_segment
    at += 6 - is_single_segment + _ZSTD_DICTIONARY_BYTES[flags & 3] + size_bytes
    count = is_last = 0
    while not is_last:
        header = _byte(data, at) | _byte(data, at + 1) << 8 | _byte(data, at + 2) << 16
        is_last, kind, length = header & 1, header >> 1 & 3, header >> 3
        at += 3 + (1 if kind == _ZSTD_REPEATED else length)
        count += 1
    return count * _ZSTD_BLOCK_BYTES, at + (4 if flags & 4 else 0)


def _lz4_frame(data: memoryview, at: int) -> tuple[int, int]:
    """Return the largest size of the content of a frame, and the index after it."""
    flags = _byte(data, at + 4)
    largest = _LZ4_BLOCK_BYTES.get(_byte(data, at + 5) >> 4 & 7)
    if largest is None:
        raise Corrupt("an lz4 frame has no block size")
    checksum_bytes = 4 if flags & 0x10 else 0
    at += 7 + (8 if flags & 0x08 else 0) + (4 if flags & 0x01 else 0)
    bound = 0
    while header := _uint32(data, at):
        length = header & ~_LZ4_STORED
        bound += min(length * _LZ4_RATIO, largest)
        at += 4 + length + checksum_bytes
    return bound, at + 4 + (4 if flags & 0x04 else 0)


def _byte(data: memoryview, at: int) -> int:
    if at >= len(data):
        raise Corrupt("the compressed body is truncated")
    return data[at]


def _uint32(data: memoryview, at: int) -> int:
    if at + 4 > len(data):
        raise Corrupt("the compressed body is truncated")
    number: int = _UINT32.unpack_from(data, at)[0]
    return number
