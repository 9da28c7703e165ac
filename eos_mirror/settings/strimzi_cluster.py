"""
A cluster of Strimzi's `KafkaMirrorMaker2`: its brokers, its login and its client settings.

What Strimzi reads from a Secret, a run reads from an environment variable.
"""

from collections.abc import Mapping, Sequence

from eos_mirror.errors import ConfigError
from eos_mirror.settings import accepted
from eos_mirror.settings.cluster_config import (
    OAUTH_NOT_TAKEN,
    add_cluster,
    ignored,
    oauth_lines,
)
from eos_mirror.settings.draft import Draft, Entry
from eos_mirror.settings.fields import Fields
from eos_mirror.settings.sections import PROVIDERS, is_common_client_key

STORAGE = dict.fromkeys(
    ("groupId", "configStorageTopic", "statusStorageTopic", "offsetStorageTopic"),
    "there is no Kafka Connect: positions are in groups on the target",
)
USER_LOGINS = {
    "plain": ("PLAIN", "plain.PlainLoginModule"),
    "scram-sha-256": ("SCRAM-SHA-256", "scram.ScramLoginModule"),
    "scram-sha-512": ("SCRAM-SHA-512", "scram.ScramLoginModule"),
}
"""Type of a login with user and password to SASL mechanism and login module."""

LOGINS = ("tls", *USER_LOGINS, "oauth", "custom")
OAUTH_FIELDS = {
    "clientId": "oauth.client.id",
    "tokenEndpointUri": "oauth.token.endpoint.uri",
    "scope": "oauth.scope",
}
OF_OAUTH = dict.fromkeys(
    (
        "accessToken",
        "accessTokenIsJwt",
        "accessTokenLocation",
        "audience",
        "clientAssertion",
        "clientAssertionLocation",
        "clientAssertionType",
        "connectTimeoutSeconds",
        "disableTlsHostnameVerification",
        "enableMetrics",
        "httpRetries",
        "httpRetryPauseMs",
        "includeAcceptHeader",
        "maxTokenExpirySeconds",
        "passwordSecret",
        "readTimeoutSeconds",
        "refreshToken",
        "username",
    ),
    OAUTH_NOT_TAKEN,
)
CUSTOM = ("sasl.", "ssl.keystore.")
"""Settings that Strimzi accepts in a login of type `custom`."""

PROVIDER_CLASS = ".class"
_SECRETS = "secrets are read from environment variables"


def declare_providers(cluster: Fields, draft: Draft) -> None:
    """Record the config providers that the settings of a cluster declare."""
    config = cluster.content.get("config")
    for key, value in config.items() if isinstance(config, dict) else ():
        name = str(key).removeprefix(PROVIDERS)
        if name != key and name.endswith(PROVIDER_CLASS):
            draft.declare_provider(name.removesuffix(PROVIDER_CLASS), str(value))


def add_strimzi_cluster(alias: str, cluster: Fields, roles: Sequence[str], draft: Draft) -> None:
    """
    Add the lines of a cluster.

    Args:
        roles: `consumer` if it is a source, `producer` if it is a target.

    Raises:
        ConfigError: A needed field is missing, or the login has an unknown type.
    """
    draft.clusters.setdefault(alias)
    entries: dict[str, Entry] = {}
    draft.add(alias, "bootstrap.servers", cluster.needed("bootstrapServers"))
    tls, login = cluster.inner("tls"), cluster.inner("authentication")
    if tls is not None:
        entries["security.protocol"] = Entry(value="SSL", path=tls.path)
        entries |= _trusted(tls, "trustedCertificates", "ssl.truststore.certificates")
        tls.leave({})
    if login is not None:
        is_sasl = login.take("sasl") is True or login.content.get("type") not in {"tls", "custom"}
        entries |= _login(alias, login, roles, draft)
        if is_sasl:
            protocol = "SASL_PLAINTEXT" if tls is None else "SASL_SSL"
            entries["security.protocol"] = Entry(value=protocol, path=login.path)
        login.leave(OF_OAUTH)
    settings = _settings(alias, cluster.config("config"), roles, draft)
    add_cluster(alias, entries | settings, draft)
    cluster.leave(STORAGE)


def _trusted(fields: Fields, name: str, key: str) -> dict[str, Entry]:
    """Return the lines for trusted certificates, of which there can be several."""
    references, path = [], fields.path_of(name)
    for one in fields.several(name):
        secret = one.needed("secretName").value
        certificate = one.text("certificate") or one.needed("pattern")
        references.append(fields.draft.secret(secret, certificate.value))
        one.leave({"pattern": "the name of the certificate counts"})
    if not references:
        return {}
    lines = {key: Entry(value="\n".join(dict.fromkeys(references)), path=path)}
    if key.startswith("ssl."):
        lines["ssl.truststore.type"] = Entry(value="PEM", path=path)
    return lines


