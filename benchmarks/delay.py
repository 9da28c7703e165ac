"""
A TCP proxy on loopback that delivers every byte a fixed time after it has arrived.

    python -m benchmarks.delay ONE_WAY_MS LISTEN:UPSTREAM ...

Each direction of a connection keeps a queue of chunks and of the times at which they are due, so
that any number of bytes are in flight and only time is lost. Bandwidth is not limited, and neither
is the window, up to `IN_FLIGHT_BYTES`. The handshake of a connection is not delayed, and no packet
is lost.

On two cores, one connection gets 0.65 GB/s, with sender and receiver on the same cores;
`python -m benchmarks.delay` without arguments measures it.
"""

import selectors
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from eos_mirror.testing.processes import spawn

LOOPBACK = "127.0.0.1"
CHUNK_BYTES = 1 << 18
IN_FLIGHT_BYTES = 1 << 28
"""At 25 ms, this is the window of a path of 10 GB/s; then the sender has to wait."""
MOST_BUFFERS = 64
READY_WITHIN_S, STOPPED_WITHIN_S = 10.0, 5.0
MEASURED_BYTES = 2 << 30


class Direction:
    """One direction of a connection: what was read and is not yet due, or not yet written."""

    def __init__(self, source: socket.socket, sink: socket.socket) -> None:
        self.source = source
        self.sink = sink
        self.queue: deque[tuple[float, memoryview]] = deque()
        self.queued_bytes = 0
        self.ended = self.finished = False

    def read(self, delay_s: float) -> None:
        """Take what has arrived. An end of the stream is an empty chunk."""
        chunk = self.source.recv(CHUNK_BYTES)
        self.ended = not chunk
        self.queued_bytes += len(chunk)
        self.queue.append((time.monotonic() + delay_s, memoryview(chunk)))

    def write(self) -> None:
        """Write what is due. Raises BlockingIOError if the receiver does not take it."""
        now = time.monotonic()
        while due := [chunk for at, chunk in self._front() if at <= now]:
            if not due[0]:
                self.sink.shutdown(socket.SHUT_WR)
                self.finished = True
                self.queue.clear()
                return
            self._written(self.sink.sendmsg([chunk for chunk in due if chunk]))

    def _front(self) -> Sequence[tuple[float, memoryview]]:
        return [self.queue[i] for i in range(min(MOST_BUFFERS, len(self.queue)))]

    def _written(self, count: int) -> None:
        self.queued_bytes -= count
        while count:
            at, chunk = self.queue.popleft()
            if len(chunk) > count:
                self.queue.appendleft((at, chunk[count:]))
                return
            count -= len(chunk)

    @property
    def due_at(self) -> float | None:
        """When the next chunk is due, in monotonic seconds."""
        return self.queue[0][0] if self.queue else None

    @property
    def is_open(self) -> bool:
        """Whether more may be read now."""
        return not self.ended and self.queued_bytes < IN_FLIGHT_BYTES


