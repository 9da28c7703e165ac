"""
The client settings that librdkafka has: which clients have them, and which values they accept.

Source: librdkafka's CONFIGURATION.md, version 2.16. tests/settings/test_librdkafka.py compares this
table with the library. Callbacks are missing, and so are settings that mirroring must not have.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final


class Role(Enum):
    """A kind of client. librdkafka's admin clients are producers; here they read, too."""

    ANY = "client"
    CONSUMER = "consumer"
    PRODUCER = "producer"
    ADMIN = "admin client"


ANY, CONSUMER, PRODUCER = Role.ANY, Role.CONSUMER, Role.PRODUCER


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """
    One setting of librdkafka.

    Attributes:
        role: The clients that have it.
        low, high: Smallest and largest value of a number; None for other types.
        is_whole: The number has no decimals.
        choices: The values of an enumeration, whose case does not matter; else none.
    """

    role: Role
    low: int | None = None
    high: int | None = None
    is_whole: bool = True
    choices: tuple[str, ...] = ()

    def fitted(self, text: str) -> str:
        """
        Return the accepted value that is nearest to a text.

        Raises:
            ValueError: The text is no number, or none of the choices; says what is expected.
        """
        if self.choices:
            if text.lower() in map(str.lower, self.choices):
                return text
            raise ValueError(f"expected {', '.join(self.choices[:-1])} or {self.choices[-1]}")
        if self.low is None or self.high is None:
            return text
        try:
            number = int(text) if self.is_whole else float(text)
        except ValueError:
            raise ValueError(f"expected a {'whole ' * self.is_whole}number") from None
        if number < self.low:
            return str(self.low)
        return str(self.high) if number > self.high else text


def _number(role: Role, low: int, high: int) -> Setting:
    return Setting(role=role, low=low, high=high)


def _decimal(role: Role, low: int, high: int) -> Setting:
    return Setting(role=role, low=low, high=high, is_whole=False)


def _flag(role: Role) -> Setting:
    return Setting(role=role, choices=("true", "false"))


def _choice(role: Role, *choices: str) -> Setting:
    return Setting(role=role, choices=choices)


def _text(role: Role) -> Setting:
    return Setting(role=role)


