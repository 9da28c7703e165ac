"""A token endpoint of an identity provider, on the loopback interface."""

import base64
import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def jwt(*, valid_s: float, issued_at: float | None = None, subject: str = "alice") -> str:
    """Return a token without a signature, which Kafka's unsecured handler accepts."""
    issued = time.time() if issued_at is None else issued_at
    claims = {"sub": subject, "iat": issued, "exp": issued + valid_s}
    parts = [
        base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")
        for part in ({"alg": "none"}, claims)
    ]
    return ".".join([*parts, ""])


class Endpoint:
    """
    What the endpoint answers, and what it was asked.

    Attributes:
        asked: Form and Authorization header of each request.
        body: None: a token.
        silent: It answers nothing until the test ends.
        token: The last one handed out.
    """

    def __init__(self) -> None:
        self.url = ""
        self.status = 200
        self.body: Any = None
        self.silent = False
        self.valid_s = 300.0
        self.token = ""
        self.asked: list[tuple[str, str]] = []
        self.ended = threading.Event()

    def answer(self) -> bytes:
        """Return the next answer."""
        if self.body is not None:
            return json.dumps(self.body).encode()
        self.token = jwt(valid_s=self.valid_s)
        return json.dumps({"access_token": self.token, "expires_in": self.valid_s}).encode()


@contextmanager
def token_endpoint(context: ssl.SSLContext | None = None) -> Iterator[Endpoint]:
    """Run an endpoint; with a context, over HTTPS."""
    endpoint = Endpoint()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            form = self.rfile.read(length).decode()
            endpoint.asked.append((form, self.headers["Authorization"]))
            if endpoint.silent:
                endpoint.ended.wait(30)
                return
            body = endpoint.answer()
            self.send_response(endpoint.status)
            self.send_header("Location", endpoint.url)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            """A client that goes away is expected."""

    with Server(("127.0.0.1", 0), Handler) as server:
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        scheme = "http" if context is None else "https"
        endpoint.url = f"{scheme}://127.0.0.1:{server.server_port}/token"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield endpoint
        finally:
            endpoint.ended.set()
            server.shutdown()
            thread.join(5)
