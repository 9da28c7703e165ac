"""
Reads one broker's own view of the cluster.

librdkafka picks the broker that it asks. A test that needs the view of *every* broker must ask each
one. This is one Metadata request (version 4, the oldest that suffices) over a plain socket.
"""

import socket
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

METADATA, VERSION = 3, 4
NO_CONTROLLER = -1
FIRST_FLEXIBLE, LAST_KNOWN = 9, 13
NO_ELEMENTS = b"\x01"
"""An empty array in the compact form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionView:
    """
    A partition as one broker knows it.

    Attributes:
        leader: Node id; None without a leader.
        isr: In-sync replicas, by node id.
    """

    leader: int | None
    replicas: Sequence[int]
    isr: Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """
    The cluster as one broker knows it.

    Attributes:
        brokers: Ids of the brokers that are alive.
        topics: Partitions by topic and number; topics that the broker does not know are absent.
    """

    brokers: frozenset[int]
    has_controller: bool
    topics: Mapping[str, Mapping[int, PartitionView]]


def ask(port: int, topics: Sequence[str] = (), *, timeout_s: float = 2.0) -> ClusterView:
    """
    Ask the broker at this PLAINTEXT port of the loopback interface.

    Raises:
        OSError: The broker does not listen, did not answer in time, or closed the connection.
    """
    names = b"".join(_string(topic) for topic in topics)
    body = struct.pack(">i", len(topics)) + names + b"\0"  # the last byte: create no topic
    request = struct.pack(">hhi", METADATA, VERSION, 1) + _string("eos-mirror") + body
    with socket.create_connection(("127.0.0.1", port), timeout=timeout_s) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        (size,) = struct.unpack(">i", _receive(connection, 4))
        return _parse(_Reader(_receive(connection, size)))


def without_brokers(frame: bytes, version: int) -> bytes:
    """
    Return the same answer to a Metadata request, but without any broker.

    Args:
        frame: The answer, including its length.
        version: Version of the request; 9 to 13, which current clients use.
    """
    if not FIRST_FLEXIBLE <= version <= LAST_KNOWN:
        raise ValueError(f"Metadata version {version} encodes brokers in an unknown form")
    body = _Reader(frame[4:])
    head = body.skip(4) + body.tags() + body.skip(4)  # correlation id; throttle time
    for _ in range(body.compact_length()):
        body.skip(4)  # id
        body.skip(body.compact_length())  # host
        body.skip(4)  # port
        body.skip(body.compact_length())  # rack
        body.tags()
    answer = head + NO_ELEMENTS + body.rest()
    return struct.pack(">i", len(answer)) + answer


def _parse(reader: "_Reader") -> ClusterView:
    reader.take(">ii")  # correlation id, throttle time
    brokers = set()
    for _ in range(reader.integer()):
        brokers.add(reader.integer())
        reader.string()
        reader.integer()
        reader.string()
    reader.string()
    controller = reader.integer()
    topics = {}
    for _ in range(reader.integer()):
        (error,) = reader.take(">h")
        name = reader.string()
        reader.take(">?")
        partitions = dict(_parse_partition(reader) for _ in range(reader.integer()))
        if not error:
            topics[name] = partitions
    return ClusterView(
        brokers=frozenset(brokers), has_controller=controller != NO_CONTROLLER, topics=topics
    )


def _parse_partition(reader: "_Reader") -> tuple[int, PartitionView]:
    _, number, leader = reader.take(">hii")
    replicas = [reader.integer() for _ in range(reader.integer())]
    isr = [reader.integer() for _ in range(reader.integer())]
    view = PartitionView(leader=None if leader < 0 else leader, replicas=replicas, isr=isr)
    return number, view


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def take(self, layout: str) -> tuple[int, ...]:
        values = struct.unpack_from(layout, self._data, self._at)
        self._at += struct.calcsize(layout)
        return values

    def integer(self) -> int:
        return self.take(">i")[0]

    def string(self) -> str:
        (length,) = self.take(">h")
        return self.skip(max(length, 0)).decode()

    def skip(self, size: int) -> bytes:
        start, self._at = self._at, self._at + size
        return self._data[start : self._at]

    def rest(self) -> bytes:
        return self._data[self._at :]

    def compact_length(self) -> int:
        """Read the length of a string or an array in flexible versions; 0 for null."""
        return max(self._varint() - 1, 0)

    def tags(self) -> bytes:
        start = self._at
        for _ in range(self._varint()):
            self._varint()
            self.skip(self._varint())
        return self._data[start : self._at]

    def _varint(self) -> int:
        value = shift = 0
        while True:
            (byte,) = self.skip(1)
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return value


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def _receive(connection: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = connection.recv(size - len(parts))
        if not part:
            raise ConnectionError("the broker closed the connection in the middle of an answer")
        parts += part
    return bytes(parts)
