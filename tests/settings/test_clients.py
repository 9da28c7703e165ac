"""Client configurations: their content, and that librdkafka accepts them."""

import inspect
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from eos_mirror.core.run_identity import RunIdentity
from eos_mirror.settings import (
    Masked,
    Settings,
    clients,
    source_admin,
    source_consumer,
    target_admin,
    target_producer,
)
from eos_mirror.settings.clients import checkpoint_config, task_config
from tests.settings.conftest import NOWHERE, Faults, Load, construct

STORE = ("-keystore", "k.p12", "-storetype", "PKCS12", "-storepass", "hunter2")


def test_the_source_consumer_reads_exactly_once(load: Load) -> None:
    """The consumer is a static, cooperative member that never commits or resets by itself."""
    config = source_consumer(load("session.timeout.ms = 6000\n").flows[0], slot=3)

    assert (
        config.items()
        >= {
            "bootstrap.servers": "a:9092",
            "client.id": "eos-mirror.A.B|source-consumer-3",
            "group.id": "eos-mirror.A.B",
            "group.instance.id": "eos-mirror.A.B.3",
            "group.protocol": "classic",
            "partition.assignment.strategy": "cooperative-sticky",
            "isolation.level": "read_committed",
            "enable.auto.commit": "false",
            "enable.auto.offset.store": "false",
            "auto.offset.reset": "error",
            "enable.partition.eof": "true",
            "check.crcs": "true",
            "allow.auto.create.topics": "false",
            "session.timeout.ms": "6000",
            "heartbeat.interval.ms": "500",
            "max.poll.interval.ms": "60000",
            "fetch.queue.backoff.ms": "5",
            "queued.min.messages": "20000",
            "queued.max.messages.kbytes": "8192",
            "topic.metadata.refresh.interval.ms": "30000",
            "enable.metrics.push": "false",
        }.items()
    )


def test_the_target_producer_writes_exactly_once(load: Load) -> None:
    """The producer is idempotent with acks=all; the incarnation chooses its transactional id."""
    config = target_producer(load().flows[0])

    assert (
        config.items()
        >= {
            "bootstrap.servers": "b:9092",
            "client.id": "eos-mirror.A.B|target-producer",
            "enable.idempotence": "true",
            "acks": "all",
            "transaction.timeout.ms": "60000",
            "linger.ms": "2000",
            "batch.size": "800000",
            "batch.num.messages": "8000",
            "queue.buffering.max.messages": "2000000",
            "queue.buffering.max.kbytes": "2097151",
            "message.max.bytes": "268435456",
            "retry.backoff.ms": "5",
            "retry.backoff.max.ms": "1000",
            "enable.metrics.push": "false",
        }.items()
    )
    assert "transactional.id" not in config


def test_defaults_can_be_tuned(load: Load) -> None:
    """The configuration overrides tuned defaults; a client id becomes a prefix, as in MM2."""
    (flow,) = load(
        "B.producer.linger.ms = 20\nA.consumer.queued.min.messages = 5\nA.client.id = team\n"
    ).flows

    assert target_producer(flow)["linger.ms"] == "20"
    assert source_consumer(flow, slot=0)["queued.min.messages"] == "5"
    assert source_admin(flow)["client.id"] == "team|eos-mirror.A.B|source-admin"


def test_what_we_do_anyway_may_be_said(load: Load) -> None:
    """A line with the forced value is accepted, with Java's or librdkafka's name for it."""
    (flow,) = load(
        "consumer.isolation.level = read_committed\nA.consumer.enable.auto.commit = FALSE\n"
        "A.consumer.auto.offset.reset = none\nA.consumer.partition.assignment.strategy = "
        "org.apache.kafka.clients.consumer.CooperativeStickyAssignor\n"
        "B.producer.enable.idempotence = true\nB.producer.acks = -1\n"
        "B.producer.max.in.flight.requests.per.connection = 1\n"
    ).flows

    assert source_consumer(flow, slot=0)["auto.offset.reset"] == "error"
    assert target_producer(flow)["acks"] == "all"
    assert target_producer(flow)["max.in.flight.requests.per.connection"] == "1"


def test_what_is_forced_wins_even_unchecked(load: Load) -> None:
    """Forced values win over settings that the loader did not check."""
    (flow,) = load().flows
    clients = replace(
        flow.clients,
        source_consumer=Masked({"auto.offset.reset": "latest"}),
        target_producer=Masked({"acks": "0"}),
    )
    unchecked = replace(flow, clients=clients)

    assert source_consumer(unchecked, slot=0)["auto.offset.reset"] == "error"
    assert target_producer(unchecked)["acks"] == "all"


