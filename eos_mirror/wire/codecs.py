"""
The compression codecs of Kafka, with the framing that Java clients and brokers read.

Decompression has a limit, so that a small batch cannot exhaust the memory.

Source: Kafka's org.apache.kafka.common.compress; SnappyOutputStream of snappy-java.
"""

import zlib
from collections.abc import Callable
from struct import Struct
from typing import Final

import cramjam

from eos_mirror.wire.errors import Corrupt
from eos_mirror.wire.frame_sizes import lz4_bound, zstd_bound

CODECS: Final = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
"""Numbers of the codecs in the attributes of a batch, by Kafka's names."""

LIMIT_BYTES: Final = 512 << 20
"""Largest body after decompression. Kafka's own limit on a fetch is 50 MiB, compressed."""

Bytes = bytes | bytearray | memoryview | cramjam.Buffer

_GZIP_WINDOW = 31
"""zlib's code for gzip with the largest window."""

_ZSTD_LEVEL = 3
_LZ4_LEVEL = 1
"""The levels that Java uses if none is set: 3, and the fast compressor of lz4."""

_SNAPPY_MAGIC = b"\x82SNAPPY\0"
_SNAPPY_HEADER = _SNAPPY_MAGIC + b"\0\0\0\1\0\0\0\1"
_SNAPPY_BLOCK_BYTES = 32 << 10
_INT32 = Struct(">i")


def compressed(codec: int, body: memoryview) -> Bytes:
    """
    Return a body, compressed.

    Args:
        codec: One of `CODECS`, not 0.
    """
    return _COMPRESSORS[codec](body)


def decompressed(codec: int, body: memoryview, *, limit_bytes: int = LIMIT_BYTES) -> Bytes:
    """
    Return a body, decompressed.

    Args:
        codec: One of `CODECS`; 0 returns the body itself.
        limit_bytes: Largest result.

    Raises:
        Corrupt: The codec is unknown, or the body cannot be decompressed, or it would exceed the
            limit.
    """
    if codec == CODECS["none"]:
        return body
    decompress = _DECOMPRESSORS.get(codec)
    if decompress is None:
        raise Corrupt(f"unknown codec {codec}")
    try:
        return decompress(body, limit_bytes)
    except (cramjam.DecompressionError, zlib.error) as exc:
        raise Corrupt(f"cannot decompress codec {codec}: {exc}") from exc


def _gzip(body: memoryview) -> bytes:
    stream = zlib.compressobj(wbits=_GZIP_WINDOW)
    return stream.compress(body) + stream.flush()


def _snappy(body: memoryview) -> bytes:
    """Return blocks with lengths: Java reads a body without them, but not in all versions."""
    parts: list[Bytes] = [_SNAPPY_HEADER]
    for start in range(0, len(body), _SNAPPY_BLOCK_BYTES):
        block = cramjam.snappy.compress_raw(body[start : start + _SNAPPY_BLOCK_BYTES])
        parts += (_INT32.pack(len(block)), block)
    return b"".join(parts)


def _lz4(body: memoryview) -> cramjam.Buffer:
    """Return a frame of independent blocks; Java reads no others."""
    stream = cramjam.lz4.Compressor(level=_LZ4_LEVEL, content_checksum=False, block_linked=False)
    stream.compress(bytes(body))
    return stream.finish()


def _zstd(body: memoryview) -> cramjam.Buffer:
    return cramjam.zstd.compress(body, level=_ZSTD_LEVEL)


def _from_gzip(body: memoryview, limit_bytes: int) -> bytes:
    """Return the content of all members, as Java's GZIPInputStream does."""
    parts = []
    rest: memoryview | bytes = body
    while rest:
        stream = zlib.decompressobj(wbits=_GZIP_WINDOW)
        parts.append(stream.decompress(rest, limit_bytes + 1))
        limit_bytes -= len(parts[-1])
        _check_limit(0, limit_bytes)
        if not stream.eof:
            raise Corrupt("the gzip body is truncated")
        rest = stream.unused_data
    return b"".join(parts)


def _from_snappy(body: memoryview, limit_bytes: int) -> Bytes:
    """Return the content of one block, or of blocks with lengths."""
    if body[: len(_SNAPPY_MAGIC)] != _SNAPPY_MAGIC:
        return _snappy_block(body, limit_bytes)
    parts, at = [], len(_SNAPPY_HEADER)
    while at < len(body):
        if at + 4 > len(body):
            raise Corrupt("the snappy body is truncated")
        length: int = _INT32.unpack_from(body, at)[0]
        at += 4
        if not 0 < length <= len(body) - at:
            raise Corrupt(f"a snappy block of {length} bytes does not fit")
        parts.append(_snappy_block(body[at : at + length], limit_bytes))
        limit_bytes -= len(parts[-1])
        at += length
    return b"".join(parts)


def _snappy_block(block: memoryview, limit_bytes: int) -> cramjam.Buffer:
    _check_limit(cramjam.snappy.decompress_raw_len(block), limit_bytes)
    return cramjam.snappy.decompress_raw(block)


def _from_lz4(body: memoryview, limit_bytes: int) -> cramjam.Buffer:
    _check_limit(lz4_bound(body), limit_bytes)
    return cramjam.lz4.decompress(body)


def _from_zstd(body: memoryview, limit_bytes: int) -> cramjam.Buffer:
    _check_limit(zstd_bound(body), limit_bytes)
    return cramjam.zstd.decompress(body)


def _check_limit(size: int, limit_bytes: int) -> None:
    if size > limit_bytes:
        raise Corrupt("the body is too large, decompressed")


_COMPRESSORS: Final[dict[int, Callable[[memoryview], Bytes]]] = {
    CODECS["gzip"]: _gzip,
    CODECS["snappy"]: _snappy,
    CODECS["lz4"]: _lz4,
    CODECS["zstd"]: _zstd,
}
_DECOMPRESSORS: Final[dict[int, Callable[[memoryview, int], Bytes]]] = {
    CODECS["gzip"]: _from_gzip,
    CODECS["snappy"]: _from_snappy,
    CODECS["lz4"]: _from_lz4,
    CODECS["zstd"]: _from_zstd,
}
