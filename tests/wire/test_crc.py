"""The checksum of a batch whose header was rewritten."""

import random

import pytest
from crc32c import crc32c

from eos_mirror.wire.crc import shifted

SIZES = [0, 1, 2, 7, 61, 4095, 4096, 4097, 8191, 65_536, 65_537, 1_000_003, 3_000_000]


@pytest.mark.parametrize("size", [*SIZES, *random.Random(1).sample(range(2_000_000), 30)])
def test_the_changed_checksum_equals_the_computed_one(size: int) -> None:
    """The checksum of a new header with an unread body is the one that reading it would give."""
    chosen = random.Random(size)
    old, new, body = chosen.randbytes(40), chosen.randbytes(40), chosen.randbytes(size)

    change = shifted(crc32c(old) ^ crc32c(new), size)

    assert crc32c(old + body) ^ change == crc32c(new + body)


def test_no_change_of_the_header_is_no_change_of_the_checksum() -> None:
    """Zero stays zero, also for the longest batch that a broker can send."""
    assert shifted(0, 2**31 - 1) == 0