def everything_configured(settings: Settings) -> dict[str, Mapping[str, str]]:
    """Return every client configuration that the product makes, by the function that makes it."""
    (flow,), (pair, *_) = settings.flows, settings.heartbeats
    now = datetime.now(UTC)
    run = RunIdentity(started_at=now, host="h", pid=1, version="1", fingerprint="0a1b2c3d")
    given = {"flow": flow, "pair": pair, "slot": 0, "run": run}
    made: dict[str, Mapping[str, str]] = {}
    for name, make in inspect.getmembers(clients, inspect.isfunction):
        signature = inspect.signature(make)
        is_maker = signature.return_annotation in (Masked, dict[str, str])
        if make.__module__ == clients.__name__ and is_maker and not name.startswith("_"):
            made[name] = make(**{parameter: given[parameter] for parameter in signature.parameters})
    mirror = task_config(flow, slot=0, claims_topic_id="").clients
    checkpoint = checkpoint_config(flow).clients
    made |= {f"mirror task: {role.name}": getattr(mirror, role.name) for role in fields(mirror)}
    return made | {
        f"checkpoint task: {role.name}": getattr(checkpoint, role.name)
        for role in fields(checkpoint)
    }


AUTO_CREATE = "allow.auto.create.topics"
PREFIXES = [
    *(f"{owner}{role}." for owner in ("", "A.", "B.", "A->B.") for role in ("consumer", "admin")),
    *(f"A->B.{side}.{role}." for side in ("source", "target") for role in ("consumer", "admin")),
    *("producer.", "A.producer.", "B.producer.", "A->B.producer.override."),
]


@pytest.mark.parametrize("more", ["", *(f"{prefix}{AUTO_CREATE} = true\n" for prefix in PREFIXES)])
def test_no_client_creates_a_topic_by_asking_for_it(load: Load, more: str) -> None:
    """No configuration lets a client create a topic: a deleted topic must stay deleted."""
    made = everything_configured(load(more))

    assert {
        "source_admin",
        "target_admin",
        "heartbeat_producer",
        "mirror task: claims_consumer",
    } <= set(made), "not every client was found"
    assert [name for name, config in made.items() if config.get(AUTO_CREATE) != "false"] == []


def test_a_line_that_would_create_topics_is_noted(load: Load) -> None:
    """A line that would create topics has no effect and is noted; it is not an error."""
    settings = load(
        f"consumer.{AUTO_CREATE} = true\nA.admin.{AUTO_CREATE} = true\n"
        f"B.producer.{AUTO_CREATE} = TRUE\nB.admin.{AUTO_CREATE} = false\n"
    )

    noted = [note for note in settings.notes if AUTO_CREATE in note]
    nothing = "no effect: a topic is never created because a client asks for it"
    assert noted == [
        f"f:5: consumer.{AUTO_CREATE} = true: {nothing}",
        f"f:6: A.admin.{AUTO_CREATE} = true: {nothing}",
        f"f:7: B.producer.{AUTO_CREATE} = TRUE: {nothing}",
    ]


def test_java_names_become_librdkafkas(load: Load) -> None:
    """A setting with a Java name is translated to librdkafka's name and unit."""
    (flow,) = load(
        "B.producer.buffer.memory = 1048576\nB.producer.max.request.size = 5000\n"
        "B.request.timeout.ms = 20000\nA.consumer.fetch.max.wait.ms = 7\n"
        "A.metadata.max.age.ms = 9000\nA.receive.buffer.bytes = -1\n"
        "A.ssl.endpoint.identification.algorithm =\n"
    ).flows

    producer, consumer = target_producer(flow), source_consumer(flow, slot=0)
    assert producer["queue.buffering.max.kbytes"] == "1024"
    assert producer["message.max.bytes"] == "5000"
    assert producer["socket.timeout.ms"] == "20000"
    assert consumer["fetch.wait.max.ms"] == "7"
    assert consumer["topic.metadata.refresh.interval.ms"] == "9000"
    assert consumer["socket.receive.buffer.bytes"] == "0"
    assert consumer["ssl.endpoint.identification.algorithm"] == "none"


