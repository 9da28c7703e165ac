"""Tokens come from a real HTTP endpoint on the loopback interface, and are renewed in time."""

import base64
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from eos_mirror.errors import LoginImpossible
from eos_mirror.wire.errors import Malformed, Refused, Unreachable
from eos_mirror.wire.oauth import Credentials, Token, TokenCache, fetch_token, made_by
from tests.wire.token_endpoint import Endpoint, jwt, token_endpoint

SECRET = "hunter2/+&"


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    """A token endpoint."""
    with token_endpoint() as endpoint:
        yield endpoint


def fetched(endpoint: Endpoint, *, within_s: float = 5.0, scope: str = "") -> Token:
    """Fetch a token."""
    credentials = Credentials(url=endpoint.url, client_id="me", secret=SECRET, scope=scope)
    return fetch_token(credentials, time.monotonic() + within_s)


def test_a_token_is_fetched_with_the_credentials_of_the_client(endpoint: Endpoint) -> None:
    """RFC 6749, section 4.4: the credentials are in the header, the scope is in the form."""
    token = fetched(endpoint, scope="kafka read")

    assert token.text == endpoint.token
    assert token.valid_s == endpoint.valid_s
    form, authorization = endpoint.asked[0]
    assert form == "grant_type=client_credentials&scope=kafka+read"
    assert base64.b64decode(authorization.removeprefix("Basic ")).decode() == f"me:{SECRET}"


def test_the_validity_is_in_the_answer_or_in_the_token(endpoint: Endpoint) -> None:
    """Without either, a token serves one login only."""
    endpoint.body = {"access_token": "opaque", "expires_in": 77}
    assert fetched(endpoint).valid_s == 77
    endpoint.body = {"access_token": jwt(valid_s=50, issued_at=1_000)}
    assert fetched(endpoint).valid_s == 50, "by the clock of the endpoint"
    endpoint.body = {"access_token": "opaque"}
    assert fetched(endpoint).valid_s == 0


def test_a_refused_client_is_named_without_its_secret(endpoint: Endpoint) -> None:
    """The endpoint's reason is in the error, even if it repeats the secret."""
    endpoint.status = 401
    endpoint.body = {"error": "invalid_client", "error_description": f"no {SECRET} here"}

    with pytest.raises(Refused) as fault:
        fetched(endpoint)

    text = str(fault.value)
    assert "token endpoint 127.0.0.1: token for client me: SASL_AUTHENTICATION_FAILED" in text
    assert "HTTP status 401: invalid_client: no *** here" in text
    assert SECRET not in text


@pytest.mark.parametrize("status", [302, 307, 429, 500, 503])
def test_a_broken_endpoint_is_unreachable(endpoint: Endpoint, status: int) -> None:
    """Another attempt may succeed. The secret is sent nowhere else: no redirect is followed."""
    endpoint.status = status

    with pytest.raises(Unreachable, match=f"HTTP status {status}"):
        fetched(endpoint)

    assert len(endpoint.asked) == 1


@pytest.mark.parametrize("body", [{}, {"access_token": "a\x01b"}, {"access_token": 7}, [], "text"])
def test_an_answer_without_a_token_is_none(endpoint: Endpoint, body: object) -> None:
    """A token with a control character could add fields to the login."""
    endpoint.body = body

    with pytest.raises(Malformed, match="no access_token"):
        fetched(endpoint)


def test_a_silent_endpoint_is_unreachable_in_time(endpoint: Endpoint) -> None:
    """A login has a deadline."""
    endpoint.silent = True
    started = time.monotonic()

    with pytest.raises(Unreachable, match="token endpoint"):
        fetched(endpoint, within_s=0.3)

    assert time.monotonic() - started < 3


@pytest.mark.brokers
def test_the_certificate_of_an_endpoint_is_verified(
    tls_files: tuple[Path, Path],
) -> None:
    """The secret is sent to the right endpoint only; https.ca.location names its authority."""
    certificate, key = tls_files
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with token_endpoint(context) as endpoint:
        with pytest.raises(Unreachable, match="its certificate is not trusted"):
            fetched(endpoint)
        assert not endpoint.asked
        trusted = Credentials(
            url=endpoint.url, client_id="me", secret=SECRET, ca_location=str(certificate)
        )
        assert fetch_token(trusted, time.monotonic() + 5).text == endpoint.token


class Fetches:
    """What fetches tokens, and a clock."""

    def __init__(self, valid_s: float = 100.0) -> None:
        self.count = 0
        self.now = 1_000.0
        self.fault: Exception | None = None
        self.valid_s = valid_s

    def __call__(self, until: float) -> Token:
        """Return a new token, or fail."""
        assert until <= self.now + 10
        self.count += 1
        if self.fault is not None:
            raise self.fault
        return Token(text=f"token-{self.count}", valid_s=self.valid_s)


def test_a_token_is_renewed_before_it_expires() -> None:
    """One token serves many logins, and none with a token that is near its end."""
    fetches = Fetches()
    cache = TokenCache(fetches, now=lambda: fetches.now)

    assert [cache.token(1_005), cache.token(1_005)] == ["token-1", "token-1"]
    fetches.now += 79
    assert cache.token(1_100) == "token-1"
    fetches.now += 2
    assert cache.token(1_100) == "token-2"


def test_a_renewal_that_fails_keeps_the_old_token_while_it_is_valid() -> None:
    """A short outage of the identity provider stops nothing, and does not slow every login."""
    fetches = Fetches()
    cache = TokenCache(fetches, now=lambda: fetches.now)
    cache.token(1_005)
    fetches.fault = Unreachable("down")

    fetches.now += 85
    assert [cache.token(1_100), cache.token(1_100)] == ["token-1", "token-1"]
    assert fetches.count == 2, "the second attempt comes later"
    fetches.now += 16
    with pytest.raises(Unreachable):
        cache.token(1_200)


def test_a_token_of_unknown_validity_serves_one_login() -> None:
    """It may have expired since."""
    fetches = Fetches(valid_s=0)
    cache = TokenCache(fetches, now=lambda: fetches.now)

    assert [cache.token(1_005), cache.token(1_005)] == ["token-1", "token-2"]


def test_a_maker_of_tokens_that_fails_says_why() -> None:
    """The reason of AWS's library reaches the operator."""

    def broken() -> tuple[str, float]:
        raise LoginImpossible("no credentials")

    with pytest.raises(LoginImpossible, match="no credentials"):
        made_by(broken).token(time.monotonic() + 5)


def test_tokens_and_secrets_are_in_no_text() -> None:
    """A token is as good as a password."""
    assert "abc" not in repr(Token(text="abc", valid_s=1))
    assert SECRET not in repr(Credentials(url="https://x", client_id="me", secret=SECRET))
