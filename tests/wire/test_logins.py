"""Logins over a scripted broker: refusals, sessions, and what a configuration makes of them."""

import re
import time
from pathlib import Path
from typing import Any

import pytest

from eos_mirror.errors import LoginImpossible
from eos_mirror.wire.errors import (
    ILLEGAL_SASL_STATE,
    SASL_AUTHENTICATION_FAILED,
    Malformed,
    Refused,
)
from eos_mirror.wire.login import Mechanism, bearer, login_with, plain
from eos_mirror.wire.options import Config, security, unsupported
from tests.wire.fake_broker import Scripted, said

PAGE = Path(__file__).parents[2] / "docs" / "client-settings.md"
SECRET = "hunter2"
SASL = {"security.protocol": "SASL_PLAINTEXT"}
USER = {"sasl.username": "me", "sasl.password": SECRET}
PLAIN = SASL | USER | {"sasl.mechanism": "PLAIN"}
OAUTH = SASL | {
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.method": "oidc",
    "sasl.oauthbearer.client.id": "me",
    "sasl.oauthbearer.client.secret": SECRET,
    "sasl.oauthbearer.token.endpoint.url": "https://login.example/token",
}
TLS = {"security.protocol": "SSL"}


def log_in(broker: Scripted, config: Config) -> float | None:
    """Log in with a configuration; return after how many seconds to do it again."""
    login = security(config).login
    assert login is not None
    return login(broker, time.monotonic() + 5)


def refusal(code: int = SASL_AUTHENTICATION_FAILED) -> dict[str, Any]:
    """Return the refusal of a login."""
    return said(b"") | {"error_code": code, "error_message": "Invalid credentials"}


def test_plain_says_the_name_and_the_password() -> None:
    """RFC 4616: separated by zero bytes, and for no other identity."""
    broker = Scripted(lambda _: said(b""))

    assert log_in(broker, PLAIN) is None
    assert broker.heard == [b"\0me\0" + SECRET.encode()]


def test_a_session_is_renewed_before_it_ends() -> None:
    """After 85 to 95 percent, as Java clients do."""
    again = [log_in(Scripted(lambda _: said(b"", lifetime_ms=10_000)), PLAIN) for _ in range(50)]

    assert all(one is not None and 8.5 <= one <= 9.5 for one in again)
    assert len(set(again)) > 1, "connections would log in at the same time"


def test_a_refused_login_names_the_user_and_no_secret() -> None:
    """The error has the broker's reason."""
    with pytest.raises(Refused) as fault:
        log_in(Scripted(lambda _: refusal()), PLAIN)

    assert fault.value.code == SASL_AUTHENTICATION_FAILED
    assert str(fault.value) == (
        "broker-1:9092: log in with PLAIN as me: SASL_AUTHENTICATION_FAILED (Invalid credentials)"
    )


def test_a_mechanism_that_the_broker_does_not_offer_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The error lists what it offers."""
    agreed = {"error_code": 33, "mechanisms": ["SCRAM-SHA-512", "GSSAPI"]}
    monkeypatch.setattr("tests.wire.fake_broker.AGREED", agreed)

    with pytest.raises(Refused, match="the broker offers SCRAM-SHA-512, GSSAPI"):
        log_in(Scripted(lambda _: said(b"")), PLAIN)


def test_a_port_without_logins_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kafka answers the first request of a login with ILLEGAL_SASL_STATE."""
    agreed = {"error_code": ILLEGAL_SASL_STATE, "mechanisms": []}
    monkeypatch.setattr("tests.wire.fake_broker.AGREED", agreed)

    with pytest.raises(Refused, match="no login is expected on this port"):
        log_in(Scripted(lambda _: said(b"")), PLAIN)


def test_a_bearer_reports_the_reason_of_the_broker() -> None:
    """A broker sends its reason as a message, and refuses after the next one of the client."""
    login = login_with(Mechanism(name="OAUTHBEARER", begin=lambda _: bearer("a.b.c", {"k": "v"})))
    broker = Scripted(
        lambda heard: refusal() if heard == b"\x01" else said(b'{"status":"invalid_token"}')
    )

    with pytest.raises(Refused, match="Invalid credentials"):
        login(broker, time.monotonic() + 5)

    assert broker.heard[0] == b"n,,\x01auth=Bearer a.b.c\x01k=v\x01\x01"


