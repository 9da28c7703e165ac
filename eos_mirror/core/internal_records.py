"""
Records of MirrorMaker 2's internal topics, byte for byte, and keys of Kafka's offset commits.

Kafka's own formatters, `MirrorClient` and `RemoteClusterUtils` read what is encoded here, and
what they or MirrorMaker 2 wrote is decoded here. Integers are big-endian; a string is its length
in two bytes and UTF-8. There is no magic, no schema and no header.

Source: Kafka's Heartbeat, Checkpoint and OffsetSync (KIP-382).
"""

import struct
from dataclasses import dataclass
from typing import Final

from eos_mirror.core.records import TopicPartition

VERSION: Final = 0
"""Version of the values of heartbeats and checkpoints; offset syncs have none."""

OFFSET_COMMIT: Final = frozenset({0, 1})
"""Versions of the keys of `__consumer_offsets` that are offset commits."""

_SHORT, _INT, _LONG = struct.Struct(">h"), struct.Struct(">i"), struct.Struct(">q")
_PAIR: Final = struct.Struct(">qq")


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """
    A heartbeat; written to `heartbeats` on the target.

    Attributes:
        source, target: Aliases.
        timestamp_ms: When it was made, in milliseconds since the epoch.
    """

    source: str
    target: str
    timestamp_ms: int

    @property
    def key(self) -> bytes:
        """Record key."""
        return _string(self.source) + _string(self.target)

    @property
    def value(self) -> bytes:
        """Record value."""
        return _SHORT.pack(VERSION) + _LONG.pack(self.timestamp_ms)

    @staticmethod
    def decode(key: bytes | None, value: bytes | None) -> "Heartbeat":
        """
        Decode a heartbeat.

        Raises:
            ValueError: Not a heartbeat of version 0.
        """
        names, fields = _Reader(key), _Reader(value)
        fields.expect_version()
        return Heartbeat(
            source=names.string(), target=names.string(), timestamp_ms=fields.number(_LONG)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """
    A group's offset, translated; written to `<source>.checkpoints.internal` on the target.

    Attributes:
        partition: Partition, with the name of the topic on the target.
        upstream: The group's offset on the source.
        downstream: Where the group would resume on the target.
        metadata: Metadata of the group's offset.
    """

    group: str
    partition: TopicPartition
    upstream: int
    downstream: int
    metadata: str = ""

    @property
    def key(self) -> bytes:
        """Record key."""
        topic, number = self.partition
        return _string(self.group) + _string(topic) + _INT.pack(number)

    @property
    def value(self) -> bytes:
        """Record value."""
        offsets = _PAIR.pack(self.upstream, self.downstream)
        return _SHORT.pack(VERSION) + offsets + _string(self.metadata)

    @staticmethod
    def decode(key: bytes | None, value: bytes | None) -> "Checkpoint":
        """
        Decode a checkpoint.

        Raises:
            ValueError: Not a checkpoint of version 0.
        """
        names, fields = _Reader(key), _Reader(value)
        fields.expect_version()
        return Checkpoint(
            group=names.string(),
            partition=TopicPartition(names.string(), names.number(_INT)),
            upstream=fields.number(_LONG),
            downstream=fields.number(_LONG),
            metadata=fields.string(),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetSync:
    """
    Upstream and downstream offset of one record; written to `mm2-offset-syncs.<alias>.internal`.

    Attributes:
        partition: Partition, with the name of the topic on the source.
    """

    partition: TopicPartition
    upstream: int
    downstream: int

    @property
    def key(self) -> bytes:
        """Record key."""
        topic, number = self.partition
        return _string(topic) + _INT.pack(number)

    @property
    def value(self) -> bytes:
        """Record value."""
        return _PAIR.pack(self.upstream, self.downstream)

    @staticmethod
    def decode(key: bytes | None, value: bytes | None) -> "OffsetSync":
        """
        Decode an offset sync.

        Raises:
            ValueError: Not an offset sync.
        """
        names, fields = _Reader(key), _Reader(value)
        return OffsetSync(
            partition=TopicPartition(names.string(), names.number(_INT)),
            upstream=fields.number(_LONG),
            downstream=fields.number(_LONG),
        )


def committed_by(key: bytes | None) -> tuple[str, str] | None:
    """
    Return group and topic of a `__consumer_offsets` key; None if it is not an offset commit.

    Source: Kafka's OffsetCommitKey, versions 0 and 1.
    """
    try:
        fields = _Reader(key)
        if fields.number(_SHORT) not in OFFSET_COMMIT:
            return None
        return fields.string(), fields.string()
    except ValueError:
        return None


def _string(text: str) -> bytes:
    encoded = text.encode()
    try:
        return _SHORT.pack(len(encoded)) + encoded
    except struct.error as exc:
        raise ValueError(f"{text[:40]!r}...: more than 32767 bytes") from exc


class _Reader:
    """Reads fields from the front; bytes after the last one are ignored, as in Java."""

    def __init__(self, data: bytes | None) -> None:
        if data is None:
            raise ValueError("a null where a record of MirrorMaker 2 has bytes")
        self._data = data
        self._at = 0

    def number(self, form: struct.Struct) -> int:
        return int(form.unpack(self._take(form.size))[0])

    def string(self) -> str:
        return self._take(self.number(_SHORT)).decode()

    def expect_version(self) -> None:
        version = self.number(_SHORT)
        if version != VERSION:
            raise ValueError(f"version {version}, but only {VERSION} is known")

    def _take(self, size: int) -> bytes:
        end = self._at + size
        if size < 0 or end > len(self._data):
            raise ValueError(f"{self._data[:40]!r} ends within a field of {size} bytes")
        taken, self._at = self._data[self._at : end], end
        return taken
