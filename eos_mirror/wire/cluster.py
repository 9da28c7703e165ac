"""Where the partitions and coordinators of one cluster are, and the connections to its brokers."""

import random
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, TypeVar

from eos_mirror.core.records import TopicPartition
from eos_mirror.wire.buffers import Buffers
from eos_mirror.wire.connection import Connection
from eos_mirror.wire.errors import (
    NO_COORDINATOR,
    TOPIC_AUTHORIZATION_FAILED,
    UNUSABLE,
    Malformed,
    Refused,
    Unanswered,
    Unreachable,
    WireError,
)
from eos_mirror.wire.messages import FIND_COORDINATOR, METADATA
from eos_mirror.wire.security import Security

NO_ID: Final = bytes(16)
NO_NODE: Final = -1
ONE_BROKER_S: Final = 3.0
"""How long one broker may take to accept a connection or a question, if there are others."""

FIRST_PAUSE_S: Final = 0.001
LONGEST_PAUSE_S: Final = 0.2

T = TypeVar("T")


class Purpose(Enum):
    """What a connection is for. Requests that wait at the broker must not hold up others."""

    ASK = "ask"
    FETCH = "fetch"
    PRODUCE = "produce"


class Kind(Enum):
    """What a coordinator coordinates; the values are Kafka's."""

    GROUP = 0
    TRANSACTION = 1


