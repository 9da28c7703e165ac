"""A client of the HTTP server."""

import json
import urllib.error
import urllib.request
from typing import Any


class Client:
    """Asks a server; an answer is the status and the JSON."""

    def __init__(self, address: str) -> None:
        self.address = address

    def ask(
        self, path: str, *, method: str = "GET", body: Any = None, **headers: str
    ) -> tuple[int, Any]:
        """Send a request."""
        request = urllib.request.Request(  # noqa: S310 (it is http)
            self.address + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers=headers,
        )
        try:
            # an order waits for its effect
            with urllib.request.urlopen(request, timeout=90) as answer:  # noqa: S310
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as exc:
            return exc.code, json.load(exc)
