"""Client settings of one cluster, as resources and connectors of Kafka Connect have them."""

from collections.abc import Mapping

from eos_mirror.settings.draft import Draft, Entry
from eos_mirror.settings.jaas import parse_jaas
from eos_mirror.settings.sections import is_common_client_key

HANDLER = "sasl.login.callback.handler.class"
STRIMZI_OAUTH = "io.strimzi.kafka.oauth.client."
OAUTH_OPTIONS = {
    "oauth.token.endpoint.uri": "sasl.oauthbearer.token.endpoint.url",
    "oauth.client.id": "sasl.oauthbearer.client.credentials.client.id",
    "oauth.client.secret": "sasl.oauthbearer.client.credentials.client.secret",
    "oauth.scope": "sasl.oauthbearer.scope",
}
"""Options of Strimzi's login to Kafka's own keys."""

OAUTH_EXTENSION = "oauth.sasl.extension."
OAUTH_NOT_TAKEN = "the OAuth login of librdkafka has no such option"
PLACES = {
    "consumer.": "A->B.source.consumer.*",
    "producer.": "A->B.producer.override.*",
    "admin.": "A->B.source.admin.* or A->B.target.admin.*",
}
"""Prefix of a client setting to the keys that have the effect."""

CIPHERS = "write OpenSSL's cipher names, such as ECDHE-RSA-AES256-GCM-SHA384"


def add_cluster(alias: str, entries: Mapping[str, Entry], draft: Draft) -> None:
    """
    Add the lines of a cluster.

    Args:
        entries: Brokers and client settings by name, without prefix. Only settings that all
            clients share have an effect in MirrorMaker 2.
    """
    draft.clusters.setdefault(alias)
    for name, entry in with_oauth(entries, draft).items():
        if name == "ssl.cipher.suites" and ("TLS_" in entry.value or "SSL_" in entry.value):
            draft.refuse(entry.path, CIPHERS)
        elif name == "bootstrap.servers" or is_common_client_key(name):
            draft.add(alias, name, entry)
        else:
            draft.refuse(entry.path, ignored(name))


def ignored(name: str) -> str:
    """Return why a setting of a cluster is not taken over, and what to write for its effect."""
    place = next((place for prefix, place in PLACES.items() if name.startswith(prefix)), None)
    return "MirrorMaker 2 ignores it here" + (f"; for the effect, write {place}" if place else "")


def with_oauth(entries: Mapping[str, Entry], draft: Draft) -> dict[str, Entry]:
    """Return the entries; a login with Strimzi's OAuth library has Kafka's own keys instead."""
    handler, jaas = entries.get(HANDLER), entries.get("sasl.jaas.config")
    if handler is None or jaas is None or not handler.value.startswith(STRIMZI_OAUTH):
        return dict(entries)
    others = {
        name: entry for name, entry in entries.items() if name not in {HANDLER, "sasl.jaas.config"}
    }
    try:
        options = parse_jaas(jaas.value).options
    except ValueError as exc:
        draft.fault(jaas.path, str(exc))
        return others
    named = {name: Entry(value=value, path=jaas.path) for name, value in options.items()}
    return others | oauth_lines(named, draft)


def oauth_lines(options: Mapping[str, Entry], draft: Draft) -> dict[str, Entry]:
    """Return the settings of an OAuth login, from the options of Strimzi's library."""
    lines = {key: options[name] for name, key in OAUTH_OPTIONS.items() if name in options}
    extensions = {
        name.removeprefix(OAUTH_EXTENSION): entry
        for name, entry in options.items()
        if name.startswith(OAUTH_EXTENSION)
    }
    if extensions:
        value = ",".join(f"{name}={entry.value}" for name, entry in extensions.items())
        path = next(iter(extensions.values())).path
        lines["sasl.oauthbearer.extensions"] = Entry(value=value, path=path)
    for name, entry in options.items():
        if name not in OAUTH_OPTIONS and not name.startswith(OAUTH_EXTENSION):
            draft.refuse(f"{entry.path} ({name})", OAUTH_NOT_TAKEN)
    return lines