def test_no_request_outlives_its_transaction(load: Load) -> None:
    """Producer timeouts are capped at the transaction timeout, which librdkafka requires."""
    (flow,) = load(
        "request.timeout.ms = 120000\nB.producer.message.timeout.ms = 120000\n", base=NOWHERE
    ).flows

    assert target_producer(flow)["socket.timeout.ms"] == "60000"
    assert target_producer(flow)["message.timeout.ms"] == "60000"
    assert source_admin(flow)["socket.timeout.ms"] == "120000"
    construct(flow)


@pytest.mark.parametrize(("transaction_ms", "request_ms"), [(60_000, "10000"), (5_000, "5000")])
def test_a_lost_answer_is_not_waited_for_as_long_as_a_transaction(
    load: Load, transaction_ms: int, request_ms: str
) -> None:
    """By default, a request times out before its transaction does."""
    (flow,) = load(f"transaction.timeout.ms = {transaction_ms}\n", base=NOWHERE).flows

    assert target_producer(flow)["socket.timeout.ms"] == request_ms
    construct(flow)


def test_records_linger_for_less_than_they_are_tried(load: Load) -> None:
    """`linger.ms` stays below `message.timeout.ms`, which librdkafka requires."""
    (flow,) = load("B.producer.message.timeout.ms = 900\n", base=NOWHERE).flows

    assert target_producer(flow)["linger.ms"] == "450"
    construct(flow)


USER = 'required username="mirror" password="hunter2";'
OIDC = "https://127.0.0.1:1/token"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("", {}),
        ("session.timeout.ms = 600000\ntransaction.timeout.ms = 1000", {}),
        ("A.consumer.fetch.max.bytes = 200000000", {}),
        (
            f"security.protocol = sasl_plaintext\nsasl.mechanism = PLAIN\nsasl.jaas.config = "
            f"org.apache.kafka.common.security.plain.PlainLoginModule {USER}",
            {"sasl.mechanism": "PLAIN", "sasl.username": "mirror", "sasl.password": "hunter2"},
        ),
        (
            f"security.protocol = SASL_SSL\nsasl.mechanism = SCRAM-SHA-512\nsasl.jaas.config = "
            f"org.apache.kafka.common.security.scram.ScramLoginModule {USER}",
            {"sasl.mechanism": "SCRAM-SHA-512", "sasl.username": "mirror"},
        ),
        (
            "security.protocol = SASL_SSL\nsasl.mechanisms = SCRAM-SHA-256\n"
            "sasl.username = mirror\nsasl.password = hunter2",
            {"sasl.mechanism": "SCRAM-SHA-256", "sasl.password": "hunter2"},
        ),
        (
            "security.protocol = SASL_SSL\nsasl.mechanism = OAUTHBEARER\n"
            f"sasl.oauthbearer.token.endpoint.url = {OIDC}\n"
            "sasl.jaas.config = org.apache.kafka.common.security.oauthbearer."
            'OAuthBearerLoginModule required clientId="c" clientSecret="hunter2" scope="s" '
            'extension_logicalCluster="lkc" extension_pool="p";',
            {
                "sasl.oauthbearer.method": "oidc",
                "sasl.oauthbearer.client.id": "c",
                "sasl.oauthbearer.client.secret": "hunter2",
                "sasl.oauthbearer.scope": "s",
                "sasl.oauthbearer.extensions": "logicalCluster=lkc,pool=p",
                "sasl.oauthbearer.token.endpoint.url": OIDC,
            },
        ),
        (
            "security.protocol = SASL_SSL\nsasl.mechanism = OAUTHBEARER\n"
            f"sasl.oauthbearer.token.endpoint.url = {OIDC}\n"
            "sasl.oauthbearer.client.credentials.client.id = c\n"
            "sasl.oauthbearer.client.credentials.client.secret = hunter2\n"
            "sasl.oauthbearer.scope = s",
            {"sasl.oauthbearer.client.id": "c", "sasl.oauthbearer.scope": "s"},
        ),
    ],
)
def test_librdkafka_takes_every_client(load: Load, more: str, said: Mapping[str, str]) -> None:
    """Every kind of connection gives clients that librdkafka accepts, without a JAAS line."""
    (flow,) = load(f"{more}\n", base=NOWHERE).flows

    assert source_admin(flow).items() >= said.items()
    assert "sasl.jaas.config" not in target_producer(flow)
    construct(flow)


IAM = "software.amazon.msk.auth.iam"


