"""Java's client settings with ordinary values, for the page that says what becomes of each."""

from typing import Final, NamedTuple

CERTIFICATE: Final = "ca.pem"
"""A file where the configurations are loaded, with this text."""

CERTIFICATE_TEXT: Final = """\
-----BEGIN CERTIFICATE-----
MIIBezCCASGgAwIBAgIUMmU912D7aEBqeqlE3eZ94S3xitwwCgYIKoZIzj0EAwIw
EjEQMA4GA1UEAwwHZXhhbXBsZTAgFw0yNjExMjcwMjI2MzdaGA8yMTI2MTEwMzAy
MjYzN1owEjEQMA4GA1UEAwwHZXhhbXBsZTBZMBMGByqGSM49AgEGCCqGSM49AwEH
A0IABLj5zJCuPxyEQ2aM2e9gssVTUSS+O3Ta5XT63fM2GVKJ71VlSUhZNQK0JIPz
aaV2rXONSx55QTzrpHn/0gtxuKijUzBRMB0GA1UdDgQWBBSLkKW9fodEI5dJKOW6
/Dw8YNUE8jAfBgNVHSMEGDAWgBSLkKW9fodEI5dJKOW6/Dw8YNUE8jAPBgNVHRMB
Af8EBTADAQH/MAoGCCqGSM49BAMCA0gAMEUCIQCKi/LuQlB8emK77rg1naMzXAYC
zOSULfT9agFw2v8iDAIgYqn+hUGbi3+HfVW/68zAnOCSaudu8q/actaBHVDR1Gg=
-----END CERTIFICATE-----
"""


class Pair(NamedTuple):
    """A key with a value, and what stands beside it, without prefix."""

    key: str
    value: str
    beside: tuple[tuple[str, str], ...] = ()


ASSIGNORS = "org.apache.kafka.clients.consumer"
SECURITY = "org.apache.kafka.common.security"
OAUTH = "sasl.oauthbearer"
USER = 'username="me" password="x";'
SCRAM = f"{SECURITY}.scram.ScramLoginModule required {USER}"
PLAIN = (("sasl.mechanism", "PLAIN"),)
TLS = (("security.protocol", "SSL"),)
PEM_TRUST = (*TLS, ("ssl.truststore.type", "PEM"))
IN_FILE = f"${{dir:.:{CERTIFICATE}}}"
CREDENTIALS = (
    ("sasl.mechanism", "OAUTHBEARER"),
    (f"{OAUTH}.token.endpoint.url", "https://login/token"),
    (f"{OAUTH}.client.credentials.client.id", "me"),
    (f"{OAUTH}.client.credentials.client.secret", "x"),
)

