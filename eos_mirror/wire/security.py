"""How a connection is encrypted, and how it logs in."""

import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol


class Caller(Protocol):
    """What a login needs of a connection."""

    def call(self, api: Any, fields: Any, *, until: float) -> dict[str, Any]:
        """See `connection.Connection`."""


Login = Callable[[Caller, float], float | None]
"""Logs in before a moment in monotonic seconds; returns after how many seconds to do it again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Security:
    """
    What the connections to one cluster have in common.

    Attributes:
        tls: None: connections are not encrypted.
        login: None: connections are anonymous, or identified by their certificate.
    """

    tls: ssl.SSLContext | None = None
    login: Login | None = None


PLAINTEXT = Security()
