"""The exact line that each mistake in a configuration gives."""

import pytest

from tests.settings.conftest import Faults

JAAS = "A.sasl.mechanism = PLAIN\nA.sasl.jaas.config = "


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        ("A->B.topcs = x", "f:5: A->B.topcs: unknown key; did you mean 'A->B.topics'?"),
        ("topiks = x", "f:5: topiks: unknown key; did you mean 'topics'?"),
        ("sync.group.offsets.enabled = true\nemit.checkpoints.enabled = false", "f:6: flow A->B: "
         "sync.group.offsets.enabled needs emit.checkpoints.enabled = true"),
        ("topics.regex = .*", "f:5: topics.regex: unknown key; did you mean 'topics'?"),
        ("topic.blacklist = x", "f:5: topic.blacklist: unknown key; "
         "did you mean 'topics.exclude'?"),
        ("heartbeats.topic.retention.ms = 1", "f:5: heartbeats.topic.retention.ms: "
         "unknown key; remove it, or give a client setting its prefix"),
        ("task.max = 2", "f:5: task.max: unknown key; did you mean 'tasks.max'?"),
        ("B.replication.facto = 2", "f:5: B.replication.facto: unknown key; "
         "did you mean 'B.replication.factor'?"),
        ("topics.blacklist = x", "f:5: topics.blacklist: unknown key; "
         "did you mean 'topics.exclude'?"),
        ("zzz = x", "f:5: zzz: unknown key; remove it, or give a client setting its prefix"),
        ("C.bootstrap.servers = c:1", "f:5: C.bootstrap.servers: 'C' is not in clusters; add it"),
        ("A->C.enabled = true", "f:5: flow A->C names the unknown cluster 'C'; clusters = A, B"),
        ("A->A.enabled = true", "f:5: flow A->A joins a cluster to itself"),
        ("A.runtime = local", "f:5: A.runtime: 'runtime' can only be set at top level"),
        ("A->B.bootstrap.servers = x:1", "f:5: A->B.bootstrap.servers: "
         "'bootstrap.servers' belongs to a cluster, not to a flow"),
        ("enabled = true", "f:5: enabled: 'enabled' can only be set for a flow, as A->B.enabled"),
        ("tasks.max = many", "f:5: tasks.max = many: expected a whole number from 1 to 2147483647"),
        ("tasks.max = 0", "f:5: tasks.max = 0: expected a whole number from 1 to 2147483647"),
        ("refresh.topics.enabled = yes", "f:5: refresh.topics.enabled = yes: "
         "expected true or false"),
        ("tasks.max = 4 # four", "f:5: tasks.max = 4 # four: "
         "a comment needs a line of its own; move '# four' there"),
        ("topics = [", "f:5: topics = [: '[' has a '[' without its ']'; "
         "write '\\\\[' for the character"),
        ("topics = a{2,1}", "f:5: topics = a{2,1}: 'a{2,1}' is not a regular expression that "
         "Python reads as Java does: min repeat greater than max repeat at position 2"),
        ("topics = [a-z&&[b]]", "f:5: topics = [a-z&&[b]]: '[a-z&&[b]]' is not a regular "
         "expression that Python reads as Java does: Possible set intersection at position 4"),
        ("connector.type = both", "f:5: connector.type = both: input should be 'sink' or 'source'"),
        ("connector.type = source\ntransaction.producer = true", "f:6: transaction.producer "
         "contradicts exactly.once.source.support, which counts for a source connector: set that "
         "to enabled, or remove this line"),
        ("abort.on.send.failure = maybe", "f:5: abort.on.send.failure = maybe: "
         "expected true or false"),
        ("replication.policy.class = com.x.P", "f:5: replication.policy.class = com.x.P: "
         "this is a Java class; only Python classes can be loaded"),
        ("replication.policy.separator =", "f:5: flow A->B: replication.policy.separator may be "
         "empty only with replication.policy.class = IdentityReplicationPolicy, which keeps the "
         "names of topics"),
        ("source.cluster.alias = eu", "f:5: source.cluster.alias = eu: flow A->B names remote "
         "topics after 'A'; use 'eu' in clusters, or remove the line"),
        ("A->B.source.cluster.alias =", "f:5: A->B.source.cluster.alias = : flow A->B names remote "
         "topics after 'A'; replication.policy.class = IdentityReplicationPolicy keeps the names "
         "of topics, or remove the line"),
        ("metric.names.formats = both", "f:5: metric.names.formats = both: "
         "expected legacy, new, or both: legacy,new"),
        ("metric.names.formats =", "f:5: metric.names.formats = : "
         "expected legacy, new, or both: legacy,new"),
        ("B.bootstrap.servers = =b:1", "f:5: B.bootstrap.servers = =b:1: '=b:1' is not host:port"),
        ("replication.policy.separator = #", "f:5: replication.policy.separator = #: "
         "a comment needs a line of its own; move '#' there"),
        ("start.position = timestamp:2025-01-31T12:00:00", "f:5: start.position = "
         "timestamp:2025-01-31T12:00:00: 'timestamp:2025-01-31T12:00:00': expected ISO 8601 with a "
         "zone, such as timestamp:2025-01-31T12:00:00Z"),
        ("start.position = orders=soon", "f:5: start.position = orders=soon: 'orders=soon': "
         "expected earliest, latest, timestamp:ISO-8601 with a zone "
         "(timestamp:2025-01-31T12:00:00Z), offset:N, last:N or group:ID, or a list of "
         "pattern=position"),
        ("start.position = latest, orders=earliest", "f:5: start.position = latest, "
         "orders=earliest: 'latest' matches every topic: put it last"),
        ("start.position = last:ten", "f:5: start.position = last:ten: 'last:ten': "
         "expected a number of offsets, such as last:1000"),
        ("A.bootstrap.servers = localhost", "f:5: A.bootstrap.servers = localhost: "
         "'localhost' is not host:port"),
        ("tasks.max = ${env:N}", "f:5: tasks.max: ${env:N}: environment variable N is not set"),
        ("tasks.max = ${env:SECRET}", "f:5: tasks.max = ${env:SECRET}: "
         "resolves to something that is not of type int"),
        ("internal.topic.min.insync.replicas = 4", "f:5: flow A->B: "
         "internal.topic.min.insync.replicas must not exceed internal.topic.replication.factor"),
        ("transaction.timeout.ms = 50", "f:5: flow A->B: "
         "transaction.boundary.interval.ms must be below transaction.timeout.ms"),
        ("provenance.headers.enabled = true", "f:5: flow A->B: provenance.headers.enabled needs "
         "transaction.producer = false: exactly once cannot hold in a topic that others write, "
         "too"),
        ("transforms = mask", "f:5: transforms: mask has no type; add A->B.transforms.mask.type"),
        ("consumer.auto.offset.reset = latest", "f:5: consumer.auto.offset.reset = latest: is "
         "decided by start.position = earliest | latest | timestamp:...; write that instead"),
        ("A.consumer.auto.offset.reset = by_duration:PT1H", "f:5: A.consumer.auto.offset.reset: "
         "write start.position = timestamp:... instead"),
        ("A.consumer.isolation.level = read_uncommitted", "f:5: A.consumer.isolation.level = "
         "read_uncommitted: exactly once depends on it; remove the line"),
        ("B.producer.transaction.timeout.ms = 50", "f:5: flow A->B: "
         "transaction.boundary.interval.ms must be below transaction.timeout.ms"),
        ("A.consumer.session.timeout.ms = soon", "f:5: A.consumer.session.timeout.ms = soon: "
         "expected a whole number from 1 to 2147483647"),
        ("A.consumer.fetch.min.byte = 1", "f:5: A.consumer.fetch.min.byte: "
         "unknown client setting; did you mean 'fetch.min.bytes'?"),
        ("B.producer.compression.type = lz5", "f:5: B.producer.compression.type: "
         "expected none, gzip, snappy, lz4 or zstd"),
        ("B.producer.transactional.id = t", "f:5: B.producer.transactional.id = t: "
         "is new for every incarnation; remove the line"),
        ("B.producer.acks = 1", "f:5: B.producer.acks = 1: "
         "exactly once depends on it; remove the line"),
        ("B.producer.delivery.report.only.error = true",
         "f:5: B.producer.delivery.report.only.error = true: "
         "exactly once depends on it; remove the line"),
        ("B.producer.max.in.flight.requests.per.connection = 6",
         "f:5: B.producer.max.in.flight.requests.per.connection = 6: "
         "more than 5 could reorder records; remove the line"),
        ("replication.policy.topics.map = orders", "f:5: replication.policy.topics.map = orders: "
         "'orders' is not topic:name; the topic may be a regular expression"),
        ("replication.policy.topics.map = a(.*):b-$2", "f:5: replication.policy.topics.map = "
         "a(.*):b-$2: 'a(.*):b-$2': $2 is no group of the expression"),
        ("A.admin.bootstrap.servers = x:1", "f:5: A.admin.bootstrap.servers = x:1: "
         "set it for the cluster, as A.bootstrap.servers"),
        ("B.producer.buffer.memory = big", "f:5: B.producer.buffer.memory: "
         "expected a whole number"),
        ("A.ssl.truststore.location = /t.jks", "f:5: A.ssl.truststore.location: /t.jks cannot be "
         "read: No such file or directory; correct the path"),
        ("A.ssl.keystore.location = /k.jks", "f:5: A.ssl.keystore.location: "
         "needs ssl.keystore.password, too"),
        ("A.ssl.keystore.type = BCFKS\nA.ssl.keystore.location = /k.bcfks\n"
         "A.ssl.keystore.password = hunter2",
         "f:6: A.ssl.keystore.location: /k.bcfks: the type BCFKS cannot be read; run 'keytool "
         "-importkeystore -srckeystore /k.bcfks -srcstoretype BCFKS -destkeystore store.p12 "
         "-deststoretype PKCS12', and name store.p12 and PKCS12"),
        ("A.ssl.cipher.suites = TLS_AES_128_GCM_SHA256", "f:5: A.ssl.cipher.suites: "
         "write OpenSSL's cipher names, such as ECDHE-RSA-AES256-GCM-SHA384"),
        ("A.sasl.mechanism = GSSAPI", "f:5: A.sasl.mechanism: GSSAPI is not available; "
         "use PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER or AWS_MSK_IAM"),
        ("A.sasl.mechanism = AWS_MSK_IAM\nA.sasl.jaas.config = x.IAMLoginModule required "
         'awsRoleExternalId="x";', "f:6: A.sasl.jaas.config: "
         "option awsRoleExternalId is not available"),
        ("A.sasl.jaas.config = M required;", "f:5: A.sasl.jaas.config: "
         "needs sasl.mechanism, such as SCRAM-SHA-512, beside it"),
        (f"{JAAS}x.ScramLoginModule required;", "f:6: A.sasl.jaas.config: the login module is "
         "ScramLoginModule, the mechanism needs PlainLoginModule"),
        (f"{JAAS}x.PlainLoginModule required username=hunter2;", "f:6: A.sasl.jaas.config: "
         "option password is missing"),
        (f"{JAAS}x.PlainLoginModule required password=hunter2", "f:6: A.sasl.jaas.config: "
         "does not end with a semicolon"),
    ],
)  # fmt: skip
def test_one_mistake_gives_one_line(faults: Faults, more: str, fault: str) -> None:
    """A mistake gives one line with place, key, reason and fix, and never a secret."""
    found = faults(f"{more}\n", environ={"SECRET": "hunter2"})

    assert found == [fault]
    assert "hunter2" not in fault


