"""Asks the leaders of partitions where their logs begin and end (ListOffsets)."""

import time
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, Final

from eos_mirror.core.records import TopicPartition
from eos_mirror.wire.cluster import Cluster, Leader, Purpose, soon
from eos_mirror.wire.errors import NOT_LEADER, UNUSABLE, Malformed, Refused, Unreachable
from eos_mirror.wire.messages import (
    LIST_OFFSETS,
    NO_REPLICA,
    READ_COMMITTED,
    READ_UNCOMMITTED,
)

PAUSE_S: Final = 0.02
"""Before leaders are asked for again."""


class Place(Enum):
    """A place in a log; the values are the timestamp and the isolation level of the request."""

    START = -2, READ_UNCOMMITTED
    STABLE_END = -1, READ_COMMITTED
    END = -1, READ_UNCOMMITTED


def offsets_at(
    cluster: Cluster, partitions: Iterable[TopicPartition], place: Place, *, until: float
) -> dict[TopicPartition, int]:
    """
    Return the offset of a place in each partition. A leader that moves is followed.

    Leaders are asked for first: one that was learned earlier may be a broker that is cut off, and
    that still reports its old end.

    Raises:
        Unreachable: Not every partition had a leader that answered until the deadline.
        Refused: A leader answered with an error that another one would give, too.
    """
    found: dict[TopicPartition, int] = {}
    wanted = set(partitions)
    _forget(cluster, wanted)
    while left := wanted - found.keys():
        for node, some in _by_leader(cluster, left, until).items():
            found |= _answered(cluster, node, some, place, until)
        if wanted <= found.keys():
            break
        _forget(cluster, wanted - found.keys())
        if time.monotonic() + PAUSE_S > until:
            raise Unreachable(f"no leader of {min(wanted - found.keys())} answers")
        time.sleep(PAUSE_S)
    return found


def _forget(cluster: Cluster, partitions: Iterable[TopicPartition]) -> None:
    for partition in partitions:
        cluster.topics.pop(partition.topic, None)


def _by_leader(
    cluster: Cluster, partitions: Iterable[TopicPartition], until: float
) -> dict[int, dict[TopicPartition, Leader]]:
    """Return the partitions that have a leader, by its node."""
    some = list(partitions)
    unknown = {one.topic for one in some} - cluster.topics.keys()
    if unknown:
        cluster.learn(sorted(unknown), until=until)
    leaders: dict[int, dict[TopicPartition, Leader]] = {}
    for partition in some:
        leader = cluster.leader(partition)
        if leader is not None and leader.node is not None:
            leaders.setdefault(leader.node, {})[partition] = leader
    return leaders


def _answered(
    cluster: Cluster,
    node: int,
    some: Mapping[TopicPartition, Leader],
    place: Place,
    until: float,
) -> dict[TopicPartition, int]:
    """Return what one broker says of partitions that it leads. A question changes nothing."""
    try:
        connection = cluster.connection(node, Purpose.ASK, until=soon(until))
    except UNUSABLE:
        return {}
    try:
        answer = connection.call(LIST_OFFSETS, _request(some, place), until=soon(until))
    except UNUSABLE:
        cluster.drop(connection)
        return {}
    found: dict[TopicPartition, int] = {}
    for topic in answer["topics"]:
        for one in topic["partitions"]:
            partition = TopicPartition(topic["name"], one["partition_index"])
            if partition not in some:
                raise Malformed(f"an answer for {partition}, which was not asked for")
            if not one["error_code"]:
                found[partition] = one["offset"]
            elif one["error_code"] not in NOT_LEADER:
                raise Refused(one["error_code"], f"read the end of {partition}")
    return found


def _request(some: Mapping[TopicPartition, Leader], place: Place) -> dict[str, Any]:
    timestamp, isolation = place.value
    topics: dict[str, list[dict[str, int]]] = {}
    for partition, leader in some.items():
        topics.setdefault(partition.topic, []).append(
            {
                "partition_index": partition.partition,
                "current_leader_epoch": leader.epoch,
                "timestamp": timestamp,
            }
        )
    return {
        "replica_id": NO_REPLICA,
        "isolation_level": isolation,
        "topics": [{"name": name, "partitions": each} for name, each in topics.items()],
    }
