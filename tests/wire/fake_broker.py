"""A broker that knows ApiVersions, and answers every other request with a script. For logins."""

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any, Final

from eos_mirror.wire.messages import API_VERSIONS, SASL_AUTHENTICATE, SASL_HANDSHAKE, Api

Answer = Callable[[Any], dict[str, Any]]

VERSIONS: Final = {"error_code": 0, "api_keys": [], "throttle_time_ms": 0}
AGREED: Final = {"error_code": 0, "mechanisms": ["PLAIN"]}
ADDRESS: Final = "127.0.0.1"


def said(data: bytes, *, lifetime_ms: int = 0) -> dict[str, Any]:
    """Return an answer to SaslAuthenticate."""
    return {
        "error_code": 0,
        "error_message": None,
        "auth_bytes": data,
        "session_lifetime_ms": lifetime_ms,
    }


class Scripted:
    """Implements `security.Caller`: a broker that agrees, and then says what a function returns."""

    address = "broker-1:9092"

    def __init__(self, answer: Callable[[bytes], dict[str, Any]]) -> None:
        self._answer = answer
        self.heard: list[bytes] = []

    def call(self, api: Api, fields: Any, *, until: float) -> dict[str, Any]:  # noqa: ARG002
        """See `security.Caller`."""
        if api is SASL_HANDSHAKE:
            return dict(AGREED)
        assert api is SASL_AUTHENTICATE
        self.heard.append(fields["auth_bytes"])
        return self._answer(fields["auth_bytes"])


@contextmanager
def fake_broker(family: int = socket.AF_INET) -> Iterator[int]:
    """Run a broker that answers ApiVersions; return its port on the loopback interface."""
    host = "::1" if family == socket.AF_INET6 else ADDRESS
    with closing(socket.create_server((host, 0), family=family)) as listener:
        thread = threading.Thread(target=_serve, args=(listener,), daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(5)


def _serve(listener: socket.socket) -> None:
    try:
        while True:
            made, _ = listener.accept()
            with made:
                _answer_versions(made)
    except OSError:
        return


def _answer_versions(made: socket.socket) -> None:
    made.settimeout(5)
    head = made.recv(4)
    request = made.recv(struct.unpack(">i", head)[0])
    frame = request[4:8] + API_VERSIONS.answer.encode(VERSIONS)
    made.sendall(struct.pack(">i", len(frame)) + frame)