@dataclass(frozen=True, slots=True)
class Leader:
    """The leader of a partition. `node` is None while it has none."""

    node: int | None
    epoch: int


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic: its id, and the leaders of its partitions."""

    topic_id: bytes
    leaders: Mapping[int, Leader]


class Cluster:
    """
    One cluster. Used by one thread.

    Attributes:
        topics: What was learned of topics, by name.
    """

    def __init__(self, bootstrap: str, security: Security, *, client_id: str) -> None:
        """
        Args:
            bootstrap: Addresses of some brokers, `host:port,host:port`.
        """
        self.topics: dict[str, Topic] = {}
        self._bootstrap = [_address(one) for one in bootstrap.split(",") if one.strip()]
        self._security = security
        self._client_id = client_id
        self._brokers: dict[int, tuple[str, int]] = {}
        self._connections: dict[tuple[int, Purpose], Connection] = {}
        self._first: Connection | None = None  # to one of the bootstrap addresses
        self._failed_at: dict[str, float] = {}  # by address: asked last
        self._buffers = Buffers()

    # ------------------------------------------------------------------ connections

    def connection(self, node: int, purpose: Purpose, *, until: float) -> Connection:
        """
        Return a connection to a broker; a new one if there is none, or it was closed while idle.

        Raises:
            Unreachable: The broker is unknown or does not answer. Nothing was sent.
            Refused: It refuses the login.
        """
        known = self._connections.get((node, purpose))
        if known is not None and self._is_usable(known, until):
            return known
        if node not in self._brokers:
            raise Unreachable(f"broker {node} is not known")
        made = self._connected(self._brokers[node], until)
        self._connections[node, purpose] = made
        return made

    def _is_usable(self, connection: Connection, until: float) -> bool:
        """Log in again if it is time to; return False if the connection is closed now."""
        try:
            if not connection.is_stale:
                if connection.needs_login and not connection.unanswered:
                    connection.log_in(until)
                return True
        except Unanswered:
            pass  # the request was about the login only
        except BaseException:
            self.drop(connection)
            raise
        self.drop(connection)
        return False

    def muted_until(self, node: int, purpose: Purpose) -> float:
        """Return until when a broker does not read from a connection, in monotonic seconds."""
        known = self._connections.get((node, purpose))
        return 0.0 if known is None else known.muted_until

    def _connected(self, address: tuple[str, int], until: float) -> Connection:
        try:
            return Connection(
                *address,
                self._security,
                client_id=self._client_id,
                until=until,
                buffers=self._buffers,
            )
        except UNUSABLE:
            self._failed_at[_text(address)] = time.monotonic()
            raise

    def drop(self, connection: Connection) -> None:
        """Close a connection. The next request gets a new one, and questions go to others."""
        connection.close()
        self._failed_at[connection.address] = time.monotonic()
        if connection is self._first:
            self._first = None
        for place, one in list(self._connections.items()):
            if one is connection:
                del self._connections[place]

    def close(self) -> None:
        """Close all connections."""
        for connection in [*self._connections.values(), *filter(None, [self._first])]:
            self.drop(connection)

    def any_broker(self, *, until: float) -> Connection:
        """
        Return a connection to some broker, for questions that every broker answers.

        Brokers that have failed are tried last: one that is frozen accepts connections.

        Raises:
            Unreachable: None of them answers.
            Refused: They refuse the login.
        """
        idle = [
            one
            for (_, purpose), one in self._connections.items()
            if purpose is Purpose.ASK and not one.unanswered
        ]
        for one in [*idle, *filter(None, [self._first])]:
            if one.address not in self._failed_at and self._is_usable(one, soon(until)):
                return one
        fault: WireError = Unreachable("no broker is known")
        for node in sorted(self._brokers, key=self._order):
            try:
                return self.connection(node, Purpose.ASK, until=soon(until))
            except UNUSABLE as exc:
                fault = exc
        for address in self._bootstrap:
            try:
                self._first = self._connected(address, soon(until))
            except UNUSABLE as exc:
                fault = exc
            else:
                return self._first
        raise fault

    def _order(self, node: int) -> tuple[float, float]:
        """Return a key that puts first who never failed, then who failed longest ago."""
        return self._failed_at.get(_text(self._brokers[node]), 0.0), random.random()  # noqa: S311 (spreads questions)

    def ask(self, api: Any, fields: Mapping[str, Any], *, until: float) -> dict[str, Any]:
        """Ask any broker. A question changes nothing, so another broker is asked if one fails."""
        pause_s = FIRST_PAUSE_S
        while True:
            connection = self.any_broker(until=until)
            try:
                answer = connection.call(api, fields, until=soon(until))
            except UNUSABLE:
                self.drop(connection)
                if time.monotonic() + pause_s > until:
                    raise
            else:
                self._failed_at.pop(connection.address, None)
                return answer
            time.sleep(pause_s)
            pause_s = min(pause_s * 2, LONGEST_PAUSE_S)

    # ------------------------------------------------------------------ topics

    def learn(self, names: Iterable[str], *, until: float) -> None:
        """
        Learn the ids and leaders of these topics. What does not exist is forgotten.

        Raises:
            Unanswered, Unreachable: No broker answered.
            Refused: A right on a topic is missing, or the login is refused.
        """
        wanted = [{"topic_id": NO_ID, "name": name} for name in names]
        answer = self.ask(
            METADATA,
            {
                "topics": wanted,
                "allow_auto_topic_creation": False,
                "include_topic_authorized_operations": False,
            },
            until=until,
        )
        for broker in answer["brokers"]:
            self._learn_broker(broker["node_id"], broker["host"], broker["port"])
        for topic in answer["topics"]:
            self.topics.pop(topic["name"], None)
            if not topic["error_code"]:
                self.topics[topic["name"]] = _topic(topic)
            elif topic["error_code"] == TOPIC_AUTHORIZATION_FAILED:
                raise Refused(topic["error_code"], f"learn of {topic['name']}")

    def _learn_broker(self, node: int, host: str, port: int) -> None:
        if self._brokers.get(node, (host, port)) != (host, port):
            for purpose in Purpose:
                moved = self._connections.get((node, purpose))
                if moved is not None:
                    self.drop(moved)
        self._brokers[node] = host, port

    def leader(self, partition: TopicPartition) -> Leader | None:
        """Return the leader of a partition as it was last learned; None if it has none."""
        topic = self.topics.get(partition.topic)
        leader = None if topic is None else topic.leaders.get(partition.partition)
        return None if leader is None or leader.node is None else leader

    # ------------------------------------------------------------------ coordinators

    def coordinator(self, kind: Kind, key: str, *, until: float) -> int:
        """
        Return the node that coordinates a group or a transactional id.

        Raises:
            Unanswered, Unreachable: There was none until the deadline.
            Refused: A right is missing.
        """

        def find() -> int:
            fields = {"key_type": kind.value, "coordinator_keys": [key]}
            answer = self.ask(FIND_COORDINATOR, fields, until=until)
            found = next((one for one in answer["coordinators"] if one["key"] == key), None)
            if found is None:
                raise Malformed(f"an answer without the coordinator of {key}")
            if found["error_code"]:
                raise Refused(found["error_code"], f"find the coordinator of {key}")
            self._learn_broker(found["node_id"], found["host"], found["port"])
            return int(found["node_id"])

        return patiently(find, until=until, codes=NO_COORDINATOR)


class Coordinator:
    """The broker that coordinates a group or a transactional id. It may move."""

    def __init__(self, cluster: Cluster, kind: Kind, key: str) -> None:
        """
        Args:
            key: The group, or the transactional id.
        """
        self.key = key
        self._cluster = cluster
        self._kind = kind
        self._node: int | None = None

    def find(self, until: float) -> int:
        """Return its node, as it was learned last. See `Cluster.coordinator` for the errors."""
        if self._node is None:
            self._node = self._cluster.coordinator(self._kind, self.key, until=until)
        return self._node

    def forget(self) -> None:
        """Ask for it again before the next request."""
        self._node = None

    def connected(self, until: float) -> Connection:
        """
        Return a connection to it, wherever it is then.

        Raises:
            Unanswered, Unreachable, Refused: There was none until the deadline. Nothing was sent.
        """
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                return self._cluster.connection(self.find(until), Purpose.ASK, until=soon(until))
            except Unreachable:
                self.forget()
                if time.monotonic() + pause_s > until:
                    raise
            time.sleep(pause_s)
            pause_s = min(pause_s * 2, LONGEST_PAUSE_S)


def patiently(call: Callable[[], T], *, until: float, codes: frozenset[int]) -> T:
    """
    Repeat a call while its answer is one of these codes, which say that nothing was done.

    Raises:
        Refused: Any other code, or one of these until the deadline.
    """
    pause_s = FIRST_PAUSE_S
    while True:
        try:
            return call()
        except Refused as exc:
            if exc.code not in codes or time.monotonic() + pause_s > until:
                raise
        time.sleep(pause_s)
        pause_s = min(pause_s * 2, LONGEST_PAUSE_S)


def soon(until: float) -> float:
    """Return a deadline for one broker, if there are others."""
    return min(until, time.monotonic() + ONE_BROKER_S)


def _text(address: tuple[str, int]) -> str:
    return f"{address[0]}:{address[1]}"


def _address(text: str) -> tuple[str, int]:
    """Return the host and the port of an address, such as `SSL://[::1]:9092`."""
    host, _, port = text.strip().rpartition("://")[2].rpartition(":")
    return host.strip("[]"), int(port)


def _topic(found: Mapping[str, Any]) -> Topic:
    leaders = {
        one["partition_index"]: Leader(
            None if one["leader_id"] == NO_NODE else one["leader_id"], one["leader_epoch"]
        )
        for one in found["partitions"]
    }
    return Topic(found["topic_id"], leaders)
