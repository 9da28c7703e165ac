"""
Java's client settings translated to librdkafka's.

A name that is not listed here is the same in both, or unknown (`librdkafka.SETTINGS`).
"""

from collections.abc import Callable

from eos_mirror.settings.librdkafka import SETTINGS, Role


def _same(value: str) -> str:
    return value


def _kib(value: str) -> str:
    if not value.isdecimal():
        raise ValueError("expected a whole number")
    return str(max(1, int(value) // 1024))


def _os_default(value: str) -> str:
    """Convert the operating system's default: -1 in Java, 0 in librdkafka."""
    return "0" if value == "-1" else value


def _identification(value: str) -> str:
    """Convert an empty value, which turns host name verification off in Java, to `none`."""
    return value.lower() or "none"


def _idle(value: str) -> str:
    """Convert -1, with which Java keeps idle connections open, to 0."""
    return "0" if value == "-1" else value


def _reset(value: str) -> str:
    """Convert `none`, Java's word for an error."""
    if value.startswith("by_duration:"):
        raise ValueError("write start.position = timestamp:... instead")
    return "error" if value == "none" else value


def _lookup(value: str) -> str:
    """Convert Java's value from before Kafka 2.6."""
    return "use_all_dns_ips" if value == "default" else value


Translate = Callable[[str], str]

RENAMED: dict[str, tuple[str, Translate]] = {
    "acks": ("acks", lambda value: "all" if value == "-1" else value),
    "auto.commit.enable": ("enable.auto.commit", _same),
    "auto.offset.reset": ("auto.offset.reset", _reset),
    "buffer.memory": ("queue.buffering.max.kbytes", _kib),
    "client.dns.lookup": ("client.dns.lookup", _lookup),
    "connections.max.idle.ms": ("connections.max.idle.ms", _idle),
    "fetch.max.wait.ms": ("fetch.wait.max.ms", _same),
    "max.in.flight": ("max.in.flight.requests.per.connection", _same),
    "max.request.size": ("message.max.bytes", _same),
    "metadata.broker.list": ("bootstrap.servers", _same),
    "metadata.max.age.ms": ("topic.metadata.refresh.interval.ms", _same),
    "receive.buffer.bytes": ("socket.receive.buffer.bytes", _os_default),
    "request.required.acks": ("acks", lambda value: "all" if value == "-1" else value),
    "request.timeout.ms": ("socket.timeout.ms", _same),
    "send.buffer.bytes": ("socket.send.buffer.bytes", _os_default),
    "ssl.endpoint.identification.algorithm": (
        "ssl.endpoint.identification.algorithm",
        _identification,
    ),
}
"""Java's name, or an alias of librdkafka's, to librdkafka's name and the value's conversion."""

PRODUCERS_ONLY = frozenset({"max.request.size"})
"""Java's names for producers, where librdkafka's counterpart exists for every client."""

DROPPED = frozenset(
    {
        "auto.commit.interval.ms",
        "auto.include.jmx.reporter",
        "bootstrap.controllers",
        "compression.gzip.level",
        "compression.lz4.level",
        "compression.zstd.level",
        "config.providers",
        "default.api.timeout.ms",
        "delivery.timeout.ms",
        "exclude.internal.topics",
        "interceptor.classes",
        "key.deserializer",
        "key.serializer",
        "max.block.ms",
        "max.poll.records",
        "metadata.max.idle.ms",
        "metric.reporters",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
        "partitioner.adaptive.partitioning.enable",
        "partitioner.availability.timeout.ms",
        "partitioner.class",
        "partitioner.ignore.keys",
        "poll.timeout.ms",
        "retries",
        "sasl.client.callback.handler.class",
        "sasl.kerberos.kinit.cmd",
        "sasl.kerberos.min.time.before.relogin",
        "sasl.kerberos.service.name",
        "sasl.kerberos.ticket.renew.jitter",
        "sasl.kerberos.ticket.renew.window.factor",
        "sasl.login.callback.handler.class",
        "sasl.login.class",
        "sasl.login.connect.timeout.ms",
        "sasl.login.read.timeout.ms",
        "sasl.login.refresh.buffer.seconds",
        "sasl.login.refresh.min.period.seconds",
        "sasl.login.refresh.window.factor",
        "sasl.login.refresh.window.jitter",
        "sasl.login.retry.backoff.max.ms",
        "sasl.login.retry.backoff.ms",
        "sasl.oauthbearer.assertion.template.file",
        "sasl.oauthbearer.clock.skew.seconds",
        "sasl.oauthbearer.expected.audience",
        "sasl.oauthbearer.expected.issuer",
        "sasl.oauthbearer.header.urlencode",
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        "sasl.oauthbearer.jwks.endpoint.url",
        "sasl.oauthbearer.jwt.retriever.class",
        "sasl.oauthbearer.jwt.validator.class",
        "sasl.oauthbearer.scope.claim.name",
        "security.providers",
        "share.acknowledgement.mode",
        "share.acquire.mode",
        "socket.connection.setup.timeout.max.ms",
        "ssl.enabled.protocols",
        "ssl.engine.factory.class",
        "ssl.keymanager.algorithm",
        "ssl.protocol",
        "ssl.provider",
        "ssl.secure.random.implementation",
        "ssl.trustmanager.algorithm",
        "transaction.two.phase.commit.enable",
        "value.deserializer",
        "value.serializer",
    }
)
"""Java's names that librdkafka has no counterpart for. They are dropped, with a note."""


def role_of(name: str) -> Role | None:
    """Return the kind of client that has a setting, by either name; None if librdkafka has none."""
    if name in PRODUCERS_ONLY:
        return Role.PRODUCER
    known = SETTINGS.get(RENAMED[name][0] if name in RENAMED else name)
    return known.role if known else None
