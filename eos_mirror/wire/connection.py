"""
One connection to a broker. Every request has a deadline, and its outcome is known or unknown.

Requests may be pipelined, and answers arrive in their order. Nothing here repeats a request.
"""

import select
import socket
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from struct import Struct
from typing import Any, Final

from eos_mirror.wire.buffers import Buffers
from eos_mirror.wire.codec import Fields, uvarint
from eos_mirror.wire.errors import Malformed, Refused, Unanswered, Unreachable, WireError
from eos_mirror.wire.messages import API_VERSIONS, Api
from eos_mirror.wire.security import Security
from eos_mirror.wire.tls import SPEAKS_TLS, encrypted, is_alert, joined, reason_of

SIZE, HEADER = Struct(">i"), Struct(">hhih")
CORRELATION: Final = Struct(">i")
ANSWER_HEADER_BYTES: Final = 4
MOST_ANSWER_BYTES: Final = 256 << 20
SOFTWARE: Final = {"client_software_name": "eos-mirror", "client_software_version": "1"}
MOST_PARTS: Final = 512
"""Parts of one system call; systems allow 1,024."""

ONE_ADDRESS_S: Final = 3.0
"""How long one address of a name may take, if there are others."""

WAKE_BYTES: Final = 256 << 10
"""The reader of a large answer wakes after so many bytes. Brokers write 64 KiB at a time."""

LONGEST_MUTE_S: Final = 60.0
"""The longest time for which a broker is believed to mute us: quotas count over some 11 s."""

Bytes = bytes | bytearray | memoryview


@dataclass(slots=True)
class _Request:
    """A request without an answer yet; `tag` is the caller's."""

    api: Api
    number: int
    until: float
    tag: Any