class DelayProxy:
    """Serves all connections of some listeners in one thread."""

    def __init__(self, ports: Sequence[tuple[int, int]], *, one_way_s: float) -> None:
        """
        Listen.

        Args:
            ports: For each listener its port, and the port that it forwards to.
        """
        self._delay_s = one_way_s
        self._selector = selectors.DefaultSelector()
        self._pairs: list[tuple[Direction, Direction]] = []
        self._blocked: set[Direction] = set()
        for listen, upstream in ports:
            listener = socket.create_server((LOOPBACK, listen))
            self._selector.register(listener, selectors.EVENT_READ, upstream)

    def run(self) -> None:
        """Serve indefinitely."""
        while True:
            for key, events in self._selector.select(self._wait_s()):
                if isinstance(key.data, int):
                    self._accept(key.fileobj, key.data)
                else:
                    reads, writes = key.data
                    self._serve(reads, writes, events)
            self._deliver()

    def _wait_s(self) -> float | None:
        due = [
            one.due_at
            for pair in self._pairs
            for one in pair
            if one.due_at is not None and one not in self._blocked
        ]
        return max(0.0, min(due) - time.monotonic()) if due else None

    def _accept(self, listener: object, upstream: int) -> None:
        assert isinstance(listener, socket.socket)
        client, _ = listener.accept()
        try:
            server = socket.create_connection((LOOPBACK, upstream))
        except OSError:
            client.close()
            return
        for end in (client, server):
            end.setblocking(False)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        there, back = Direction(client, server), Direction(server, client)
        self._pairs.append((there, back))
        self._selector.register(client, selectors.EVENT_READ, (there, back))
        self._selector.register(server, selectors.EVENT_READ, (back, there))

    def _serve(self, reads: Direction, writes: Direction, events: int) -> None:
        """Read from a socket that has bytes; write to it later if it has room again."""
        if events & selectors.EVENT_WRITE:
            self._blocked.discard(writes)
        if events & selectors.EVENT_READ:
            try:
                reads.read(self._delay_s)
            except BlockingIOError:
                pass
            except OSError:
                self._close(reads, writes)

    def _deliver(self) -> None:
        for pair in list(self._pairs):
            try:
                for one in pair:
                    self._write(one)
            except OSError:
                self._close(*pair)
                continue
            if all(one.finished for one in pair):
                self._close(*pair)
                continue
            self._watch(*pair)

    def _write(self, one: Direction) -> None:
        if one in self._blocked or one.due_at is None:
            return
        try:
            one.write()
        except BlockingIOError:
            self._blocked.add(one)

    def _watch(self, there: Direction, back: Direction) -> None:
        for reads, writes in ((there, back), (back, there)):
            events = selectors.EVENT_READ if reads.is_open else 0
            events |= selectors.EVENT_WRITE if writes in self._blocked else 0
            registered = self._selector.get_map().get(reads.source)
            if registered is not None and not events:
                self._selector.unregister(reads.source)
            elif registered is None and events:
                self._selector.register(reads.source, events, (reads, writes))
            elif registered is not None and registered.events != events:
                self._selector.modify(reads.source, events, (reads, writes))

    def _close(self, *pair: Direction) -> None:
        self._pairs = [one for one in self._pairs if pair[0] not in one]
        for one in pair:
            self._blocked.discard(one)
            with suppress(KeyError, ValueError):
                self._selector.unregister(one.source)
            one.source.close()


@contextmanager
def delayed(ports: Sequence[tuple[int, int]], *, one_way_ms: float) -> Iterator[None]:
    """Run the proxies in a process of their own; without ports, run nothing."""
    if not ports:
        yield
        return
    words = [f"{listen}:{upstream}" for listen, upstream in ports]
    process = spawn([sys.executable, "-m", "benchmarks.delay", f"{one_way_ms:g}", *words])
    try:
        for listen, _ in ports:
            _wait_for(listen)
        yield
    finally:
        process.kill()
        process.wait(STOPPED_WITHIN_S)


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + READY_WITHIN_S
    while True:
        try:
            socket.create_connection((LOOPBACK, port)).close()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return


def main(words: Sequence[str]) -> None:
    """Serve, or measure without arguments."""
    if not words:
        print(f"{measure(MEASURED_BYTES) / 1e9:.2f} GB/s through one connection")
        return
    one_way_ms, *ports = words
    pairs = [(int(listen), int(up)) for listen, _, up in (one.partition(":") for one in ports)]
    DelayProxy(pairs, one_way_s=float(one_way_ms) / 1_000).run()


def measure(count: int) -> float:
    """Return the bytes a second that one connection gets through a proxy of 25 ms."""
    with socket.create_server((LOOPBACK, 0)) as sink, socket.create_server((LOOPBACK, 0)) as spare:
        port = spare.getsockname()[1]
        spare.close()
        with delayed([(port, sink.getsockname()[1])], one_way_ms=25):
            sink.accept()[0].close()  # the connection that waited for the proxy
            sender = socket.create_connection((LOOPBACK, port))
            receiver, _ = sink.accept()
            thread = threading.Thread(target=_send, args=(sender, count), daemon=True)
            began = time.monotonic()
            thread.start()
            left, buffer = count, bytearray(1 << 20)
            while left:
                left -= receiver.recv_into(buffer)
            return count / (time.monotonic() - began)


def _send(sender: socket.socket, count: int) -> None:
    block = bytes(1 << 20)
    for _ in range(count // len(block)):
        sender.sendall(block)


if __name__ == "__main__":
    main(sys.argv[1:])