@pytest.mark.parametrize(
    "lines",
    [
        f"sasl.mechanism = AWS_MSK_IAM\nsasl.jaas.config = {IAM}.IAMLoginModule required "
        'awsProfileName="team" awsRoleArn="arn" awsRoleSessionName="s" awsDebugCreds="true";\n'
        f"sasl.client.callback.handler.class = {IAM}.IAMClientCallbackHandler",
        "sasl.mechanism = OAUTHBEARER\nsasl.jaas.config = org.apache.kafka.common.security."
        "oauthbearer.OAuthBearerLoginModule required "
        'awsProfileName="team" awsRoleArn="arn" awsRoleSessionName="s";\n'
        f"sasl.login.callback.handler.class = {IAM}.IAMOAuthBearerLoginCallbackHandler\n"
        f"sasl.client.callback.handler.class = {IAM}.IAMOAuthBearerLoginCallbackHandler",
    ],
)
def test_both_ways_to_ask_for_iam_of_msk_mean_the_same(load: Load, lines: str) -> None:
    """The configuration is text that a task can be given; `kafka/aws_msk_iam.py` signs there."""
    settings = load(f"{lines}\n")

    assert (
        source_admin(settings.flows[0]).items()
        >= {
            "sasl.mechanism": "AWS_MSK_IAM",
            "aws.msk.iam.profile": "team",
            "aws.msk.iam.role.arn": "arn",
            "aws.msk.iam.role.session.name": "s",
        }.items()
    )
    assert not any("callback" in note for note in settings.notes)


@pytest.fixture
def certificates(tmp_path: Path) -> Path:
    """Create a key and its certificate in k.p12 and k.pem, and the certificate alone in ca.pem."""

    def run(*command: str) -> None:
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=60)

    run("keytool", "-genkeypair", "-keyalg", "EC", "-alias", "k", "-dname", "CN=k", *STORE)
    run("openssl", "pkcs12", "-in", "k.p12", "-nodes", "-passin", "pass:hunter2", "-out", "k.pem")
    run("openssl", "pkcs12", "-in", "k.p12", "-nokeys", "-passin", "pass:hunter2", "-out", "ca.pem")
    return tmp_path


def inline(path: Path, label: str) -> str:
    """Return a PEM block on one line, as Java accepts it in a properties file."""
    text = path.read_text(encoding="utf-8")
    begin, end = f"-----BEGIN {label}-----", f"-----END {label}-----"
    body = text.partition(begin)[2].partition(end)[0]
    return f"{begin} {' '.join(body.split())} {end}"


def pem_files(path: Path) -> str:
    return (
        f"ssl.truststore.type=PEM\nssl.truststore.location={path}/ca.pem\n"
        f"ssl.keystore.type=PEM\nssl.keystore.location={path}/k.pem\n"
    )


def pem_values(path: Path) -> str:
    certificate = inline(path / "ca.pem", "CERTIFICATE")
    return (
        f"ssl.truststore.type=PEM\nssl.truststore.certificates={certificate}\n"
        f"ssl.keystore.type=PEM\nssl.keystore.certificate.chain={certificate}\n"
        f"ssl.keystore.key={inline(path / 'k.pem', 'PRIVATE KEY')}\n"
    )


def pkcs12(path: Path) -> str:
    return (
        f"ssl.keystore.type=PKCS12\nssl.keystore.location={path}/k.p12\n"
        f"ssl.keystore.password=hunter2\nssl.ca.location={path}/ca.pem\n"
    )


@pytest.mark.parametrize("lines", [pem_files, pem_values, pkcs12])
def test_librdkafka_reads_the_keys(
    load: Load, certificates: Path, lines: Callable[[Path], str]
) -> None:
    """OpenSSL reads PEM files, PEM on one line and PKCS12 after the translation."""
    (flow,) = load(f"security.protocol = SSL\n{lines(certificates)}", base=NOWHERE).flows

    construct(flow)
    assert "hunter2" not in repr(source_consumer(flow, slot=0))


def test_oauth_names_what_is_missing(faults: Faults) -> None:
    """Each missing OAuth setting is one fault at the line of the mechanism."""
    assert faults("A.sasl.mechanism = OAUTHBEARER\n") == [
        f"f:5: A.sasl.mechanism: OAUTHBEARER needs sasl.oauthbearer.{key}"
        for key in ("token.endpoint.url", "client.id", "client.secret")
    ]


def test_configurations_are_masked(load: Load) -> None:
    """The client configurations hide their secrets when they are logged."""
    (flow,) = load("sasl.password = hunter2\n").flows
    configs = (
        source_consumer(flow, slot=0),
        target_producer(flow),
        source_admin(flow),
        target_admin(flow),
    )

    assert all(isinstance(config, Masked) for config in configs)
    assert "hunter2" not in str(configs)
