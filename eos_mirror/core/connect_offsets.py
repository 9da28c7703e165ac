"""
Positions of MirrorMaker 2, as Kafka Connect stores them.

The topic is `mm2-offsets.A.internal` on the target, or the `offset.storage.topic` of a Connect
cluster. A key is JSON: the name of the connector, then what the position belongs to. Other
connectors keep positions there, too.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from eos_mirror.core.records import TopicPartition

SOURCE_CONNECTOR = "MirrorSourceConnector"
"""Name of the connector in dedicated mode. On a Connect cluster, a user chose the name."""


AS_JAVA: Final = {"partitioner": "murmur2"}
"""Setting of a client that writes positions. Kafka Connect reads all partitions of the topic, but
compaction keeps the newest record of one only."""

NOTHING_MIRRORED = -1
"""Stored as the last offset of a partition that begins at 0."""


class Owner(NamedTuple):
    """Whose positions they are: the connector, and the alias that it has for the source."""

    connector: str
    cluster: str


def offsets_topic(source: str) -> str:
    """Return the topic of a dedicated MirrorMaker 2; its separator never changes."""
    return f"mm2-offsets.{source}.internal"


def next_offsets(
    records: Iterable[tuple[bytes | None, bytes | None]],
    owner: Owner,
    *,
    known: Mapping[TopicPartition, int] | None = None,
) -> dict[TopicPartition, int]:
    """
    Return the next source offset of each partition; the newest record of a key counts.

    Connect stores the offset of the last record that was mirrored. A record that is not the
    owner's, or cannot be read, is left out: anybody may write into the topic of a Connect cluster.

    Args:
        known: What earlier records said.
    """
    found = dict(known or {})
    for key, value in records:
        partition = _partition_of(_parsed(key), owner)
        if partition is None:
            continue
        last = _offset_of(_parsed(value))
        if last is None:
            found.pop(partition, None)
        else:
            found[partition] = last + 1
    return found


def records_of(positions: Mapping[TopicPartition, int], owner: Owner) -> list[tuple[str, str]]:
    """
    Return the keys and values that store these positions.

    Keys have the bytes that MirrorMaker 2 writes: Kafka compacts the topic by them, and its
    partition follows from them.

    Args:
        positions: Next offset by source partition. The offset before it is stored: -1 for a
            partition that begins at 0, which MirrorMaker 2 reads as no position.
    """
    return [
        (
            _key(owner, one),
            json.dumps({"offset": next_offset - 1}, separators=(",", ":")),
        )
        for one, next_offset in positions.items()
    ]


IDENTITY_CONNECTOR = "eos-mirror"
"""Stands in the keys of records that say which topic a position belongs to. Kafka Connect and
MirrorMaker 2 do not read them: other connectors keep their positions in the topic, too."""


class Identity(NamedTuple):
    """
    Which topic a position belongs to.

    Attributes:
        next_offset: The position with which it was written. An earlier one is of another topic.
        metadata: As in a commit of the source group.
    """

    next_offset: int
    metadata: str


def identities(
    records: Iterable[tuple[bytes | None, bytes | None]],
    owner: Owner,
    *,
    known: Mapping[TopicPartition, Identity],
) -> dict[TopicPartition, Identity]:
    """Return the identity of each position that has one; the newest record of a key counts."""
    found, ours = dict(known), Owner(IDENTITY_CONNECTOR, owner.cluster)
    for key, value in records:
        partition = _partition_of(_parsed(key), ours)
        if partition is None:
            continue
        match _parsed(value):
            case {"next_offset": int(at), "metadata": str(metadata)}:
                found[partition] = Identity(at, metadata)
            case _:
                found.pop(partition, None)
    return found


def identity_records(
    identities_of: Mapping[TopicPartition, Identity], owner: Owner
) -> list[tuple[str, str]]:
    """Return the keys and values that store these identities."""
    return [
        (
            _key(Owner(IDENTITY_CONNECTOR, owner.cluster), one),
            json.dumps({"next_offset": at, "metadata": metadata}, separators=(",", ":")),
        )
        for one, (at, metadata) in identities_of.items()
    ]


def _key(owner: Owner, one: TopicPartition) -> str:
    return json.dumps(
        [
            owner.connector,
            {"cluster": owner.cluster, "partition": one.partition, "topic": one.topic},
        ],
        separators=(",", ":"),
        ensure_ascii=False,
    )


def _parsed(raw: bytes | None) -> Any:
    if raw is None:
        return None
    try:
        return json.loads(raw)
    except ValueError:  # a UnicodeDecodeError is one, too
        return None


def _partition_of(key: Any, owner: Owner) -> TopicPartition | None:
    match key:
        case [owner.connector, {"cluster": owner.cluster, "topic": str(topic), "partition": at}]:
            return TopicPartition(topic, at) if type(at) is int and at >= 0 else None
    return None


def _offset_of(value: Any) -> int | None:
    match value:
        case {"offset": int(last)} if type(last) is int and last >= NOTHING_MIRRORED:
            return last
    return None
