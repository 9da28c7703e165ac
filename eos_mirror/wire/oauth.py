"""
Tokens for OAUTHBEARER: fetched with the credentials of a client, and renewed before they expire.

Source: RFC 6749, section 4.4; KIP-768; librdkafka's `sasl.oauthbearer.method = oidc`.
"""

import base64
import json
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from http.client import HTTPException
from typing import IO, Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, HTTPSHandler, Request, build_opener

from eos_mirror.errors import MirrorError
from eos_mirror.wire.errors import (
    SASL_AUTHENTICATION_FAILED,
    Malformed,
    Refused,
    Unreachable,
    WireError,
)
from eos_mirror.wire.security import Tokens
from eos_mirror.wire.tls import reason_of, trusting

FETCH_WITHIN_S: Final = 10.0
RENEWED_AFTER: Final = 0.8
"""Part of its validity after which a token is renewed. A session ends with its token, and a
connection logs in again after 85 percent of it at the earliest: with a new token."""

TRY_AGAIN_S: Final = 30.0
"""Pause after a failed renewal, while the old token is valid: an attempt may block for 10 s."""

MOST_ANSWER_BYTES: Final = 1 << 20
CLIENT_AT_FAULT: Final = frozenset({400, 401, 403})
TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*")
"""RFC 6750, section 2.1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """
    A token.

    Attributes:
        valid_s: For how long it is valid from now on; 0 if it does not say so.
    """

    text: str = field(repr=False)
    valid_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """
    A client of an identity provider.

    Attributes:
        url: The token endpoint.
        scope: Empty: none is asked for.
        ca_location, ca_pem: Authorities that the endpoint's certificate may have; None: those of
            the system.
    """

    url: str
    client_id: str
    secret: str = field(repr=False)
    scope: str = ""
    ca_location: str | None = None
    ca_pem: str | None = field(default=None, repr=False)

    @property
    def where(self) -> str:
        """The endpoint, for messages."""
        return f"token endpoint {urlsplit(self.url).hostname}"


class TokenCache:
    """
    The current token of one identity. Thread-safe.

    Invariant A: while a token is valid, a renewal that fails is no fault of a login.
    """

    def __init__(
        self,
        fetch: Callable[[float], Token],
        *,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """
        Args:
            fetch: Returns a new token before a moment in monotonic seconds.
        """
        self._fetch = fetch
        self._now = now
        self._lock = threading.Lock()
        self._text = ""
        self._renewed_at = self._expires_at = float("-inf")

    def token(self, until: float) -> str:
        """
        Return a token that is valid now.

        Raises:
            Refused: The endpoint refuses the client.
            Unreachable, Malformed: It did not answer in time, or not with a token.
            MirrorError: The maker of the tokens failed.
        """
        if not self._lock.acquire(timeout=max(0.0, until - self._now())):
            raise Unreachable("no token in time: another connection asks for one")
        try:
            if self._now() >= self._renewed_at:
                self._renew(until)
            return self._text
        finally:
            self._lock.release()

    def _renew(self, until: float) -> None:
        try:
            token = self._fetch(min(until, self._now() + FETCH_WITHIN_S))
        except (WireError, MirrorError):
            now = self._now()
            if now >= self._expires_at:
                raise
            self._renewed_at = min(now + TRY_AGAIN_S, self._expires_at)
            return
        now = self._now()
        self._text = token.text
        self._renewed_at = now + token.valid_s * RENEWED_AFTER
        self._expires_at = now + token.valid_s


def made_by(tokens: Tokens) -> TokenCache:
    """Return the tokens of a function that makes them."""

    def fetch(_: float) -> Token:
        text, expires_at = tokens()
        return Token(text=text, valid_s=max(0.0, expires_at - time.time()))

    return TokenCache(fetch)


@cache
def fetched_with(credentials: Credentials) -> TokenCache:
    """Return the tokens of a client, the same for all its connections in this process."""
    return TokenCache(partial(fetch_token, credentials))


# ---------------------------------------------------------------------- the endpoint


class _NoRedirects(HTTPRedirectHandler):
    """A redirected request would send the secret to another address."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> None:
        """Follow none: the answer becomes an HTTPError."""


def fetch_token(credentials: Credentials, until: float) -> Token:
    """
    Fetch a token with the credentials of a client.

    Raises:
        Refused: The endpoint refuses the client, its secret or the scope.
        Unreachable: It did not answer in time, or is broken.
        Malformed: Its answer has no token.
    """
    context = trusting(credentials.ca_location, credentials.ca_pem, names="https.ca")
    opener = build_opener(_NoRedirects, HTTPSHandler(context=context))
    try:
        with opener.open(_request(credentials), timeout=max(0.01, until - time.monotonic())) as one:
            body = _read(one, until)
    except HTTPError as exc:
        with exc:
            raise _fault_of(exc, credentials) from exc
    except (OSError, HTTPException, ValueError) as exc:
        cause = exc.reason if isinstance(exc, URLError) else exc
        reason = reason_of(cause) if isinstance(cause, OSError) else str(cause)
        raise Unreachable(f"{credentials.where}: {reason}") from exc
    return _token(body, credentials)


def _request(credentials: Credentials) -> Request:
    form = {"grant_type": "client_credentials"}
    if credentials.scope:
        form["scope"] = credentials.scope
    pair = f"{credentials.client_id}:{credentials.secret}"
    return Request(  # noqa: S310 (the scheme was checked with the settings)
        credentials.url,
        data=urlencode(form).encode(),
        headers={
            "Accept": "application/json",
            "Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}",
        },
        method="POST",
    )


def _read(answer: Any, until: float) -> bytes:
    body = b""
    while part := answer.read1(MOST_ANSWER_BYTES):
        body += part
        if len(body) > MOST_ANSWER_BYTES:
            raise OSError("its answer is too long")
        if time.monotonic() > until:
            raise TimeoutError("it did not answer in time")
    return body


def _fault_of(exc: HTTPError, credentials: Credentials) -> WireError:
    if exc.code not in CLIENT_AT_FAULT:
        return Unreachable(f"{credentials.where}: it answers with HTTP status {exc.code}")
    said = _json(exc.read(MOST_ANSWER_BYTES))
    words = [str(said[key]) for key in ("error", "error_description") if said.get(key)]
    detail = ": ".join([f"HTTP status {exc.code}", *words])[:300]
    if credentials.secret:
        detail = detail.replace(credentials.secret, "***")
    what = f"{credentials.where}: token for client {credentials.client_id}"
    return Refused(SASL_AUTHENTICATION_FAILED, what, detail)


def _token(body: bytes, credentials: Credentials) -> Token:
    said = _json(body)
    text = said.get("access_token")
    if not isinstance(text, str) or not TOKEN.fullmatch(text):
        raise Malformed(f"{credentials.where}: no access_token in its answer")
    return Token(text=text, valid_s=max(0.0, _valid_s(said, text)))


def _valid_s(said: dict[str, Any], text: str) -> float:
    """Return for how long a token is valid, by the clock of the endpoint where possible."""
    claims = _claims(text)
    seconds, issued, end = said.get("expires_in"), claims.get("iat"), claims.get("exp")
    if isinstance(seconds, int | float):
        return float(seconds)
    if not isinstance(end, int | float):
        return 0.0
    return float(end) - (issued if isinstance(issued, int | float) else time.time())


def _claims(token: str) -> dict[str, Any]:
    """Return what a token says of itself; nothing if it is no JWT."""
    parts = token.split(".")
    payload = parts[1] if len(parts) > 1 else ""
    try:
        return _json(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except ValueError:
        return {}


def _json(data: bytes) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