SETTINGS: Final[Mapping[str, Setting]] = {
    "acks": _choice(PRODUCER, "all", "-1", "0", "1"),
    "allow.auto.create.topics": _flag(ANY),
    "api.version.fallback.ms": _number(ANY, 0, 604_800_000),
    "api.version.request": _flag(ANY),
    "api.version.request.timeout.ms": _number(ANY, 1, 300_000),
    "auto.offset.reset": _choice(CONSUMER, "error", "earliest", "latest"),
    "batch.num.messages": _number(PRODUCER, 1, 1_000_000),
    "batch.size": _number(PRODUCER, 1, 2_147_483_647),
    "bootstrap.servers": _text(ANY),
    "broker.address.family": _choice(ANY, "any", "v4", "v6"),
    "broker.address.ttl": _number(ANY, 0, 86_400_000),
    "broker.version.fallback": _text(ANY),
    "check.crcs": _flag(CONSUMER),
    "client.dns.lookup": _choice(
        ANY, "use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"
    ),
    "client.id": _text(ANY),
    "client.rack": _text(ANY),
    "compression.codec": _choice(PRODUCER, "none", "gzip", "snappy", "lz4", "zstd"),
    "compression.level": _number(PRODUCER, -1, 12),
    "compression.type": _choice(PRODUCER, "none", "gzip", "snappy", "lz4", "zstd"),
    "connections.max.idle.ms": _number(ANY, 0, 2_147_483_647),
    "coordinator.query.interval.ms": _number(CONSUMER, 1, 3_600_000),
    "debug": _text(ANY),
    "delivery.report.only.error": _flag(PRODUCER),
    "enable.auto.commit": _flag(CONSUMER),
    "enable.auto.offset.store": _flag(CONSUMER),
    "enable.gapless.guarantee": _flag(PRODUCER),
    "enable.idempotence": _flag(PRODUCER),
    "enable.metrics.push": _flag(ANY),
    "enable.partition.eof": _flag(CONSUMER),
    "enable.random.seed": _flag(ANY),
    "enable.sasl.oauthbearer.unsecure.jwt": _flag(ANY),
    "enable.ssl.certificate.verification": _flag(ANY),
    "fetch.error.backoff.ms": _number(CONSUMER, 0, 300_000),
    "fetch.max.bytes": _number(CONSUMER, 0, 2_147_483_135),
    "fetch.message.max.bytes": _number(CONSUMER, 1, 1_000_000_000),
    "fetch.min.bytes": _number(CONSUMER, 1, 100_000_000),
    "fetch.queue.backoff.ms": _number(CONSUMER, 0, 300_000),
    "fetch.wait.max.ms": _number(CONSUMER, 0, 300_000),
    "group.id": _text(CONSUMER),
    "group.instance.id": _text(CONSUMER),
    "group.protocol": _choice(CONSUMER, "classic", "consumer"),
    "group.protocol.type": _text(CONSUMER),
    "group.remote.assignor": _text(CONSUMER),
    "heartbeat.interval.ms": _number(CONSUMER, 1, 3_600_000),
    "https.ca.location": _text(ANY),
    "https.ca.pem": _text(ANY),
    "isolation.level": _choice(CONSUMER, "read_uncommitted", "read_committed"),
    "linger.ms": _decimal(PRODUCER, 0, 900_000),
    "log.connection.close": _flag(ANY),
    "log.thread.name": _flag(ANY),
    "log_level": _number(ANY, 0, 7),
    "max.in.flight.requests.per.connection": _number(ANY, 1, 1_000_000),
    "max.partition.fetch.bytes": _number(CONSUMER, 1, 1_000_000_000),
    "max.poll.interval.ms": _number(CONSUMER, 1, 86_400_000),
    "message.copy.max.bytes": _number(ANY, 0, 1_000_000_000),
    "message.max.bytes": _number(ANY, 1_000, 1_000_000_000),
    "message.send.max.retries": _number(PRODUCER, 0, 2_147_483_647),
    "message.timeout.ms": _number(PRODUCER, 0, 2_147_483_647),
    "metadata.recovery.rebootstrap.trigger.ms": _number(ANY, 0, 2_147_483_647),
    "metadata.recovery.strategy": _choice(ANY, "none", "rebootstrap"),
    "offset.store.method": _choice(CONSUMER, "none", "file", "broker"),
    "partition.assignment.strategy": _text(CONSUMER),
    "partitioner": _text(PRODUCER),
    "produce.offset.report": _flag(PRODUCER),
    "queue.buffering.backpressure.threshold": _number(PRODUCER, 1, 1_000_000),
    "queue.buffering.max.kbytes": _number(PRODUCER, 1, 2_147_483_647),
    "queue.buffering.max.messages": _number(PRODUCER, 0, 2_147_483_647),
    "queue.buffering.max.ms": _decimal(PRODUCER, 0, 900_000),
    "queued.max.messages.kbytes": _number(CONSUMER, 1, 2_097_151),
    "queued.min.messages": _number(CONSUMER, 1, 10_000_000),
    "receive.message.max.bytes": _number(ANY, 1_000, 2_147_483_647),
    "reconnect.backoff.max.ms": _number(ANY, 0, 3_600_000),
    "reconnect.backoff.ms": _number(ANY, 0, 3_600_000),
    "retry.backoff.max.ms": _number(ANY, 1, 300_000),
    "retry.backoff.ms": _number(ANY, 1, 300_000),
    "sasl.kerberos.keytab": _text(ANY),
    "sasl.kerberos.principal": _text(ANY),
    "sasl.mechanism": _text(ANY),
    "sasl.oauthbearer.assertion.algorithm": _choice(ANY, "RS256", "ES256"),
    "sasl.oauthbearer.assertion.claim.aud": _text(ANY),
    "sasl.oauthbearer.assertion.claim.exp.seconds": _number(ANY, 1, 2_147_483_647),
    "sasl.oauthbearer.assertion.claim.iss": _text(ANY),
    "sasl.oauthbearer.assertion.claim.jti.include": _flag(ANY),
    "sasl.oauthbearer.assertion.claim.nbf.seconds": _number(ANY, 0, 2_147_483_647),
    "sasl.oauthbearer.assertion.claim.sub": _text(ANY),
    "sasl.oauthbearer.assertion.file": _text(ANY),
    "sasl.oauthbearer.assertion.jwt.template.file": _text(ANY),
    "sasl.oauthbearer.assertion.private.key.file": _text(ANY),
    "sasl.oauthbearer.assertion.private.key.passphrase": _text(ANY),
    "sasl.oauthbearer.assertion.private.key.pem": _text(ANY),
    "sasl.oauthbearer.client.credentials.client.id": _text(ANY),
    "sasl.oauthbearer.client.credentials.client.secret": _text(ANY),
    "sasl.oauthbearer.client.id": _text(ANY),
    "sasl.oauthbearer.client.secret": _text(ANY),
    "sasl.oauthbearer.config": _text(ANY),
    "sasl.oauthbearer.extensions": _text(ANY),
    "sasl.oauthbearer.grant.type": _choice(
        ANY, "client_credentials", "urn:ietf:params:oauth:grant-type:jwt-bearer"
    ),
    "sasl.oauthbearer.metadata.authentication.type": _choice(ANY, "none", "azure_imds", "aws_iam"),
    "sasl.oauthbearer.method": _choice(ANY, "default", "oidc"),
    "sasl.oauthbearer.scope": _text(ANY),
    "sasl.oauthbearer.sub.claim.name": _text(ANY),
    "sasl.oauthbearer.token.endpoint.url": _text(ANY),
    "sasl.password": _text(ANY),
    "sasl.username": _text(ANY),
    "security.protocol": _choice(ANY, "plaintext", "ssl", "sasl_plaintext", "sasl_ssl"),
    "session.timeout.ms": _number(CONSUMER, 1, 3_600_000),
    "socket.connection.setup.timeout.ms": _number(ANY, 1_000, 2_147_483_647),
    "socket.keepalive.enable": _flag(ANY),
    "socket.max.fails": _number(ANY, 0, 1_000_000),
    "socket.nagle.disable": _flag(ANY),
    "socket.receive.buffer.bytes": _number(ANY, 0, 100_000_000),
    "socket.send.buffer.bytes": _number(ANY, 0, 100_000_000),
    "socket.timeout.ms": _number(ANY, 10, 300_000),
    "ssl.ca.certificate.stores": _text(ANY),
    "ssl.ca.location": _text(ANY),
    "ssl.ca.pem": _text(ANY),
    "ssl.certificate.location": _text(ANY),
    "ssl.certificate.pem": _text(ANY),
    "ssl.cipher.suites": _text(ANY),
    "ssl.crl.location": _text(ANY),
    "ssl.curves.list": _text(ANY),
    "ssl.endpoint.identification.algorithm": _choice(ANY, "none", "https"),
    "ssl.engine.id": _text(ANY),
    "ssl.engine.location": _text(ANY),
    "ssl.key.location": _text(ANY),
    "ssl.key.password": _text(ANY),
    "ssl.key.pem": _text(ANY),
    "ssl.keystore.location": _text(ANY),
    "ssl.keystore.password": _text(ANY),
    "ssl.providers": _text(ANY),
    "ssl.sigalgs.list": _text(ANY),
    "statistics.interval.ms": _number(ANY, 0, 86_400_000),
    "sticky.partitioning.linger.ms": _number(PRODUCER, 0, 900_000),
    "topic.blacklist": _text(ANY),
    "topic.metadata.propagation.max.ms": _number(ANY, 0, 3_600_000),
    "topic.metadata.refresh.fast.interval.ms": _number(ANY, 1, 60_000),
    "topic.metadata.refresh.interval.ms": _number(ANY, -1, 3_600_000),
    "topic.metadata.refresh.sparse": _flag(ANY),
    "transaction.timeout.ms": _number(PRODUCER, 1_000, 2_147_483_647),
    "transactional.id": _text(PRODUCER),
}
"""By librdkafka's names."""
