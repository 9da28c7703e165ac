"""Which partitions are read, and from which broker each of them."""

import time
from collections.abc import Iterable, Mapping
from typing import Final

from eos_mirror.core.records import Position, TopicPartition
from eos_mirror.wire.cluster import Cluster
from eos_mirror.wire.errors import UNUSABLE
from eos_mirror.wire.reading import Reading

ASK_AGAIN_S: Final = 0.1
"""How long a partition rests after its broker could not be used, at least."""

REST_SHARE: Final = 4
"""After an attempt that blocked, a partition rests this many times as long: others are read."""

FIND_WITHIN_S: Final = 5.0
"""How long a poll may block to ask where partitions are: one broker that is frozen, and another."""

FOUND_AFTER_S: Final = 0.001
NEVER: Final = float("inf")

ByNode = Mapping[int, dict[TopicPartition, Reading]]
"""The partitions to read, by broker."""


class ReadingPlan:
    """
    The partitions to read. Used by one thread.

    Attributes:
        readings: All of them, also those that rest.
        topic_ids: The id under which each topic was read last.
        again_at: When the plan may change by itself, in monotonic seconds.
    """

    def __init__(self, cluster: Cluster, *, partition_bytes: int) -> None:
        """
        Args:
            partition_bytes: Of one partition in an answer.
        """
        self._cluster = cluster
        self._partition_bytes = partition_bytes
        self._new: dict[TopicPartition, Position] = {}
        self._new_at = NEVER
        self._plan: ByNode | None = None
        self.readings: dict[TopicPartition, Reading] = {}
        self.topic_ids: dict[str, bytes] = {}
        self.again_at = NEVER

    def start(self, positions: Mapping[TopicPartition, Position]) -> None:
        """Read these partitions from these positions on; they are not being read."""
        self._new.update(positions)
        self._new_at = self.again_at = 0.0

    def stop(self, partitions: Iterable[TopicPartition]) -> None:
        """Stop reading these partitions."""
        self._plan = None
        for partition in partitions:
            self.readings.pop(partition, None)
            self._new.pop(partition, None)

    def rest(self, readings: Iterable[Reading], *, rest_s: float = ASK_AGAIN_S) -> None:
        """Ask where these partitions are, after a moment."""
        self._plan = None
        until = time.monotonic() + rest_s
        self.again_at = min(self.again_at, until)
        for reading in readings:
            reading.rests_until = until
            reading.preferred = None
            reading.is_lost = True

    def changed(self) -> None:
        """Note that a partition is read from another broker now."""
        self._plan = None

    def by_node(self) -> ByNode:
        """Return the partitions to read now. The same objects, as long as nothing has changed."""
        now = time.monotonic()
        if self._new and now >= self._new_at:
            self._begin_new()
        if self._plan is None or now >= self.again_at:
            self.again_at = self._new_at if self._new else NEVER
            self._plan = self._made(now)
        return self._plan

    def _made(self, now: float) -> ByNode:
        plan: dict[int, dict[TopicPartition, Reading]] = {}
        unknown: list[Reading] = []
        for partition, reading in self.readings.items():
            if reading.rests_until > now:
                self.again_at = min(self.again_at, reading.rests_until)
                continue
            node = self._node_of(reading, now)
            if node is None:
                unknown.append(reading)
            else:
                plan.setdefault(node, {})[partition] = reading
        if unknown:
            self._find(unknown)
        return plan

    def _node_of(self, reading: Reading, now: float) -> int | None:
        """Return the broker to read from; None if it must be asked for, or the topic is gone."""
        if reading.preferred is not None:
            node, until = reading.preferred
            if now < until:
                self.again_at = min(self.again_at, until)
                return node
            reading.preferred = None
        if reading.is_lost:
            return None
        topic = self._cluster.topics.get(reading.partition.topic)
        if topic is None or topic.topic_id != reading.topic_id:
            return None
        leader = topic.leaders.get(reading.partition.partition)
        return None if leader is None else leader.node

    def _begin_new(self) -> None:
        """Learn the ids of new topics. One that does not exist, or not yet, is asked for again."""
        rest_s = self._learn({one.topic for one in self._new})
        for partition, at in list(self._new.items()):
            topic = self._cluster.topics.get(partition.topic)
            if rest_s is None and topic is not None:
                del self._new[partition]
                self.topic_ids[partition.topic] = topic.topic_id
                self.readings[partition] = Reading(
                    partition,
                    topic.topic_id,
                    at.next_offset,
                    at.leader_epoch,
                    self._partition_bytes,
                )
        self._new_at = time.monotonic() + (rest_s or ASK_AGAIN_S)

    def _find(self, unknown: list[Reading]) -> None:
        """Learn where these partitions are. Those of other brokers are read in any case."""
        rest_s = self._learn({one.partition.topic for one in unknown})
        now = time.monotonic()
        for reading in unknown:
            reading.is_lost = rest_s is not None
            found = self._node_of(reading, now) is not None
            until = now + (FOUND_AFTER_S if found else rest_s or ASK_AGAIN_S)
            reading.rests_until = max(reading.rests_until, until)
            self.again_at = min(self.again_at, reading.rests_until)

    def _learn(self, topics: set[str]) -> float | None:
        """Learn where topics are; if no broker answered, return when to ask again, in seconds."""
        self._plan = None
        began = time.monotonic()
        try:
            self._cluster.learn(sorted(topics), until=began + FIND_WITHIN_S)
        except UNUSABLE:
            return rest_after(began)
        return None


def rest_after(began: float) -> float:
    """Return how long to rest after an attempt that began then and failed."""
    return max(ASK_AGAIN_S, REST_SHARE * (time.monotonic() - began))