class Connection:
    """
    A connection that has exchanged versions and logged in. Used by one thread.

    Invariant A: after Unanswered or Malformed it is closed, and every further use is Unanswered.

    Attributes:
        versions: Lowest and highest version of each request that the broker knows.
        features: Finalized features of the cluster, such as `transaction.version`.
        muted_until: Until then, in monotonic seconds, the broker does not read (KIP-219).
    """

    def __init__(
        self,
        host: str,
        port: int,
        security: Security,
        *,
        client_id: str,
        until: float,
        buffers: Buffers | None = None,
    ) -> None:
        """
        Connect and log in.

        Args:
            buffers: Memory for answers, of all connections of a cluster; None: of this one only.
            until: When to give up, in monotonic seconds.

        Raises:
            Unreachable: No address of the host answered in time.
            Refused: The broker refused the login.
            Malformed: It does not speak Kafka's protocol.
        """
        self.address = f"{host}:{port}"
        self.muted_until = 0.0
        self._client_id = client_id.encode()
        self._number = 0
        self._requests: deque[_Request] = deque()
        self._size = bytearray(SIZE.size)
        self._frame: memoryview | None = None
        self._buffers = Buffers() if buffers is None else buffers
        self._got = 0
        self._wakes_at = 1
        self._login = security.login
        self._login_at: float | None = None
        self._socket = _connected(host, port, security, until)
        try:
            self._greet(until)
        except Unanswered as exc:
            self.close()
            raise Unreachable(str(exc)) from exc
        except BaseException:
            self.close()
            raise

    def _greet(self, until: float) -> None:
        answer = self.call(API_VERSIONS, SOFTWARE, until=until)
        if answer["error_code"]:
            raise Refused(answer["error_code"], f"{self.address}: ApiVersions")
        self.versions = {
            one["key"]: (one["min_version"], one["max_version"]) for one in answer["api_keys"]
        }
        self.features = {one["name"]: one["max"] for one in answer.get("finalized_features", ())}
        self.log_in(until)

    @property
    def needs_login(self) -> bool:
        """True if the session ends soon: nothing may be sent before the next login (KIP-368)."""
        return self._login_at is not None and time.monotonic() > self._login_at

    def log_in(self, until: float) -> None:
        """
        Log in, or again. No request may be unanswered; after an error, drop the connection.

        Raises:
            Refused, Malformed, Unanswered: See `login.login_with`.
        """
        if self._login is not None:
            again_s = self._login(self, until)
            self._login_at = None if again_s is None else time.monotonic() + again_s

    def knows(self, api: Api) -> bool:
        """Return True if the broker knows this version of the request."""
        lowest, highest = self.versions.get(api.key, (1, 0))
        return bool(lowest <= api.version <= highest)

    # ------------------------------------------------------------------ requests

    @property
    def unanswered(self) -> int:
        """Number of requests without an answer."""
        return len(self._requests)

    def call(self, api: Api, fields: Fields, *, until: float) -> dict[str, Any]:
        """
        Send a request and wait for its answer. No other request may be unanswered.

        Raises:
            Unanswered: The outcome is unknown.
        """
        self.send(api, [api.request.encode(fields)], until=until)
        _, answer = self.receive()
        return answer

    def send(self, api: Api, body: Sequence[Bytes], *, until: float, tag: Any = None) -> None:
        """
        Send a request, in parts that are not copied. They must not change until this returns.

        Args:
            until: Deadline of the answer, in monotonic seconds. The time for which the broker does
                not read is added.
            tag: Returned with the answer.

        Raises:
            Unanswered: The connection broke, or the request could not be sent in time.
        """
        now = time.monotonic()
        if self.muted_until > now:
            until += self.muted_until - now
            time.sleep(self.muted_until - now)
        self._number = self._number + 1 & 0x7FFFFFFF
        head = HEADER.pack(api.key, api.version, self._number, len(self._client_id))
        head += self._client_id
        if api.request.flexible:
            head += uvarint(0)
        size = len(head) + sum(map(len, body))
        self._requests.append(_Request(api, self._number, until, tag))
        self._write([SIZE.pack(size) + head, *body], until)

    @property
    def _is_encrypted(self) -> bool:
        return hasattr(self._socket, "context")

    def _write(self, parts: list[Bytes], until: float) -> None:
        if self._is_encrypted:
            parts = joined(parts)
        views = deque(memoryview(part).cast("B") for part in parts)
        try:
            while views:
                self._write_some(views, until)
        except OSError as exc:
            self.close()
            raise Unanswered(f"{self.address}: {reason_of(exc)}") from exc
        except Unanswered:
            self.close()  # a part of the request may have been sent
            raise

    def _write_some(self, views: deque[memoryview], until: float) -> None:
        try:
            if self._is_encrypted:  # TLS has no sendmsg
                sent = self._socket.send(views[0])
            else:
                sent = self._socket.sendmsg(list(views)[:MOST_PARTS])
        except OSError as exc:
            if not _would_block(exc):
                raise
            if not wait_for([self], until=until, writable=True):
                raise Unanswered(f"{self.address}: the broker does not read") from exc
            return
        while views and sent >= len(views[0]):
            sent -= len(views.popleft())
        if views and sent:
            views[0] = views[0][sent:]

    # ------------------------------------------------------------------ answers

    def receive(self) -> tuple[Any, dict[str, Any]]:
        """
        Wait for the next answer; return its tag and its fields.

        Raises:
            Unanswered: None arrived before its deadline, or the connection broke.
            Malformed: It is not the answer to the request.
        """
        while (answer := self.advance()) is None:
            wait_for([self], until=self._requests[0].until)
        return answer

    def advance(self) -> tuple[Any, dict[str, Any]] | None:
        """
        Return the next answer, with its tag, if it is complete. Never waits.

        Raises:
            Unanswered, Malformed: See `receive`.
        """
        if not self._requests:
            return None
        try:
            return self._next()
        except OSError as exc:
            self.close()
            raise Unanswered(f"{self.address}: {reason_of(exc)}") from exc
        except WireError:
            self.close()
            raise

    def _next(self) -> tuple[Any, dict[str, Any]] | None:
        if not self._read():
            request = self._requests[0]
            if time.monotonic() > request.until:
                raise Unanswered(f"{self.address}: no answer to {request.api.name} in time")
            return None
        frame, self._frame, self._got = self._frame, None, 0
        self._wake_at(1)
        return self._answer(frame or memoryview(b""))

    def _read(self) -> bool:
        """Read what has arrived of the next frame; return True if it is complete."""
        while True:
            if self._frame is None and self._got == SIZE.size:
                size = SIZE.unpack(self._size)[0]
                if is_alert(self._size):
                    raise Unreachable(f"{self.address}: {SPEAKS_TLS}")
                if not ANSWER_HEADER_BYTES <= size <= MOST_ANSWER_BYTES:
                    raise Malformed(f"{self.address}: an answer of {size} bytes")
                self._frame, self._got = self._buffers.of(size), 0
            buffer = memoryview(self._size) if self._frame is None else self._frame
            if self._frame is not None and self._got == len(buffer):
                return True
            missing = len(buffer) - self._got
            try:
                got = self._socket.recv_into(buffer[self._got :])
            except OSError as exc:
                if _would_block(exc):
                    return False
                raise
            if not got:
                raise Unanswered(f"{self.address}: the broker closed the connection")
            self._got += got
            if got < missing and not self._is_encrypted:
                self._wake_at(min(missing - got, WAKE_BYTES))
                return False  # the socket is empty

    def _wake_at(self, size: int) -> None:
        """Let `wait_for` return only when this many bytes have arrived, or none will any more."""
        if size != self._wakes_at:
            self._wakes_at = size
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size)

    def _answer(self, frame: memoryview) -> tuple[Any, dict[str, Any]]:
        if not self._requests:
            raise Malformed(f"{self.address}: an answer without a request")
        request = self._requests.popleft()
        number = CORRELATION.unpack_from(frame)[0]
        if number != request.number:
            raise Malformed(f"{self.address}: answer {number} to request {request.number}")
        at = CORRELATION.size
        if request.api.flexible_header:
            if len(frame) <= at or frame[at]:
                raise Malformed(f"{self.address}: an answer with header tags")
            at += 1
        answer = request.api.answer.decode(frame, at)
        self._mute(answer.get("throttle_time_ms", 0) / 1000)
        return request.tag, answer

    def _mute(self, seconds: float) -> None:
        """The broker does not read for a while: this is not time that a request took."""
        seconds = min(seconds, LONGEST_MUTE_S)
        if seconds > 0:
            self.muted_until = time.monotonic() + seconds
            for request in self._requests:
                request.until += seconds

    # ------------------------------------------------------------------ the socket

    def fileno(self) -> int:
        """Return the socket's descriptor."""
        return self._socket.fileno()

    @property
    def has_buffered(self) -> bool:
        """True if decrypted bytes wait inside the TLS layer, where `wait_for` cannot see them."""
        pending: Callable[[], int] | None = getattr(self._socket, "pending", None)
        return pending is not None and pending() > 0

    @property
    def is_closed(self) -> bool:
        """True after `close`, or after an error."""
        return self._socket.fileno() < 0

    @property
    def is_stale(self) -> bool:
        """True if it is closed, or the broker closed it while it was idle."""
        if self.is_closed:
            return True
        if self._requests:
            return False
        try:
            self._socket.recv(1, 0 if self._is_encrypted else socket.MSG_PEEK)
        except OSError as exc:
            return not _would_block(exc)
        return True  # closed, or bytes that no request asked for

    def close(self) -> None:
        """Close the connection. Unanswered requests stay without an answer."""
        self._socket.close()


