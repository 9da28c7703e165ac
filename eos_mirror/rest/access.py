"""Who may use the HTTP server. Pure functions."""

import secrets
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

from eos_mirror.settings.rest import RestSettings, is_loopback

OPEN: Final = frozenset({"/health", "/live", "/ready"})
"""Paths that need no token: they tell nothing about the flows, and probes cannot send one."""

_BEARER: Final = "Bearer "


def refusal(
    settings: RestSettings, path: str, headers: Mapping[str, str], *, writes: bool
) -> tuple[HTTPStatus, str] | None:
    """
    Return why a request is refused; None if it may be served.

    A write needs the token, or, on this machine and without a token, a Host and an Origin that are
    those of the server: a page that a browser loaded from elsewhere has others.

    Args:
        headers: With names in lower case.
    """
    if path in OPEN:
        return None
    if settings.token and _has_token(settings.token, headers):
        return None
    if settings.token and (writes or not settings.is_local):
        return HTTPStatus.UNAUTHORIZED, "send the token as Authorization: Bearer TOKEN"
    if not is_loopback(urlsplit(f"//{headers.get('host', '')}").hostname or ""):
        return HTTPStatus.FORBIDDEN, "the Host header is not this server"
    origin = headers.get("origin")
    if writes and origin is not None and urlsplit(origin).netloc != headers["host"]:
        return HTTPStatus.FORBIDDEN, "the Origin header is not this server"
    return None


def _has_token(token: str, headers: Mapping[str, str]) -> bool:
    sent = headers.get("authorization", "")
    found = sent.removeprefix(_BEARER) if sent.startswith(_BEARER) else ""
    return secrets.compare_digest(found.encode(), token.encode())
