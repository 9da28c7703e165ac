"""
Translates SASL settings, PEM and cipher suites from Java to librdkafka.

Each function removes the settings that it understands from those it is given. A setting that
librdkafka cannot support is a fault that names the key or the value that helps.
"""

import re
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass, field

from eos_mirror.core.aws_msk_iam import MECHANISM, PROFILE, ROLE_ARN, ROLE_SESSION
from eos_mirror.settings.jaas import JaasModule, parse_jaas


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """
    A client setting of the configuration, trimmed, with `${...}` resolved.

    Attributes:
        intro: `file:line: full key`, the beginning of a fault or note.
    """

    value: str = field(repr=False)
    intro: str


Pending = MutableMapping[str, Given]
Config = MutableMapping[str, str]
Report = Callable[[str], None]

USER_MODULES = {
    "PLAIN": "PlainLoginModule",
    "SCRAM-SHA-256": "ScramLoginModule",
    "SCRAM-SHA-512": "ScramLoginModule",
}
OAUTH_MODULE = "OAuthBearerLoginModule"
IAM_MODULE = "IAMLoginModule"
IAM_HANDLERS = frozenset({"IAMClientCallbackHandler", "IAMOAuthBearerLoginCallbackHandler"})
HANDLERS = ("sasl.client.callback.handler.class", "sasl.login.callback.handler.class")
IAM_OPTIONS = {
    "awsProfileName": PROFILE,
    "awsRoleArn": ROLE_ARN,
    "awsRoleSessionName": ROLE_SESSION,
}
IAM_TUNING = frozenset({"awsStsRegion", "awsDebugCreds", "awsMaxRetries", "awsMaxBackOffTimeMs"})
"""Options that do not change who logs in. AWS's own settings have the same for Python."""
EXTENSION = "extension_"
OAUTH_NEEDS = (
    "sasl.oauthbearer.token.endpoint.url",
    "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.secret",
)
_PEM_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----([^:-]*)-----END \1-----\s*")
CREDENTIALS = {
    "sasl.oauthbearer.client.credentials.client.id": "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.credentials.client.secret": "sasl.oauthbearer.client.secret",
}


def restored_pem(text: str) -> str:
    """Restore the line ends of PEM: Java reads it without them, OpenSSL does not."""

    def block(match: re.Match[str]) -> str:
        label, body = match.groups()
        lines = re.findall(".{1,64}", "".join(body.split()))
        return "\n".join((f"-----BEGIN {label}-----", *lines, f"-----END {label}-----\n"))

    return _PEM_BLOCK.sub(block, text)


def take_ciphers(pending: Pending, config: Config, report: Report) -> None:
    """Accept `ssl.cipher.suites` in OpenSSL's names; Java's would fail later, with a poor error."""
    given = pending.pop("ssl.cipher.suites", None)
    if given is None:
        return
    if "TLS_" in given.value or "SSL_" in given.value:
        report(f"{given.intro}: write OpenSSL's cipher names, such as ECDHE-RSA-AES256-GCM-SHA384")
    config["ssl.cipher.suites"] = given.value


def take_sasl(pending: Pending, config: Config, report: Report) -> None:
    """Translate `sasl.mechanism` and `sasl.jaas.config` to user and password, or to OAuth."""
    mechanism = pending.pop("sasl.mechanism", None) or pending.pop("sasl.mechanisms", None)
    pending.pop("sasl.mechanisms", None)
    jaas = pending.pop("sasl.jaas.config", None)
    name = mechanism.value.upper() if mechanism else ""
    if mechanism is not None:
        config["sasl.mechanism"] = name
        by_handler = _take_iam_handlers(pending) and name == "OAUTHBEARER"
        if by_handler or name == MECHANISM:
            _take_iam(config, jaas, OAUTH_MODULE if by_handler else IAM_MODULE, report)
            return
        if name not in USER_MODULES and name != "OAUTHBEARER":
            report(
                f"{mechanism.intro}: {name} is not available; use PLAIN, SCRAM-SHA-256, "
                f"SCRAM-SHA-512, OAUTHBEARER or {MECHANISM}"
            )
            return
    elif jaas is not None:
        report(f"{jaas.intro}: needs sasl.mechanism, such as SCRAM-SHA-512, beside it")
        return
    if name == "OAUTHBEARER" and mechanism is not None:
        _take_oauth(pending, config, jaas, report)
        if "sasl.oauthbearer.method" not in pending:
            missing = [key for key in OAUTH_NEEDS if key not in config and key not in pending]
            for key in missing:
                report(f"{mechanism.intro}: OAUTHBEARER needs {key}")
    elif jaas is not None:
        _take_user(config, name, jaas, report)


def _parsed(jaas: Given, module: str, report: Report) -> JaasModule | None:
    try:
        parsed = parse_jaas(jaas.value)
    except ValueError as exc:
        report(f"{jaas.intro}: {exc}")
        return None
    if parsed.name != module:
        report(f"{jaas.intro}: the login module is {parsed.name}, the mechanism needs {module}")
        return None
    return parsed


def _take_user(config: Config, mechanism: str, jaas: Given, report: Report) -> None:
    module = _parsed(jaas, USER_MODULES[mechanism], report)
    if module is None:
        return
    if module.options.get("tokenauth", "").lower() == "true":
        report(f"{jaas.intro}: delegation tokens (tokenauth) are not available")
    for option in ("username", "password"):
        if option in module.options:
            config[f"sasl.{option}"] = module.options[option]
        else:
            report(f"{jaas.intro}: option {option} is missing")


def _take_iam_handlers(pending: Pending) -> bool:
    """Accept the callback handlers of AWS; return whether there is one."""
    found = [
        key
        for key in HANDLERS
        if key in pending and pending[key].value.rpartition(".")[2] in IAM_HANDLERS
    ]
    for key in found:
        del pending[key]
    return bool(found)


def _take_iam(config: Config, jaas: Given | None, module: str, report: Report) -> None:
    """Translate whom the signer of AWS signs for (`kafka/aws_msk_iam.py`)."""
    config["sasl.mechanism"] = MECHANISM
    parsed = _parsed(jaas, module, report) if jaas else None
    for option, value in parsed.options.items() if parsed else ():
        if option in IAM_OPTIONS:
            config[IAM_OPTIONS[option]] = value
        elif option not in IAM_TUNING and jaas is not None:
            report(f"{jaas.intro}: option {option} is not available")


def _take_oauth(pending: Pending, config: Config, jaas: Given | None, report: Report) -> None:
    """Translate OAuth from JAAS options (KIP-768) and from keys (KIP-1139); the keys win."""
    config["sasl.oauthbearer.method"] = "oidc"  # client credentials, unless configured otherwise
    module = _parsed(jaas, OAUTH_MODULE, report) if jaas else None
    options = module.options if module else {}
    for option, key in (
        ("clientId", "sasl.oauthbearer.client.id"),
        ("clientSecret", "sasl.oauthbearer.client.secret"),
        ("scope", "sasl.oauthbearer.scope"),
    ):
        if option in options:
            config[key] = options[option]
    extensions = {k.removeprefix(EXTENSION): v for k, v in options.items() if EXTENSION in k}
    if extensions:
        config["sasl.oauthbearer.extensions"] = ",".join(f"{k}={v}" for k, v in extensions.items())
    for java, key in CREDENTIALS.items():
        given = pending.pop(java, None)
        if given is not None:
            config[key] = given.value