def wait_for(connections: Iterable[Connection], *, until: float, writable: bool = False) -> bool:
    """Wait until one of the connections can be read (or written); return False in vain."""
    some = list(connections)
    if any(one.is_closed or (one.has_buffered and not writable) for one in some):
        return True
    poll = select.poll()
    for one in some:
        poll.register(one.fileno(), select.POLLOUT if writable else select.POLLIN)
    left_ms = max(0.0, until - time.monotonic()) * 1000
    return bool(poll.poll(left_ms))


def _would_block(exc: OSError) -> bool:
    import ssl  # noqa: PLC0415 (a process without TLS does not load it)

    return isinstance(exc, BlockingIOError | ssl.SSLWantReadError | ssl.SSLWantWriteError)


def _connected(host: str, port: int, security: Security, until: float) -> socket.socket:
    """Connect to the first address of the name that accepts."""
    if not host:
        raise Unreachable("a broker without an address")
    try:
        found = socket.getaddrinfo(host, port, security.family, socket.SOCK_STREAM)
    except (OSError, ValueError, OverflowError) as exc:  # no name, or no port
        raise Unreachable(f"{host}:{port}: {exc}") from exc
    fault: Exception | None = None
    for i, (family, kind, protocol, _, address) in enumerate(found):
        left_s = until - time.monotonic()
        if i + 1 < len(found):
            left_s = min(left_s, ONE_ADDRESS_S)
        if left_s <= 0:
            break
        made = socket.socket(family, kind, protocol)
        try:
            made.settimeout(left_s)
            made.connect(address)
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if security.tls is not None:
                made.settimeout(max(0.01, min(left_s, until - time.monotonic())))
                made = encrypted(made, security.tls, host)
            made.setblocking(False)
        except (OSError, OverflowError) as exc:
            made.close()
            fault = exc
        else:
            return made
    raise Unreachable(f"{host}:{port}: {fault or 'no answer in time'}") from fault
