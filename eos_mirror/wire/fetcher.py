"""
Reads partitions of the source: one fetch session with each broker, one request ahead.

The next request to a broker is sent as soon as its answer has arrived, so the broker works while
the records of the answer are handled.

Source: KIP-227, KIP-392, KIP-595; Kafka's FetchSessionHandler and CompletedFetch.
"""

import time
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from eos_mirror.core.records import Position, TopicPartition
from eos_mirror.ports import Polled
from eos_mirror.wire.cluster import ONE_BROKER_S, Cluster, Purpose
from eos_mirror.wire.connection import Connection
from eos_mirror.wire.errors import (
    FETCH_SESSION_ID_NOT_FOUND,
    FETCH_SESSION_TOPIC_ID_ERROR,
    INVALID_FETCH_SESSION_EPOCH,
    UNUSABLE,
    Malformed,
    Refused,
)
from eos_mirror.wire.messages import FETCH, NO_REPLICA, READ_COMMITTED
from eos_mirror.wire.parts import divided
from eos_mirror.wire.reading import Reading
from eos_mirror.wire.reading_plan import ASK_AGAIN_S, ReadingPlan, rest_after
from eos_mirror.wire.sessions import Session, Wanted

SOON_S: Final = 2.0
SOON_WAIT_MS: Final = 50
"""For this long after an assignment, requests wait this short: more partitions may follow."""