def _login(alias: str, login: Fields, roles: Sequence[str], draft: Draft) -> dict[str, Entry]:
    """Return the client settings of a login."""
    kind = login.needed("type")
    if kind.value == "tls":
        return _key_pair(login)
    if kind.value in USER_LOGINS:
        return _user(login, *USER_LOGINS[kind.value])
    if kind.value == "oauth":
        return _oauth(alias, login, roles, draft)
    if kind.value == "custom":
        return _custom(login)
    expected = f"expected {', '.join(LOGINS[:-1])} or {LOGINS[-1]}"
    raise ConfigError(f"{draft.file}: {kind.path} = {kind.value}: {expected}")


def _key_pair(login: Fields) -> dict[str, Entry]:
    pair = _inner(login, "certificateAndKey")
    secret = pair.needed("secretName").value
    chain, key = pair.needed("certificate"), pair.needed("key")
    pair.leave({})
    return {
        "ssl.keystore.type": Entry(value="PEM", path=pair.path),
        "ssl.keystore.certificate.chain": _held(login.draft, secret, chain),
        "ssl.keystore.key": _held(login.draft, secret, key),
    }


def _user(login: Fields, mechanism: str, module: str) -> dict[str, Entry]:
    user = login.needed("username")
    secret = _inner(login, "passwordSecret")
    password = _held(login.draft, secret.needed("secretName").value, secret.needed("password"))
    secret.leave({})
    quoted = user.value.replace("\\", "\\\\").replace('"', '\\"')
    jaas = (
        f"org.apache.kafka.common.security.{module} required "
        f'username="{quoted}" password="{password.value}";'
    )
    return {
        "sasl.mechanism": Entry(value=mechanism, path=login.path_of("type")),
        "sasl.jaas.config": Entry(value=jaas, path=login.path),
    }


def _oauth(alias: str, login: Fields, roles: Sequence[str], draft: Draft) -> dict[str, Entry]:
    """Return the settings of the login that Strimzi had until v1beta2."""
    options = {
        option: entry
        for name, option in OAUTH_FIELDS.items()
        if (entry := login.text(name)) is not None
    }
    secret = login.inner("clientSecret")
    if secret is not None:
        name = secret.needed("secretName").value
        options["oauth.client.secret"] = _held(draft, name, secret.needed("key"))
        secret.leave({})
    for name, entry in login.config("saslExtensions").items():
        options[f"oauth.sasl.extension.{name}"] = entry
    for key, entry in _trusted(login, "tlsTrustedCertificates", "https.ca.pem").items():
        for role in (*roles, "admin"):
            draft.add(alias, f"{role}.{key}", entry)
    mechanism = Entry(value="OAUTHBEARER", path=login.path_of("type"))
    return {"sasl.mechanism": mechanism, **oauth_lines(options, draft)}


def _custom(login: Fields) -> dict[str, Entry]:
    """Return the settings of a login of the user's own."""
    taken = {}
    for name, entry in login.config("config").items():
        if name.startswith(CUSTOM):
            taken[name] = entry
        else:
            login.draft.refuse(entry.path, "Strimzi ignores it, too")
    return taken


def _settings(
    alias: str, config: Mapping[str, Entry], roles: Sequence[str], draft: Draft
) -> dict[str, Entry]:
    """
    Return the settings that all clients of a cluster share; add or report the others.

    The configuration of a target is also that of the Connect worker, whose producer writes the
    data.
    """
    shared = {}
    for name, entry in config.items():
        about = accepted.purpose(name)
        if name.startswith(PROVIDERS.removesuffix(".")):
            draft.refuse(entry.path, _SECRETS)
        elif about is not None:
            draft.refuse(entry.path, f"no effect here ({about})")
        elif is_common_client_key(name):
            shared[name] = entry
        elif name.startswith("producer.") and "producer" in roles:
            draft.add(alias, name, entry)
        else:
            draft.refuse(entry.path, ignored(name))
    return shared


def _inner(fields: Fields, name: str) -> Fields:
    inner = fields.inner(name)
    if inner is None:
        raise ConfigError(f"{fields.draft.file}: {fields.path_of(name)} is missing; add it")
    return inner


def _held(draft: Draft, secret: str, key: Entry) -> Entry:
    """Return the reference to a key of a Secret."""
    return Entry(value=draft.secret(secret, key.value), path=key.path)
