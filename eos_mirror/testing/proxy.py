"""
A TCP proxy in front of one broker that understands just enough Kafka to fail at a chosen request.

It reads frames (4-byte length), and the header of a request: api key, version, correlation id,
client id. Only HIDE_BROKERS rewrites anything. A fault counts its hits, so that a test can prove
that the fault really happened.
"""

import socket
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Self

from eos_mirror.testing.faults import Action, Api, Fault, Request, parse_request
from eos_mirror.testing.metadata import without_brokers

LOOPBACK = "127.0.0.1"
JOIN_S = 5.0
CONNECT_S = 5.0


class FaultProxy:
    """
    Listens at the address that a broker advertises to its clients.

    One thread accepts; two threads serve each connection. All methods are thread-safe.
    """

    def __init__(self, listen_port: int, upstream_port: int) -> None:
        self._address = (LOOPBACK, listen_port)
        self._upstream = (LOOPBACK, upstream_port)
        self._lock = threading.Lock()
        self._faults: list[Fault] = []
        self._seen: Counter[int] = Counter()
        self._connections: list[_Connection] = []
        self._parted = threading.Event()
        self._resources = ExitStack()

    def __enter__(self) -> Self:
        listener = socket.create_server(self._address)
        acceptor = threading.Thread(target=self._accept, args=(listener,), daemon=True)
        acceptor.start()
        self._resources.callback(self.cut_all)
        self._resources.callback(self.clear)
        self._resources.callback(acceptor.join, JOIN_S)
        self._resources.callback(listener.close)
        self._resources.callback(shut, listener)
        return self

    def __exit__(self, *_: object) -> None:
        self._resources.close()

    def inject(self, fault: Fault) -> Fault:
        """Arm a fault and return it, for its hits. If several match, the first one acts."""
        with self._lock:
            self._faults.append(fault)
        return fault

    def clear(self) -> None:
        """Disarm every fault and release what they hold back."""
        with self._lock:
            faults, self._faults = self._faults, []
        for fault in faults:
            fault.release()

    def seen(self, api: Api) -> int:
        """Return how many requests of this kind clients have sent so far."""
        with self._lock:
            return self._seen[api]

    def cut_all(self) -> None:
        """Cut every connection; clients may reconnect immediately."""
        with self._lock:
            connections, self._connections = self._connections, []
        for connection in connections:
            connection.cut()
        for connection in connections:
            connection.join()

    def part(self) -> None:
        """Simulate a network partition: cut everything and refuse connections until `heal`."""
        self._parted.set()
        self.cut_all()

    def heal(self) -> None:
        """End the partition."""
        self._parted.clear()

    def match(self, request: Request) -> Fault | None:
        """Count a request, and return the fault that affects it, if any."""
        with self._lock:
            self._seen[request.api] += 1
            return next((fault for fault in self._faults if fault.takes(request)), None)

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            try:
                upstream = socket.create_connection(self._upstream, timeout=CONNECT_S)
            except OSError:
                client.close()
                continue
            upstream.settimeout(None)
            self._admit(_Connection(self, client=client, upstream=upstream))

    def _admit(self, connection: "_Connection") -> None:
        """Start a connection, under the same lock as `cut_all`: after `part` no byte passes."""
        with self._lock:
            if self._parted.is_set():
                connection.close()
                return
            self._connections = [old for old in self._connections if old.alive]
            self._connections.append(connection)
            connection.start()


class _Connection:
    def __init__(
        self, proxy: FaultProxy, *, client: socket.socket, upstream: socket.socket
    ) -> None:
        self._proxy, self._client, self._upstream = proxy, client, upstream
        self._answers: dict[int, tuple[Fault, Request]] = {}
        self._threads = [
            threading.Thread(target=self._carry_requests, daemon=True),
            threading.Thread(target=self._carry_responses, daemon=True),
        ]
        for end in (client, upstream):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    @property
    def alive(self) -> bool:
        return any(thread.is_alive() for thread in self._threads)

    def cut(self) -> None:
        shut(self._client)
        shut(self._upstream)

    def join(self) -> None:
        for thread in self._threads:
            thread.join(JOIN_S)

    def close(self) -> None:
        """Close both ends; only before `start` or when the threads have finished."""
        self._client.close()
        self._upstream.close()

    def _carry_requests(self) -> None:
        """Forward until the client disconnects. Forwarded requests are still carried out."""
        with suppress(OSError):
            while frame := read_frame(self._client):
                request = parse_request(frame)
                self._forward(frame, request, self._proxy.match(request))
        with suppress(OSError):
            self._upstream.shutdown(socket.SHUT_WR)

    def _forward(self, frame: bytes, request: Request, fault: Fault | None) -> None:
        if fault is None:
            self._upstream.sendall(frame)
            return
        if fault.action in {Action.DELAY_REQUEST, Action.HOLD_REQUEST, Action.STEAL_REQUEST}:
            if fault.action is Action.STEAL_REQUEST:
                shut(self._client)
            fault.hit()
            fault.wait_release()
            self._upstream.sendall(frame)
            return
        if fault.action is Action.CUT_AFTER_REQUEST:
            self._answers[request.correlation_id] = fault, request  # it may outrun the cut
            self._upstream.sendall(frame)
            shut(self._client)
            fault.hit()
            return
        self._answers[request.correlation_id] = fault, request
        self._upstream.sendall(frame)

    def _carry_responses(self) -> None:
        """Forward until the broker disconnects. Answers for a closed client are dropped."""
        with suppress(OSError):
            while frame := read_frame(self._upstream):
                struck = self._answers.pop(int.from_bytes(frame[4:8], signed=True), None)
                answer = frame if struck is None else self._answer(frame, *struck)
                with suppress(OSError):
                    self._client.sendall(answer)
        shut(self._client)
        self._threads[0].join()
        self.close()

    def _answer(self, frame: bytes, fault: Fault, request: Request) -> bytes:
        """Return what the client gets instead; if empty, it gets nothing."""
        if fault.action is Action.CUT_AFTER_REQUEST:
            return b""
        if fault.action is Action.CUT_BEFORE_RESPONSE:
            shut(self._client)
        fault.hit()
        if fault.action is Action.HIDE_BROKERS:
            return without_brokers(frame, request.version)
        if fault.action is Action.DELAY_RESPONSE:
            fault.wait_release()
            return frame
        return b""


@contextmanager
def fault_proxies(ports: Mapping[int, tuple[int, int]]) -> Iterator[Mapping[int, FaultProxy]]:
    """
    Run one proxy per node for the length of the block.

    Args:
        ports: `KafkaCluster.proxy_ports`.
    """
    with ExitStack() as stack:
        yield {
            node: stack.enter_context(FaultProxy(listen, upstream))
            for node, (listen, upstream) in ports.items()
        }


def read_frame(connection: socket.socket) -> bytes:
    """Read the next frame, including its length; empty at the end of the stream."""
    head = _read(connection, 4)
    body = _read(connection, int.from_bytes(head, signed=True)) if head else b""
    return head + body if body else b""


def _read(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            return b""
        data += part
    return bytes(data)


def shut(connection: socket.socket) -> None:
    """Shut down both directions; threads that read or write there wake up."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
