"""A client of the HTTP server."""

import json
import ssl
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any


class Client:
    """Asks a server; an answer is the status and the JSON."""

    def __init__(self, address: str, *, authority: Path | None = None) -> None:
        """
        Args:
            authority: The certificates to trust, for https.
        """
        self.address = address
        self._context = None if authority is None else ssl.create_default_context(cafile=authority)

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
            with urllib.request.urlopen(  # noqa: S310
                request, timeout=90, context=self._context
            ) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as exc:
            return exc.code, json.load(exc)
