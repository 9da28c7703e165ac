"""A broker on a loopback socket that answers as a test says."""

import socket
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self

from eos_mirror.testing.proxy import read_frame, shut
from eos_mirror.wire import messages
from eos_mirror.wire.codec import Shape, shape
from eos_mirror.wire.messages import API_VERSIONS, FIND_COORDINATOR, METADATA, Api

APIS: Mapping[tuple[int, int], Api] = {
    (one.key, one.version): one for one in vars(messages).values() if isinstance(one, Api)
}
"""Everything that the lane sends, by key and version."""

_PRODUCE = (
    "transactional_id:string acks:int16 timeout_ms:int32 "
    "topics:[{} partitions:[index:int32 records:bytes]]"
)
PRODUCE_REQUESTS: Mapping[int, Shape] = {
    9: shape(_PRODUCE.format("name:string")),
    12: shape(_PRODUCE.format("name:string")),
    13: shape(_PRODUCE.format("topic_id:uuid")),
}
HEADER = struct.Struct(">ihhih")
NODE = 1
LEADER_EPOCH = 3


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that the broker got."""

    api: Api
    number: int
    fields: Mapping[str, Any]


def framed(number: int, body: bytes, *, api: Api) -> bytes:
    """Return an answer as it is sent."""
    head = struct.pack(">i", number) + b"\0" * api.flexible_header
    return struct.pack(">i", len(head) + len(body)) + head + body


class Peer:
    """The broker's end of one connection."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection

    def answer(self, asked: Asked, fields: Mapping[str, Any]) -> None:
        """Answer a request."""
        self.send(framed(asked.number, asked.api.answer.encode(fields), api=asked.api))

    def send(self, data: bytes) -> None:
        """Send bytes, whatever they are."""
        with suppress(OSError):
            self._socket.sendall(data)

    def finish(self) -> None:
        """Send nothing more, but read on."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Close the connection in an orderly way."""
        shut(self._socket)

    def reset(self) -> None:
        """Close the connection with a reset; the thread that reads does it."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RD)

    def read(self) -> bytes:
        """Return the next request; empty at the end."""
        try:
            return read_frame(self._socket)
        except OSError:
            return b""


Script = Callable[[Peer, Asked], object]


@dataclass(slots=True)
class ScriptedBroker:
    """
    Answers ApiVersions, Metadata and FindCoordinator itself, and leaves the rest to a script.

    One thread serves each connection. A script runs under a lock, so it needs none.

    Attributes:
        script: Called with every other request; also with those three, if `scripted` names them.
        topics: Topic id and number of partitions, by name. This broker leads all of them.
        scripted: Keys of requests that the script answers, although the broker could.
        unknown: Versions of requests that ApiVersions does not list.
        seen: Every request.
        peers: Every connection, in the order in which they were made.
        features: Finalized features.
        leader: Node that Metadata names as the leader.
        leaders: The same, of single partitions.
        others: Addresses of further brokers, by node.
        reads: While it is cleared, the broker is frozen: it accepts connections, and that is all.
    """

    script: Script
    topics: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    scripted: set[int] = field(default_factory=set)
    unknown: set[tuple[int, int]] = field(default_factory=set)
    features: dict[str, int] = field(default_factory=dict)
    leader: int = NODE
    leaders: dict[int, int] = field(default_factory=dict)
    node: int = NODE
    others: dict[int, int] = field(default_factory=dict)
    receive_bytes: int | None = None
    seen: list[Asked] = field(default_factory=list)
    peers: list[Peer] = field(default_factory=list)
    reads: threading.Event = field(default_factory=threading.Event)
    port: int = 0
    fault: BaseException | None = None
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _listener: socket.socket = field(default_factory=socket.socket)
    _sockets: list[socket.socket] = field(default_factory=list)
    _threads: list[threading.Thread] = field(default_factory=list)

    def __enter__(self) -> Self:
        self.reads.set()
        self._listener.close()
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if self.receive_bytes is not None:
            self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.receive_bytes)
        self._listener.bind(("127.0.0.1", self.port))
        self._listener.listen()
        self.port = self._listener.getsockname()[1]
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        for thread in self._threads:
            thread.join(10)
        if self.fault is not None:
            raise self.fault

    def stop(self) -> None:
        """Close the listener and every connection."""
        self.reads.set()
        shut(self._listener)
        self._listener.close()
        for one in list(self._sockets):
            shut(one)

    @property
    def bootstrap(self) -> str:
        """Return the address."""
        return f"127.0.0.1:{self.port}"

    def requests(self, *apis: Api) -> list[Asked]:
        """Return the requests of these kinds so far, in any version."""
        keys = {one.key for one in apis}
        with self._lock:
            return [one for one in self.seen if one.api.key in keys]

    def _start(self, target: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._sockets.append(connection)
            peer = Peer(connection)
            self.peers.append(peer)
            self._start(self._serve, peer, connection)

    def _serve(self, peer: Peer, connection: socket.socket) -> None:
        try:
            while self.reads.wait() and (frame := peer.read()):
                self.reads.wait()
                asked = parsed(frame)
                with self._lock:
                    self.seen.append(asked)
                    self._respond(peer, asked)
        except BaseException as exc:  # noqa: BLE001 (raised at the end of the test)
            self.fault = exc
        finally:
            connection.close()

    def _respond(self, peer: Peer, asked: Asked) -> None:
        own = {API_VERSIONS.key: self.api_versions, METADATA.key: self.metadata}
        own[FIND_COORDINATOR.key] = self.coordinators
        key = asked.api.key
        if key in self.scripted or key not in own:
            self.script(peer, asked)
        else:
            peer.answer(asked, own[key](asked))

    # ------------------------------------------------------------------ answers

    def api_versions(self, _: Asked) -> dict[str, Any]:
        """Return every version that the lane has, and the features."""
        known: dict[int, list[int]] = {}
        for key, version in APIS.keys() - self.unknown:
            known.setdefault(key, []).append(version)
        return {
            "error_code": 0,
            "api_keys": [
                {
                    "key": key,
                    "min_version": min(known[key]),
                    "max_version": max(known[key]),
                }
                for key in known
            ],
            "throttle_time_ms": 0,
            "finalized_features": [
                {"name": name, "max": level, "min": 0} for name, level in self.features.items()
            ],
        }

    def metadata(self, asked: Asked) -> dict[str, Any]:
        """Return the topics that were asked for."""
        names = [one["name"] for one in asked.fields["topics"] or ()]
        return {
            "throttle_time_ms": 0,
            "brokers": [
                {"node_id": node, "host": "127.0.0.1", "port": port, "rack": None}
                for node, port in {self.node: self.port, **self.others}.items()
            ],
            "cluster_id": "scripted",
            "controller_id": NODE,
            "topics": [self._topic(name) for name in names],
        }

    def _topic(self, name: str) -> dict[str, Any]:
        topic_id, count = self.topics.get(name, (bytes(16), 0))
        return {
            "error_code": 0 if count else 3,
            "name": name,
            "topic_id": topic_id,
            "is_internal": False,
            "partitions": [
                {
                    "error_code": 0,
                    "partition_index": number,
                    "leader_id": self.leaders.get(number, self.leader),
                    "leader_epoch": LEADER_EPOCH,
                    "replica_nodes": [NODE],
                    "isr_nodes": [NODE],
                    "offline_replicas": [],
                }
                for number in range(count)
            ],
            "topic_authorized_operations": -(2**31),
        }

    def coordinators(self, asked: Asked) -> dict[str, Any]:
        """Return this broker as the coordinator."""
        return {
            "throttle_time_ms": 0,
            "coordinators": [
                {
                    "key": key,
                    "node_id": self.node,
                    "host": "127.0.0.1",
                    "port": self.port,
                    "error_code": 0,
                    "error_message": None,
                }
                for key in asked.fields["coordinator_keys"]
            ],
        }


def parsed(frame: bytes) -> Asked:
    """Return a request."""
    _, key, version, number, length = HEADER.unpack_from(frame)
    api = APIS[key, version]
    at = HEADER.size + max(0, length) + api.request.flexible
    kind = PRODUCE_REQUESTS[version] if key == messages.PRODUCE_9.key else api.request
    return Asked(api, number, kind.decode(memoryview(frame), at))


def nothing(peer: Peer, asked: Asked) -> None:
    """Leave every request without an answer."""


def answers(*each: Mapping[str, Any]) -> Script:
    """Return a script that gives these answers in turn, and then none."""
    left: Sequence[Mapping[str, Any]] = list(each)

    def script(peer: Peer, asked: Asked) -> None:
        nonlocal left
        if left:
            peer.answer(asked, left[0])
            left = left[1:]

    return script
