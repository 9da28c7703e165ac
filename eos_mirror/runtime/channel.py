"""
Signed JSON lines over one TCP connection.

Each line is `HMAC-SHA256(hex) SPACE JSON`. Both sides first send a nonce. The keys of the two
directions are derived from the run's key and both nonces. So a line is invalid on another
connection, in the other direction or a second time. Lines are authentic, not secret.
"""

import hmac
import json
import secrets
import socket
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from enum import Enum
from typing import Any, Self

MAX_LINE_BYTES = 16 * 1024 * 1024
"""Limit for a line; orders with ten thousand topics take about 1 MB."""

MAX_FIRST_LINE_BYTES = 64 * 1024
"""Limit for a peer that has not signed a line yet."""

_NONCE_BYTES = 16


class End(Enum):
    """Our end of the connection."""

    DRIVER = b"driver"
    TASK = b"task"


class LineRefusedError(ConnectionError):
    """The peer sent a line that is not signed for this connection, repeated or too long."""


class Channel:
    """
    One end of a connection. Close it after any error: its state is then unknown.

    Invariants:
        A. A line is accepted only with the right signature.
        B. Sequence numbers of accepted lines grow strictly.
    """

    def __init__(self, sock: socket.socket, *, end: End, key: str) -> None:
        """
        Exchange nonces.

        Raises:
            OSError: The peer closed the connection or is not one of ours.
        """
        self._socket = sock
        self._reader = sock.makefile("rb")
        self._limit_bytes = MAX_FIRST_LINE_BYTES
        self._sent = 0
        self._taken = 0
        own = secrets.token_hex(_NONCE_BYTES).encode()
        sock.sendall(own + b"\n")
        theirs = self._read_line()
        nonces = own + theirs if end is End.DRIVER else theirs + own
        self._keys = {
            one: hmac.digest(bytes.fromhex(key), one.value + b" " + nonces, "sha256") for one in End
        }
        self._end = end
        self._peer = End.TASK if end is End.DRIVER else End.DRIVER

    def send(self, message: Mapping[str, Any]) -> None:
        """Sign and send one message. A value that JSON cannot encode is sent as its `str`."""
        self._sent += 1
        body = json.dumps(
            {**message, "seq": self._sent}, separators=(",", ":"), default=str
        ).encode()
        self._socket.sendall(self._sign(self._end, body) + b" " + body + b"\n")

    def receive(self) -> dict[str, Any]:
        """
        Return the next message.

        Raises:
            LineRefusedError: Wrong signature, a repeated line or an oversized one (A, B).
            OSError: Timed out, or the peer closed.
        """
        signature, _, body = self._read_line().partition(b" ")
        if not hmac.compare_digest(signature, self._sign(self._peer, body)):
            raise LineRefusedError("wrong signature")
        message: dict[str, Any] = json.loads(body)
        sequence = int(message.pop("seq"))
        if sequence <= self._taken:
            raise LineRefusedError(f"line {sequence} after line {self._taken}")
        self._taken = sequence
        self._limit_bytes = MAX_LINE_BYTES
        return message

    def set_timeout(self, timeout: timedelta) -> None:
        """Set the longest wait of every later send and receive."""
        self._socket.settimeout(timeout.total_seconds())

    def close(self) -> None:
        """Close both directions; wakes a thread that is blocked in `receive`."""
        with suppress(OSError):  # the peer closed first
            self._socket.shutdown(socket.SHUT_RDWR)
        self._reader.close()
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def _sign(self, end: End, body: bytes) -> bytes:
        return hmac.digest(self._keys[end], body, "sha256").hex().encode()

    def _read_line(self) -> bytes:
        line = self._reader.readline(self._limit_bytes)
        if line.endswith(b"\n"):
            return line[:-1]
        if len(line) == self._limit_bytes:
            raise LineRefusedError(f"line longer than {self._limit_bytes} bytes")
        raise ConnectionError("the peer closed the connection")
