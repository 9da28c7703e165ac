"""A broker with every login that the lane knows, over TLS, and with sessions that end soon."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka.admin import ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from eos_mirror.testing import KafkaCluster, Security
from eos_mirror.testing.tls import Keys

USER, PASSWORD = "a,b=c", "hunter2 ①ﬁ"
"""Both have characters that SCRAM escapes, or that SASLprep would change."""

PLAIN_USER, PLAIN_PASSWORD = "plain", "hunter2 hunter3"
"""The configuration file of a broker is not read as UTF-8."""

SESSION_MS = 2_000
"""Kafka logs a connection in again at most once a second."""

OAUTH = "org.apache.kafka.common.security.oauthbearer"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
LISTENER = "listener.name.client"


@contextmanager
def sasl_cluster(keys: Keys) -> Iterator[KafkaCluster]:
    """Run the broker. Its client listener has SASL_SSL."""
    settings: dict[str, object] = {
        "listener.security.protocol.map": "CLIENT:SASL_SSL,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": keys.brokers,
        "ssl.keystore.password": keys.broker_settings()["ssl.keystore.password"],
        "sasl.enabled.mechanisms": ",".join(["PLAIN", *MECHANISMS]),
        "connections.max.reauth.ms": SESSION_MS,
        f"{LISTENER}.scram-sha-256.sasl.jaas.config": SCRAM,
        f"{LISTENER}.scram-sha-512.sasl.jaas.config": SCRAM,
        f"{LISTENER}.oauthbearer.sasl.jaas.config": (
            f'{OAUTH}.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";'
        ),
        f"{LISTENER}.oauthbearer.sasl.server.callback.handler.class": (
            f"{OAUTH}.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
        ),
    }
    with KafkaCluster(
        name="sasl",
        security=Security.SASL_PLAIN,
        users={PLAIN_USER: PLAIN_PASSWORD},
        broker_config=settings,
    ) as cluster:
        _create_users(cluster)
        yield cluster


def _create_users(cluster: KafkaCluster) -> None:
    for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
        how = ScramCredentialInfo(mechanism, 4096)
        wanted = UserScramCredentialUpsertion(USER, how, PASSWORD.encode())
        for future in cluster.admin().alter_user_scram_credentials([wanted]).values():
            future.result(30)


def config_of(cluster: KafkaCluster, authority: Path, mechanism: str, url: str) -> dict[str, str]:
    """Return the configuration of a client."""
    config = {
        "bootstrap.servers": cluster.bootstrap,
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(authority),
        "sasl.mechanism": mechanism,
    }
    if mechanism == "OAUTHBEARER":
        return config | {
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.client.id": "me",
            "sasl.oauthbearer.client.secret": PASSWORD,
            "sasl.oauthbearer.token.endpoint.url": url,
            "sasl.oauthbearer.extensions": "tenant=7",
        }
    if mechanism == "PLAIN":
        return config | {"sasl.username": PLAIN_USER, "sasl.password": PLAIN_PASSWORD}
    return config | {"sasl.username": USER, "sasl.password": PASSWORD}