def test_a_broker_that_reports_an_error_and_accepts_is_refused() -> None:
    """It is not known who is logged in then."""
    login = login_with(Mechanism(name="OAUTHBEARER", begin=lambda _: bearer("a.b.c", {})))

    with pytest.raises(Malformed, match="reported an error"):
        login(Scripted(lambda heard: said(b"" if heard == b"\x01" else b"{}")), 0.0)


def test_secrets_are_in_no_text() -> None:
    """A setting ends in logs by accident."""
    for config in (PLAIN, PLAIN | {"sasl.mechanism": "SCRAM-SHA-512"}, OAUTH):
        assert SECRET not in repr(security(config))
    assert SECRET not in repr(Mechanism(name="PLAIN", begin=lambda _: plain("me", SECRET)))


@pytest.mark.parametrize(
    "config",
    [
        {},
        TLS,
        PLAIN,
        PLAIN | {"security.protocol": "sasl_ssl", "ssl.ca.pem": "x"},
        SASL | USER | {"sasl.mechanisms": "scram-sha-256"},
        SASL | {"sasl.mechanism": "AWS_MSK_IAM"},
        OAUTH | {"sasl.oauthbearer.extensions": "tenant=a b,region=eu-1"},
        {"sasl.mechanism": "GSSAPI", "ssl.crl.location": "no effect without SSL"},
        {"broker.address.family": "v4"},
    ],
)
def test_what_the_lane_knows_is_supported(config: Config) -> None:
    """A configuration is not refused for settings that have no effect in it."""
    assert unsupported(config) is None


@pytest.mark.parametrize(
    ("config", "named"),
    [
        (SASL, "sasl.mechanism=GSSAPI"),
        (SASL | {"sasl.mechanism": "GSSAPI"}, "sasl.mechanism=GSSAPI"),
        (SASL | {"sasl.mechanism": "PLAIN", "sasl.username": "me"}, "sasl.password"),
        (TLS | {"ssl.keystore.location": "k.p12"}, "ssl.keystore.location"),
        (TLS | {"ssl.crl.location": "crl.pem"}, "ssl.crl.location"),
        (TLS | {"ssl.engine.location": "e.so"}, "ssl.engine.location"),
        ({"security.protocol": "quic"}, "security.protocol=quic"),
        (
            {"client.dns.lookup": "resolve_canonical_bootstrap_servers_only"},
            "client.dns.lookup=resolve_canonical_bootstrap_servers_only",
        ),
        (OAUTH | {"sasl.oauthbearer.method": "default"}, "sasl.oauthbearer.method=default"),
        (OAUTH | {"sasl.oauthbearer.assertion.file": "a"}, "sasl.oauthbearer.assertion.file"),
        (
            OAUTH | {"sasl.oauthbearer.token.endpoint.url": "file:///token"},
            "sasl.oauthbearer.token.endpoint.url",
        ),
        (OAUTH | {"sasl.oauthbearer.extensions": "a=b,auth"}, "sasl.oauthbearer.extensions"),
        (OAUTH | {"sasl.oauthbearer.extensions": "a=b\x01"}, "sasl.oauthbearer.extensions"),
    ],
)
def test_what_the_lane_lacks_is_named(config: Config, named: str) -> None:
    """The phrase names the setting, and no connection is made without its effect."""
    phrase = unsupported(config)

    assert phrase is not None
    assert named in phrase
    assert SECRET not in phrase
    with pytest.raises(LoginImpossible, match="our own lane does not have"):
        security(config)


def test_tokens_of_another_maker_are_used() -> None:
    """AWS_MSK_IAM is OAUTHBEARER with a token that someone else signs."""
    broker = Scripted(lambda _: said(b""))
    config = SASL | {"sasl.mechanism": "AWS_MSK_IAM"}
    login = security(config, lambda: ("signed-by-aws", time.time() + 900)).login

    assert login is not None
    login(broker, time.monotonic() + 5)
    assert broker.heard == [b"n,,\x01auth=Bearer signed-by-aws\x01\x01"]
    with pytest.raises(LoginImpossible, match="nothing signs tokens"):
        security(config)


def test_the_page_of_client_settings_says_which_mechanisms_the_lane_speaks() -> None:
    """A reader decides by the table whether a flow uses our own connections."""
    _, _, text = PAGE.read_text(encoding="utf-8").partition("<!-- lane: begin -->")
    rows = re.findall(r"^\| `(\S+)` \| (yes|no) \|", text.partition("<!-- lane: end -->")[0], re.M)

    assert len(rows) == 6
    for mechanism, answer in rows:
        spoken = unsupported(OAUTH | USER | {"sasl.mechanism": mechanism}) is None
        assert spoken == (answer == "yes"), mechanism
