"""How a connection is encrypted, and how it logs in."""

import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol


class Caller(Protocol):
    """What a login needs of a connection."""

    address: str

    def call(self, api: Any, fields: Any, *, until: float) -> dict[str, Any]:
        """See `connection.Connection`."""


Login = Callable[[Caller, float], float | None]
"""Logs in before a moment in monotonic seconds; returns after how many seconds to do it again."""

Tokens = Callable[[], tuple[str, float]]
"""Returns a token for OAUTHBEARER, and when it expires: seconds since 1970. From any thread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Security:
    """
    What the connections to one cluster have in common.

    Attributes:
        tls: None: connections are not encrypted.
        login: None: connections are anonymous, or identified by their certificate.
        family: The addresses to connect to, IPv4 or IPv6; by default both.
    """

    tls: ssl.SSLContext | None = None
    login: Login | None = None
    family: int = socket.AF_UNSPEC


PLAINTEXT = Security()