_PLAIN_TEXT = """\
acks = all
acks = -1
acks = 1
allow.auto.create.topics = false
allow.auto.create.topics = true
auto.commit.interval.ms = 5000
auto.include.jmx.reporter = true
auto.offset.reset = earliest
auto.offset.reset = latest
auto.offset.reset = none
auto.offset.reset = by_duration:PT24H
batch.size = 16384
batch.size = 0
bootstrap.controllers = c:9093
bootstrap.servers = other:9092
buffer.memory = 33554432
check.crcs = true
check.crcs = false
client.dns.lookup = use_all_dns_ips
client.dns.lookup = default
client.id = mirror
client.rack = rack-1
compression.gzip.level = 6
compression.lz4.level = 9
compression.type = lz4
compression.zstd.level = 3
config.providers = env
connections.max.idle.ms = 540000
connections.max.idle.ms = -1
default.api.timeout.ms = 60000
delivery.timeout.ms = 120000
enable.auto.commit = false
enable.auto.commit = true
enable.idempotence = true
enable.idempotence = false
enable.metrics.push = true
exclude.internal.topics = true
fetch.max.bytes = 52428800
fetch.max.bytes = 2147483647
fetch.max.wait.ms = 500
fetch.min.bytes = 1
fetch.min.bytes = 0
group.id = mirror
group.instance.id = mirror-1
group.protocol = classic
group.protocol = consumer
group.remote.assignor = uniform
heartbeat.interval.ms = 3000
interceptor.classes = com.example.Interceptor
isolation.level = read_committed
isolation.level = read_uncommitted
key.deserializer = org.apache.kafka.common.serialization.ByteArrayDeserializer
key.serializer = org.apache.kafka.common.serialization.ByteArraySerializer
linger.ms = 5
max.block.ms = 60000
max.in.flight.requests.per.connection = 5
max.in.flight.requests.per.connection = 6
max.partition.fetch.bytes = 1048576
max.poll.interval.ms = 300000
max.poll.interval.ms = 2147483647
max.poll.records = 500
max.request.size = 1048576
max.request.size = 2147483647
metadata.max.age.ms = 300000
metadata.max.idle.ms = 300000
metadata.recovery.rebootstrap.trigger.ms = 300000
metadata.recovery.strategy = rebootstrap
metric.reporters = org.apache.kafka.common.metrics.JmxReporter
metrics.num.samples = 2
metrics.recording.level = INFO
metrics.sample.window.ms = 30000
partitioner.adaptive.partitioning.enable = true
partitioner.availability.timeout.ms = 0
partitioner.class = org.apache.kafka.clients.producer.RoundRobinPartitioner
partitioner.ignore.keys = false
receive.buffer.bytes = 65536
receive.buffer.bytes = -1
reconnect.backoff.max.ms = 1000
reconnect.backoff.ms = 50
request.timeout.ms = 30000
request.timeout.ms = 600000
retries = 2147483647
retry.backoff.max.ms = 1000
retry.backoff.ms = 100
retry.backoff.ms = 0
sasl.client.callback.handler.class = com.example.Handler
sasl.kerberos.kinit.cmd = /usr/bin/kinit
sasl.kerberos.min.time.before.relogin = 60000
sasl.kerberos.service.name = kafka
sasl.kerberos.ticket.renew.jitter = 0.05
sasl.kerberos.ticket.renew.window.factor = 0.8
sasl.login.callback.handler.class = com.example.Handler
sasl.login.class = com.example.Login
sasl.login.connect.timeout.ms = 10000
sasl.login.read.timeout.ms = 10000
sasl.login.refresh.buffer.seconds = 300
sasl.login.refresh.min.period.seconds = 60
sasl.login.refresh.window.factor = 0.8
sasl.login.refresh.window.jitter = 0.05
sasl.login.retry.backoff.max.ms = 10000
sasl.login.retry.backoff.ms = 100
sasl.mechanism = GSSAPI
sasl.mechanism = AWS_MSK_IAM
sasl.oauthbearer.assertion.algorithm = RS256
sasl.oauthbearer.assertion.claim.aud = audience
sasl.oauthbearer.assertion.claim.exp.seconds = 300
sasl.oauthbearer.assertion.claim.iss = issuer
sasl.oauthbearer.assertion.claim.jti.include = false
sasl.oauthbearer.assertion.claim.nbf.seconds = 60
sasl.oauthbearer.assertion.claim.sub = subject
sasl.oauthbearer.assertion.file = token.jwt
sasl.oauthbearer.assertion.private.key.file = key.pem
sasl.oauthbearer.assertion.private.key.passphrase = x
sasl.oauthbearer.assertion.template.file = template.json
sasl.oauthbearer.clock.skew.seconds = 30
sasl.oauthbearer.expected.audience = audience
sasl.oauthbearer.expected.issuer = issuer
sasl.oauthbearer.header.urlencode = false
sasl.oauthbearer.jwks.endpoint.refresh.ms = 3600000
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms = 10000
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms = 100
sasl.oauthbearer.jwks.endpoint.url = https://login/keys
sasl.oauthbearer.jwt.retriever.class = com.example.Retriever
sasl.oauthbearer.jwt.validator.class = com.example.Validator
sasl.oauthbearer.scope = kafka
sasl.oauthbearer.scope.claim.name = scope
sasl.oauthbearer.sub.claim.name = sub
security.protocol = PLAINTEXT
security.protocol = SSL
security.providers = com.example.Provider
send.buffer.bytes = 131072
send.buffer.bytes = -1
session.timeout.ms = 10000
session.timeout.ms = 45000
share.acknowledgement.mode = implicit
share.acquire.mode = batch_optimized
socket.connection.setup.timeout.max.ms = 30000
socket.connection.setup.timeout.ms = 10000
ssl.cipher.suites = TLS_AES_256_GCM_SHA384
ssl.enabled.protocols = TLSv1.2,TLSv1.3
ssl.endpoint.identification.algorithm = https
ssl.endpoint.identification.algorithm =
ssl.engine.factory.class = com.example.Factory
ssl.key.password = x
ssl.keymanager.algorithm = SunX509
ssl.keystore.location = keys.jks
ssl.protocol = TLSv1.3
ssl.provider = SunJSSE
ssl.secure.random.implementation = SHA1PRNG
ssl.trustmanager.algorithm = PKIX
ssl.truststore.location = trust.jks
transaction.timeout.ms = 60000
transaction.timeout.ms = 30000
transaction.two.phase.commit.enable = false
transactional.id = mirror
value.deserializer = org.apache.kafka.common.serialization.ByteArrayDeserializer
value.serializer = org.apache.kafka.common.serialization.ByteArraySerializer
"""

_WITH_OTHERS = (
    Pair("partition.assignment.strategy", f"{ASSIGNORS}.RangeAssignor"),
    Pair("partition.assignment.strategy", f"{ASSIGNORS}.CooperativeStickyAssignor"),
    Pair("sasl.jaas.config", f"{SECURITY}.plain.PlainLoginModule required {USER}"),
    Pair("sasl.jaas.config", f"{SECURITY}.plain.PlainLoginModule required {USER}", PLAIN),
    *(Pair(*one, tuple(c for c in CREDENTIALS if c != one)) for one in CREDENTIALS),
    Pair("sasl.mechanism", "SCRAM-SHA-512", (("sasl.jaas.config", SCRAM),)),
    Pair("ssl.truststore.certificates", IN_FILE, PEM_TRUST),
    Pair("ssl.truststore.location", CERTIFICATE, PEM_TRUST),
)

_split = (line.split(" =", 1) for line in _PLAIN_TEXT.splitlines())
PAIRS: Final = sorted(
    (
        *(Pair(key, value.strip()) for key, value in _split),
        *_WITH_OTHERS,
    )
)
"""Sorted by key. The keys are those of ConsumerConfig, ProducerConfig and AdminClientConfig."""
