"""Choose the partition of a record by its key, as librdkafka's producer does with the same name."""

import zlib
from typing import Final

SEED: Final = 0x9747B28C
MULTIPLIER: Final = 0x5BD1E995
BITS: Final = 0xFFFFFFFF


def partition_of_key(key: bytes, partitions: int, partitioner: str) -> int:
    """
    Return the partition of a key.

    Args:
        partitioner: `murmur2` and `murmur2_random` are Java's; all others use CRC-32, as
            librdkafka's default does.
    """
    if partitioner.startswith("murmur2"):
        return (murmur2(key) & 0x7FFFFFFF) % partitions
    return zlib.crc32(key) % partitions


def murmur2(data: bytes) -> int:
    """Return the hash that Java's clients use. Source: Kafka's Utils.murmur2."""
    value = SEED ^ len(data)
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        part = int.from_bytes(data[at : at + 4], "little") * MULTIPLIER & BITS
        part = (part ^ part >> 24) * MULTIPLIER & BITS
        value = (value * MULTIPLIER & BITS) ^ part
    rest = data[whole:]
    if rest:
        value = (value ^ int.from_bytes(rest, "little")) * MULTIPLIER & BITS
    value = (value ^ value >> 13) * MULTIPLIER & BITS
    return value ^ value >> 15
