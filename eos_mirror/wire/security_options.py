"""Reads how to connect and to log in from a client configuration in librdkafka's names."""

import re
import socket
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final
from urllib.parse import urlsplit

from eos_mirror.core.aws_msk_iam import MECHANISM as AWS_MSK_IAM
from eos_mirror.errors import LoginImpossible
from eos_mirror.wire.login import Conversation, Mechanism, bearer, login_with, plain
from eos_mirror.wire.oauth import Credentials, TokenCache, fetched_with, made_by
from eos_mirror.wire.scram import HASHES, scram
from eos_mirror.wire.security import Security, Tokens
from eos_mirror.wire.tls import tls_context

Config = Mapping[str, str]

PROTOCOLS: Final = frozenset({"plaintext", "ssl", "sasl_plaintext", "sasl_ssl"})
FAMILIES: Final = {"any": socket.AF_UNSPEC, "v4": socket.AF_INET, "v6": socket.AF_INET6}
PLAIN, OAUTHBEARER = "PLAIN", "OAUTHBEARER"
WITH_PASSWORD: Final = frozenset({PLAIN, *HASHES})
CANONICAL: Final = "resolve_canonical_bootstrap_servers_only"

TLS_SETTINGS: Final = frozenset(
    {
        "ssl.ca.location",
        "ssl.ca.pem",
        "ssl.certificate.location",
        "ssl.certificate.pem",
        "ssl.cipher.suites",
        "ssl.endpoint.identification.algorithm",
        "ssl.key.location",
        "ssl.key.password",
        "ssl.key.pem",
    }
)
KEYSTORE: Final = "ssl.keystore.location"

OAUTH: Final = "sasl.oauthbearer."
CLIENT_ID: Final = (f"{OAUTH}client.credentials.client.id", f"{OAUTH}client.id")
CLIENT_SECRET: Final = (f"{OAUTH}client.credentials.client.secret", f"{OAUTH}client.secret")
ENDPOINT: Final = f"{OAUTH}token.endpoint.url"
EXTENSIONS: Final = f"{OAUTH}extensions"
OAUTH_SETTINGS: Final = frozenset(
    {
        *CLIENT_ID,
        *CLIENT_SECRET,
        ENDPOINT,
        EXTENSIONS,
        f"{OAUTH}scope",
        f"{OAUTH}sub.claim.name",  # the broker decides who it is
    }
)
OAUTH_CHOICES: Final = {
    f"{OAUTH}method": ("oidc", "default"),
    f"{OAUTH}grant.type": ("client_credentials", "client_credentials"),
    f"{OAUTH}metadata.authentication.type": ("none", "none"),
}
"""The value that the lane knows, and librdkafka's default."""

EXTENSION: Final = re.compile(r"([A-Za-z]+)=([\x21-\x7e \t\r\n]+)")
"""One extension. Source: Kafka's OAuthBearerClientInitialResponse."""


# ---------------------------------------------------------------------- what is missing


def unsupported_security(config: Config) -> str | None:
    """Return the first setting that the lane does not have, in a phrase; None if it has all."""
    return next(_unsupported(config), None)


def _unsupported(config: Config) -> Iterator[str]:
    protocol = _protocol(config)
    if protocol not in PROTOCOLS:
        yield f"security.protocol={protocol}"
    if config.get("client.dns.lookup") == CANONICAL:
        yield f"client.dns.lookup={CANONICAL}"
    family = config.get("broker.address.family", "any")
    if family.lower() not in FAMILIES:
        yield f"broker.address.family={family}"
    if protocol.endswith("ssl"):
        yield from _unsupported_tls(config)
    if protocol.startswith("sasl"):
        yield from _unsupported_login(config)


def _unsupported_tls(config: Config) -> Iterator[str]:
    if KEYSTORE in config:
        yield f"{KEYSTORE} (a PKCS12 store) without pip install 'eos-mirror[pkcs12]'"
    for name in config:
        if name.startswith("ssl.") and name not in TLS_SETTINGS:
            yield name


