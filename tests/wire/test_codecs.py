"""Compression as Java reads it, and decompression that cannot exhaust the memory."""

import gzip
import random

import cramjam
import pytest

from eos_mirror.wire.codecs import CODECS, compressed, decompressed
from eos_mirror.wire.errors import Corrupt
from eos_mirror.wire.frame_sizes import lz4_bound, zstd_bound

NAMED = {name: codec for name, codec in CODECS.items() if codec}
ZEROS = memoryview(bytes(10_000_000))
MIXED = memoryview(random.Random(1).randbytes(70_000) + b"text " * 50_000)


@pytest.mark.parametrize("codec", NAMED.values(), ids=NAMED)
@pytest.mark.parametrize("data", [ZEROS, MIXED, MIXED[:1]], ids=["zeros", "mixed", "byte"])
def test_what_was_compressed_comes_back(codec: int, data: memoryview) -> None:
    """Also what shrinks to almost nothing."""
    body = memoryview(bytes(compressed(codec, data)))

    assert decompressed(codec, body, limit_bytes=len(data) + (4 << 20)) == data


@pytest.mark.parametrize("codec", NAMED.values(), ids=NAMED)
def test_a_body_that_is_larger_than_the_limit_is_corrupt(codec: int) -> None:
    """A few kilobytes cannot become gigabytes."""
    body = memoryview(bytes(compressed(codec, ZEROS)))

    with pytest.raises(Corrupt, match="too large"):
        decompressed(codec, body, limit_bytes=len(ZEROS) - 1)


@pytest.mark.parametrize("codec", NAMED.values(), ids=NAMED)
def test_a_truncated_body_is_corrupt(codec: int) -> None:
    """Whatever part of a body is missing, the error is ours."""
    body = memoryview(bytes(compressed(codec, MIXED[69_000:72_000])))

    for kept in range(17, len(body)):  # 16 bytes are an empty stream of snappy
        with pytest.raises(Corrupt):
            decompressed(codec, body[:kept])


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_an_unknown_codec_is_corrupt(codec: int) -> None:
    """A codec of the future is not guessed."""
    with pytest.raises(Corrupt, match="unknown codec"):
        decompressed(codec, MIXED)


def test_snappy_without_blocks_is_read() -> None:
    """Some clients write one raw block, without the framing of Java."""
    body = memoryview(bytes(cramjam.snappy.compress_raw(MIXED)))

    assert decompressed(CODECS["snappy"], body) == MIXED


def test_gzip_of_several_members_is_read() -> None:
    """Java reads concatenated members as one stream."""
    body = memoryview(gzip.compress(b"one ") + gzip.compress(b"two"))

    assert decompressed(CODECS["gzip"], body) == b"one two"


def test_the_blocks_of_lz4_are_independent() -> None:
    """Java refuses frames whose blocks need the one before."""
    body = bytes(compressed(CODECS["lz4"], MIXED))

    assert body[:4] == b"\x04\x22\x4d\x18"
    assert body[4] & 0x20


@pytest.mark.parametrize("size", [1, 65_536, 131_072, 131_073, 3_000_000])
def test_the_bound_of_a_frame_exceeds_its_content_by_one_block_at_most(size: int) -> None:
    """The limit refuses hardly more than what is too large."""
    data = memoryview((b"%d " % size) * (size // 2 + 1))[:size]

    for level in (1, 3, 9):
        frame = memoryview(bytes(cramjam.zstd.compress(data, level=level)))
        assert size <= zstd_bound(frame) <= size + (128 << 10)
    assert size <= lz4_bound(memoryview(bytes(compressed(CODECS["lz4"], data)))) <= size + (4 << 20)


def test_skippable_frames_have_no_content() -> None:
    """Both formats allow frames that a reader passes over."""
    skipped = bytes.fromhex("502a4d18 03000000 616263")
    for bound, codec in ((zstd_bound, "zstd"), (lz4_bound, "lz4")):
        frame = bytes(compressed(CODECS[codec], MIXED))
        assert bound(memoryview(skipped + frame)) == bound(memoryview(frame))