SESSION_LOST: Final = frozenset(
    {FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH, FETCH_SESSION_TOPIC_ID_ERROR}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSettings:
    """
    How the source is read.

    Attributes:
        max_bytes: Of the answers of all brokers together; a larger batch comes alone.
        partition_bytes: Of one partition in an answer.
        min_bytes, wait_ms: A broker waits for this many bytes, and at most this long.
        rack: Of this client, for brokers that are nearer than the leader; empty: none.
        answered_within_s: Deadline of a request, besides `wait_ms`.
    """

    max_bytes: int = 16 << 20
    partition_bytes: int = 1 << 20
    min_bytes: int = 1
    wait_ms: int = 500
    rack: str = ""
    answered_within_s: float = 30.0


@dataclass(slots=True)
class _Node:
    """
    A broker that is read from.

    Attributes:
        connection: Of the unanswered request; None if there is none.
        asked: The partitions of the last request.
        moved: Those that its answers were about.
    """

    session: Session
    connection: Connection | None = None
    asked: dict[TopicPartition, Reading] = field(default_factory=dict)
    moved: dict[TopicPartition, Reading] = field(default_factory=dict)


class Fetcher:
    """
    Reads from any number of brokers. Used by one thread.

    Invariants:
        A: The records of a partition are handed over in order, without a gap.
        B: At most one request to a broker is unanswered, and at most one answer of each waits here.
    """

    def __init__(self, cluster: Cluster, settings: FetchSettings) -> None:
        self._cluster = cluster
        self._settings = settings
        self._plan = ReadingPlan(cluster, partition_bytes=settings.partition_bytes)
        self._nodes: dict[int, _Node] = {}
        self._answers: deque[tuple[int, Polled]] = deque()  # with the broker
        self._behind: set[TopicPartition] = set()
        self._started_at = float("-inf")
        self._ask_at = float("inf")  # when there may be a request to send

    # ------------------------------------------------------------------ what is read

    def start(self, positions: Mapping[TopicPartition, Position]) -> None:
        """Read these partitions from these positions on."""
        self.stop(list(positions))
        self._plan.start(positions)
        self._started_at = self._ask_at = time.monotonic()

    def stop(self, partitions: Iterable[TopicPartition]) -> None:
        """Stop reading these partitions, and drop what was fetched of them."""
        gone = set(partitions)
        self._plan.stop(gone)
        self._behind -= gone
        self._ask_at = 0.0
        for _, polled in self._answers:
            polled.runs = [run for run in polled.runs if run.partition not in gone]
            for partition in gone:
                polled.ends.pop(partition, None)
                polled.faults.pop(partition, None)

    def close(self) -> None:
        """Close the connections. Nothing is read any more."""
        self._plan = ReadingPlan(self._cluster, partition_bytes=self._settings.partition_bytes)
        self._nodes.clear()
        self._answers.clear()
        self._behind.clear()
        self._cluster.close()

    @property
    def topic_ids(self) -> Mapping[str, bytes]:
        """The id under which each topic was read last."""
        return self._plan.topic_ids

    # ------------------------------------------------------------------ reading

    @property
    def connections(self) -> list[Connection]:
        """The connections with unanswered requests."""
        return [one.connection for one in self._nodes.values() if one.connection is not None]

    @property
    def has_parts(self) -> bool:
        """True if a part of an answer waits to be handed over."""
        return bool(self._answers)

    @property
    def more_pending(self) -> bool:
        """True if a broker reported records that were not handed over yet."""
        return bool(self._answers or (self._behind and self.connections))

    def take(self) -> Polled | None:
        """
        Return what has arrived, a part at a time; None if nothing has. Never waits for records.

        Raises:
            Refused: A right is missing, or the login is refused.
        """
        self._receive()
        taken = None
        while taken is None and self._answers:
            number, polled = self._answers.popleft()
            part, rest = divided(polled)
            if rest is not None:
                self._answers.appendleft((number, rest))
            else:
                self._ask_at = 0.0
            if part.runs or part.ends or part.faults:
                taken = part
        if time.monotonic() >= self._ask_at:
            self._ask()
        return taken

    def _receive(self) -> None:
        for number, node in list(self._nodes.items()):
            if node.connection is None:
                continue
            try:
                answer = node.connection.advance()
                if answer is None:
                    continue
                self._answers.append((number, self._handled(number, node, answer[1])))
            except UNUSABLE:
                self._lose(number)
            except Refused:
                self._lose(number)
                raise
            else:
                node.connection = None

    def _lose(self, number: int, *, rest_s: float = ASK_AGAIN_S) -> None:
        """Forget a broker that does not answer: its partitions may have another leader now."""
        node = self._nodes.pop(number)
        if node.connection is not None:
            self._cluster.drop(node.connection)
        self._rest(node.asked.values(), rest_s=rest_s)

    def _rest(self, readings: Iterable[Reading], *, rest_s: float = ASK_AGAIN_S) -> None:
        some = list(readings)
        self._plan.rest(some, rest_s=rest_s)
        self._behind.difference_update([one.partition for one in some])
        self._ask_at = min(self._ask_at, self._plan.again_at)

    # ------------------------------------------------------------------ requests

    def _ask(self) -> None:
        """Send a request to each broker that has none, and whose last answer was handed over."""
        wanted = self._plan.by_node()
        now = time.monotonic()
        self._ask_at = self._plan.again_at
        for number in self._nodes.keys() - wanted.keys():
            if self._nodes[number].connection is None:
                del self._nodes[number]
        waiting = {number for number, _ in self._answers}
        for number, readings in wanted.items():
            node = self._nodes.setdefault(number, _Node(Session()))
            if node.connection is not None or number in waiting:
                continue
            muted_until = self._cluster.muted_until(number, Purpose.FETCH)
            if muted_until > now:
                self._ask_at = min(self._ask_at, muted_until)
            else:
                self._request(number, node, readings, share=len(wanted))

    def _request(
        self, number: int, node: _Node, readings: dict[TopicPartition, Reading], *, share: int
    ) -> None:
        settings = self._settings
        now = time.monotonic()
        wait_ms = settings.wait_ms
        if now - self._started_at < SOON_S:
            wait_ms = min(wait_ms, SOON_WAIT_MS)
        until = now + settings.answered_within_s
        fields = {
            "replica_id": NO_REPLICA,
            "max_wait_ms": wait_ms,
            "min_bytes": settings.min_bytes,
            "max_bytes": max(settings.partition_bytes, settings.max_bytes // (2 * share)),
            "isolation_level": READ_COMMITTED,
            "rack_id": settings.rack,
            **self._changes(number, node, readings),
        }
        node.asked, node.moved = readings, {}
        try:
            connection = self._cluster.connection(
                number, Purpose.FETCH, until=min(until, now + ONE_BROKER_S)
            )
            connection.send(FETCH, [FETCH.request.encode(fields)], until=until)
        except UNUSABLE:
            self._lose(number, rest_s=rest_after(now))
        else:
            node.connection = connection

    def _changes(
        self, number: int, node: _Node, readings: dict[TopicPartition, Reading]
    ) -> dict[str, Any]:
        """Return the fields of a request that concern the session and its partitions."""
        if node.asked is readings and node.session.is_known:
            return node.session.continued(self._wanted(node.moved))
        if any(node.asked.get(p, one) is not one for p, one in readings.items()):
            node.session.renew()  # the broker would not repeat what it answered before the start
        for reading in readings.values():
            reading.asked_of = number
        return node.session.request(self._wanted(readings))

    def _wanted(self, readings: Mapping[TopicPartition, Reading]) -> dict[TopicPartition, Wanted]:
        return {p: one.wanted(self._cluster.leader(p)) for p, one in readings.items()}

    # ------------------------------------------------------------------ answers

    def _handled(self, number: int, node: _Node, answer: Mapping[str, Any]) -> Polled:
        """
        Take an answer apart.

        Raises:
            Malformed: It names a partition that was not asked for. Nothing was taken of it.
            Refused: A right is missing. Nothing was taken of it.
        """
        polled = Polled()
        code = answer["error_code"]
        if code in SESSION_LOST and node.session.is_known:
            node.session.reset()
            return polled
        if code:
            self._rest(node.asked.values())
            node.session.reset()
            return polled
        found = self._found(number, node, answer)
        node.session.answered(answer["session_id"])
        for reading, one in found:
            partition, preferred = reading.partition, reading.preferred
            node.moved[partition] = reading
            if not reading.answered(one, polled, partition_bytes=self._settings.partition_bytes):
                self._rest([reading])
            elif partition in polled.faults:
                self._plan.stop([partition])
            elif reading.is_behind:
                self._behind.add(partition)
            else:
                self._behind.discard(partition)
            if reading.preferred != preferred:
                self._plan.changed()
        return polled

    def _found(
        self, number: int, node: _Node, answer: Mapping[str, Any]
    ) -> list[tuple[Reading, Mapping[str, Any]]]:
        """Return what an answer says of partitions that are still read from this broker."""
        found = []
        for topic in answer["responses"]:
            for one in topic["partitions"]:
                partition = node.session.partition(topic["topic_id"], one["partition_index"])
                if partition is None:
                    raise Malformed("an answer about a partition that was not asked for")
                reading = self._plan.readings.get(partition)
                if (
                    reading is not None
                    and reading is node.asked.get(partition)
                    and reading.asked_of == number
                ):
                    reading.check(one)
                    found.append((reading, one))
        return found