def _unsupported_login(config: Config) -> Iterator[str]:
    mechanism = _mechanism(config)
    if mechanism in WITH_PASSWORD:
        for name in ("sasl.username", "sasl.password"):
            if not config.get(name):
                yield f"no {name}"
    elif mechanism == OAUTHBEARER:
        yield from _unsupported_oauth(config)
    elif mechanism != AWS_MSK_IAM:
        yield f"sasl.mechanism={mechanism}"


def _unsupported_oauth(config: Config) -> Iterator[str]:
    for name, (known, default) in OAUTH_CHOICES.items():
        value = config.get(name, default)
        if value.lower() != known:
            yield f"{name}={value}"
    for name in config:
        if name.startswith(OAUTH) and name not in OAUTH_SETTINGS | OAUTH_CHOICES.keys():
            yield name
    for names in (CLIENT_ID, CLIENT_SECRET, (ENDPOINT,)):
        if not _either(config, names):
            yield f"no {names[-1]}"
    if urlsplit(config.get(ENDPOINT, "")).scheme not in {"http", "https"}:
        yield f"{ENDPOINT} that is neither https nor http"
    if not all(EXTENSION.fullmatch(one) for one in _extensions(config)):
        yield f"{EXTENSIONS} that are not name=value"


# ---------------------------------------------------------------------- what is there


def security_of(config: Config, tokens: Tokens | None = None) -> Security:
    """
    Return how connections with this configuration are made.

    Args:
        tokens: Makes the tokens of AWS_MSK_IAM.

    Raises:
        LoginImpossible: The lane cannot log in so, or a certificate or a key cannot be read.
    """
    missing = unsupported_security(config)
    if missing is not None:
        raise LoginImpossible(f"our own lane does not have {missing}")
    protocol = _protocol(config)
    mechanism = _login_of(config, tokens) if protocol.startswith("sasl") else None
    return Security(
        tls=tls_context(config) if protocol.endswith("ssl") else None,
        login=None if mechanism is None else login_with(mechanism),
        family=FAMILIES[config.get("broker.address.family", "any").lower()],
    )


def _login_of(config: Config, tokens: Tokens | None) -> Mechanism:
    name = _mechanism(config)
    user, password = config.get("sasl.username", ""), config.get("sasl.password", "")
    if name == PLAIN:
        return Mechanism(name=name, user=user, begin=lambda _: plain(user, password))
    if name in HASHES:
        return Mechanism(name=name, user=user, begin=lambda _: scram(name, user, password))
    if name == AWS_MSK_IAM:
        if tokens is None:
            raise LoginImpossible(f"sasl.mechanism {AWS_MSK_IAM}: nothing signs tokens here")
        cache = made_by(tokens)
    else:
        cache = fetched_with(_credentials(config))
    extensions = dict(one.split("=", 1) for one in _extensions(config))
    return Mechanism(name=OAUTHBEARER, begin=partial(_with_token, cache, extensions))


def _with_token(tokens: TokenCache, extensions: Mapping[str, str], until: float) -> Conversation:
    return bearer(tokens.token(until), extensions)


def _credentials(config: Config) -> Credentials:
    return Credentials(
        url=config[ENDPOINT],
        client_id=_either(config, CLIENT_ID),
        secret=_either(config, CLIENT_SECRET),
        scope=config.get(f"{OAUTH}scope", ""),
        ca_location=config.get("https.ca.location"),
        ca_pem=config.get("https.ca.pem"),
    )


def _extensions(config: Config) -> list[str]:
    return [one.strip() for one in config.get(EXTENSIONS, "").split(",") if one.strip()]


def _either(config: Config, names: tuple[str, ...]) -> str:
    return next((config[name] for name in names if config.get(name)), "")


def _protocol(config: Config) -> str:
    return config.get("security.protocol", "plaintext").lower()


def _mechanism(config: Config) -> str:
    """Return the mechanism; by default the one of librdkafka."""
    return _either(config, ("sasl.mechanism", "sasl.mechanisms")).upper() or "GSSAPI"