def test_every_fault_is_reported_at_once_in_order(faults: Faults) -> None:
    """Loading reports every fault, in the order of the lines."""
    found = faults(
        "B.producer.acks = 0\ntasks.max = x\nA->X.enabled = true\nA->X.topics = y\ntopcs = z\n"
        "A.ssl.truststore.location = /t.jks\n"
    )

    assert [fault.split(":")[1] for fault in found] == ["5", "6", "7", "9", "10"]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "f: clusters is missing; add clusters = A, B"),
        ("clusters =", "f:1: clusters = : expected at least one alias"),
        (
            "clusters = A, B  # two of them",
            "f:1: clusters = A, B  # two of them: "
            "a comment needs a line of its own; move '# two of them' there",
        ),
        (
            "clusters = A B",
            "f:1: clusters = A B: alias 'A B' may have only letters, digits, '.', '_' and '-'",
        ),
        (
            "clusters = ssl, B",
            "f:1: clusters = ssl, B: "
            "alias 'ssl' is the beginning of other keys; choose another name",
        ),
        (
            "clusters = A, B\nA.bootstrap.servers = a:1\nA->B.enabled = true",
            "f: cluster B has no brokers; add B.bootstrap.servers = host:port",
        ),
        (
            "clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1",
            "f: no flow is enabled; add A->B.enabled = true",
        ),
    ],
)
def test_a_file_that_cannot_start(faults: Faults, text: str, fault: str) -> None:
    """An incomplete configuration is refused with the name of the missing key."""
    assert faults(text, base="") == [fault]


def test_a_misspelt_alias_is_corrected(faults: Faults) -> None:
    """A similar alias is suggested, in flows, in clusters and on the command line."""
    base = (
        "clusters = west, east\nwest.bootstrap.servers = w:1\neast.bootstrap.servers = e:1\n"
        "west->east.enabled = true\n"
    )

    assert faults("west->eats.enabled = true\neats.sasl.mechanism = PLAIN\n", base=base) == [
        "f:5: flow west->eats names the unknown cluster 'eats'; did you mean 'east'?",
        "f:6: eats.sasl.mechanism: 'eats' is not in clusters; did you mean 'east.sasl.mechanism'?",
    ]
    assert faults("", base=base, clusters=["eats"]) == [
        "--clusters: 'eats' is not in clusters; did you mean 'east'?"
    ]
    assert faults("", base=base, clusters=["west"]) == ["--clusters: no flow into west is enabled"]
