"""
Logs in to Amazon MSK with IAM: AWS's own library signs the tokens of OAUTHBEARER.

A configuration only names the mechanism and the identity, so it can be sent to another process as
text. The credentials come from where AWS's library looks for them in the process that logs in.
"""

import os
import re
import threading
import time
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, Final

from eos_mirror.core.aws_msk_iam import IDENTITY, MECHANISM
from eos_mirror.errors import LoginImpossible

EXTRA: Final = "pip install 'eos-mirror[aws-msk-iam]'"
REGION_VARIABLES: Final = ("AWS_REGION", "AWS_DEFAULT_REGION")
FRESH_FOR_S: Final = 60.0
"""A signed token serves the clients that one process makes soon after each other. It is valid for
15 minutes, and every client asks again before its own token expires."""

_REGION = re.compile(r"[.]kafka(?:-serverless)?[.]([a-z0-9-]+)[.]amazonaws[.]com")

Sign = Callable[[], tuple[str, int]]
"""Returns a token, and when it expires: milliseconds since 1970."""


def with_login(config: Mapping[str, Any]) -> dict[str, Any]:
    """
    Return the configuration that librdkafka accepts; the same one if another login is configured.

    Raises:
        LoginImpossible: There is no signer, no region or no credentials. Without this, a client
            would wait 10 s for its first token and not say why there is none.
    """
    token = token_maker(config)
    if token is None:
        return dict(config)
    token()
    return {**_of_librdkafka(config), "oauth_cb": token}


def token_maker(config: Mapping[str, Any]) -> Callable[..., tuple[str, float]] | None:
    """
    Return what makes the tokens of a configuration; None if another login is configured.

    It returns a token, and when it expires: seconds since 1970. Thread-safe.

    Raises:
        LoginImpossible: There is no signer or no region.
    """
    if not waits_for_a_token(config):
        return None
    return tokens_of(_region(config), *(config.get(name, "") for name in IDENTITY)).token


def without_login(config: Mapping[str, Any]) -> dict[str, Any]:
    """
    Return the same for a client that never connects: no token is signed for it.

    Raises:
        LoginImpossible: There is no signer.
    """
    if not waits_for_a_token(config):
        return dict(config)
    _signer()
    return _of_librdkafka(config)


def waits_for_a_token(config: Mapping[str, Any]) -> bool:
    """Return whether a client with this configuration takes a second for its first token."""
    return config.get("sasl.mechanism") == MECHANISM


def _of_librdkafka(config: Mapping[str, Any]) -> dict[str, Any]:
    own = {name: value for name, value in config.items() if name not in IDENTITY}
    return {**own, "sasl.mechanism": "OAUTHBEARER"}


class _Tokens:
    """Tokens of one identity. Thread-safe: each client asks from a thread of its own."""

    def __init__(self, sign: Sign) -> None:
        self._sign = sign
        self._lock = threading.Lock()
        self._signed: tuple[str, float] = ("", 0.0)
        self._fresh_until = 0.0

    def token(self, _: str = "") -> tuple[str, float]:
        """
        Return a token, and when it expires: seconds since 1970.

        Raises:
            LoginImpossible: AWS's library did not sign one.
        """
        with self._lock:
            if time.monotonic() >= self._fresh_until:
                self._signed = self._sign_one()
                self._fresh_until = time.monotonic() + FRESH_FOR_S
            return self._signed

    def _sign_one(self) -> tuple[str, float]:
        try:
            token, expires_ms = self._sign()
        except Exception as exc:
            # without credentials the signer fails with an AttributeError of None
            missing = isinstance(exc, AttributeError)
            reason = "AWS's library finds no credentials" if missing else f"{exc}"
            raise LoginImpossible(f"sasl.mechanism {MECHANISM}: no token: {reason}") from exc
        return token, expires_ms / 1000


def _signer() -> Any:
    try:
        from aws_msk_iam_sasl_signer import MSKAuthTokenProvider  # noqa: PLC0415 - an extra
    except ImportError:
        raise LoginImpossible(
            f"sasl.mechanism {MECHANISM} needs the signer of AWS: {EXTRA}"
        ) from None
    return MSKAuthTokenProvider


@cache
def tokens_of(region: str, profile: str, role: str, session: str) -> _Tokens:
    """Return the tokens of an identity, the same for every client of it."""
    signer = _signer()
    if role:
        named = {"sts_session_name": session} if session else {}
        return _Tokens(partial(signer.generate_auth_token_from_role_arn, region, role, **named))
    if profile:
        return _Tokens(partial(signer.generate_auth_token_from_profile, region, profile))
    return _Tokens(partial(signer.generate_auth_token, region))


def _region(config: Mapping[str, Any]) -> str:
    """Return the region in the names of the brokers, as Java does, or else in the environment."""
    named = _REGION.search(config.get("bootstrap.servers", ""))
    region = named[1] if named else next(filter(None, map(os.environ.get, REGION_VARIABLES)), "")
    if not region:
        raise LoginImpossible(
            f"sasl.mechanism {MECHANISM} needs a region: bootstrap.servers names none, and "
            f"{REGION_VARIABLES[0]} is not set"
        )
    return region
