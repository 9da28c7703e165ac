"""Lines that MirrorMaker 2 accepts start here, too, and mean what they mean there."""

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import pytest

from eos_mirror.settings import PolicyClass
from eos_mirror.settings.plugins import policy_of
from tests.settings.conftest import Faults, Load

CONSUMER, PRODUCER, ADMIN = "source_consumer", "target_producer", "source_admin"


@pytest.mark.parametrize(
    ("line", "role", "config", "note"),
    [
        ("A.consumer.fetch.max.bytes = 2147483647", CONSUMER, {"fetch.max.bytes": "2147483135"},
         "f:5: A.consumer.fetch.max.bytes: 2147483135 is used, because fetch.max.bytes of "
         "librdkafka is 0 to 2147483135"),
        ("A.consumer.fetch.min.bytes = 0", CONSUMER, {"fetch.min.bytes": "1"},
         "f:5: A.consumer.fetch.min.bytes: 1 is used, because fetch.min.bytes of librdkafka is 1 "
         "to 100000000"),
        ("A.retry.backoff.ms = 0", ADMIN, {"retry.backoff.ms": "1"},
         "f:5: A.retry.backoff.ms: 1 is used, because retry.backoff.ms of librdkafka is 1 to "
         "300000"),
        ("B.producer.max.request.size = 2147483647", PRODUCER, {"message.max.bytes": "1000000000"},
         "f:5: B.producer.max.request.size: 1000000000 is used, because message.max.bytes of "
         "librdkafka is 1000 to 1000000000"),
        ("A.connections.max.idle.ms = -1", ADMIN, {"connections.max.idle.ms": "0"}, None),
        ("A.client.dns.lookup = default", ADMIN, {"client.dns.lookup": "use_all_dns_ips"}, None),
        ("B.producer.linger.ms = 0.5", PRODUCER, {"linger.ms": "0.5"}, None),
        ("B.producer.override.linger.ms = 7", PRODUCER, {"linger.ms": "7"}, None),
        ("producer.override.linger.ms = 7", PRODUCER, {"linger.ms": "7"}, None),
        ("A.consumer.auto.offset.reset = earliest", CONSUMER, {}, None),
        ("A.consumer.bootstrap.servers = a:9092", CONSUMER, {"bootstrap.servers": "a:9092"}, None),
        ("A.consumer.foo.bar = 1", CONSUMER, {},
         "f:5: A.consumer.foo.bar: no effect: no Kafka client has this setting"),
        ("A.consumer.group.id = g", CONSUMER, {}, "f:5: A.consumer.group.id = g: no effect: "
         "eos_mirror chooses it, one for each flow and task"),
        ("A.consumer.enable.auto.commit = true", CONSUMER, {}, "f:5: A.consumer.enable.auto.commit "
         "= true: no effect: only eos_mirror commits offsets"),
        ("A.consumer.group.protocol = consumer", CONSUMER, {}, "f:5: A.consumer.group.protocol = "
         "consumer: no effect: tasks are static members of a cooperative-sticky classic group"),
        ("A.consumer.max.request.size = 5", CONSUMER, {}, "f:5: A.consumer.max.request.size: "
         "no effect: only a producer has this setting"),
        ("fetch.min.bytes = 9", CONSUMER, {}, "f:5: fetch.min.bytes: no effect: "
         "write consumer.fetch.min.bytes"),
        ("A.max.poll.records = 9", CONSUMER, {}, "f:5: A.max.poll.records: no effect: "
         "librdkafka has no such setting"),
        ("B.max.request.size = 9", PRODUCER, {}, "f:5: B.max.request.size: no effect: "
         "write B.producer.max.request.size"),
        ("A->B.client.rack = r", CONSUMER, {}, "f:5: A->B.client.rack: no effect: "
         "write A->B.source.consumer.client.rack or A->B.producer.override.client.rack"),
        ("A.tasks.max = 4", CONSUMER, {}, "f:5: A.tasks.max: no effect: "
         "no flow into A is enabled"),
        ("A.admin.partition.assignment.strategy = x.Y", ADMIN, {},
         "f:5: A.admin.partition.assignment.strategy: no effect: only a consumer has this setting"),
    ],
)  # fmt: skip
def test_a_client_setting_of_java_is_accepted(
    load: Load, line: str, role: str, config: Mapping[str, str], note: str | None
) -> None:
    """A value that librdkafka would refuse is replaced; a note says so, and nothing else does."""
    settings = load(line)

    found = getattr(settings.flows[0].clients, role)
    unchanged = getattr(load().flows[0].clients, role)
    assert found == {**unchanged, **config}
    assert settings.notes == (() if note is None else (note,))


def test_of_two_override_lines_the_one_of_the_flow_counts(load: Load) -> None:
    """MirrorMaker 2 reads the one of the flow; the other one is what people write besides."""
    producer = load(
        "B.producer.linger.ms = 1\nB.producer.override.linger.ms = 2\n"
        "A->B.producer.override.linger.ms = 3"
    ).flows[0].clients.target_producer  # fmt: skip

    assert producer["linger.ms"] == "3"


@pytest.mark.parametrize(
    ("line", "attribute", "key"),
    [
        ("A.consumer.session.timeout.ms = 30000", "session_timeout", "session.timeout.ms"),
        ("B.producer.transaction.timeout.ms = 30000", "transaction_timeout",
         "transaction.timeout.ms"),
    ],
)  # fmt: skip
def test_a_client_setting_that_is_one_of_the_flow_is_taken_as_such(
    load: Load, line: str, attribute: str, key: str
) -> None:
    """MirrorMaker 2 knows it only for the client; a line of the flow itself is stronger."""
    said = line.partition(" ")[0]
    taken, both = load(line), load(f"{line}\nA->B.{key} = 20000")

    assert getattr(taken.flows[0], attribute) == timedelta(seconds=30)
    assert taken.notes == (f"f:5: {said}: taken as {key} of flow A->B",)
    assert taken.origins[f"A->B.{key}"] == "f:5"
    assert getattr(both.flows[0], attribute) == timedelta(seconds=20)
    assert both.notes == (f"f:5: {said}: no effect: A->B.{key} in line 6 counts",)
    assert load(f"{line}\nA->B.{key} = 30000").notes == ()


def test_the_brokers_may_decide_every_replication_factor(load: Load) -> None:
    """-1 is what people write for one broker and for hundreds."""
    names = ("offset-syncs", "checkpoints", "heartbeats")
    settings = load(
        "replication.factor = -1\n"
        + "".join(f"{name}.topic.replication.factor = -1\n" for name in names)
    )
    (flow,) = settings.flows

    assert flow.replication_factor is None
    assert (flow.groups.replication_factor, flow.groups.syncs_replication_factor) == (None, None)
    assert {pair.replication_factor for pair in settings.heartbeats} == {None}
    assert (flow.internal_topic_replication_factor, flow.min_in_sync) == (None, {})
    assert settings.notes == ()


@pytest.mark.parametrize(
    "name",
    [
        "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
        "io.strimzi.kafka.connect.mirror.IdentityReplicationPolicy",
    ],
)
def test_the_identity_policy_needs_no_separator(load: Load, name: str) -> None:
    """Real configurations of it have an empty one; heartbeats get the alias alone before them."""
    (flow,) = load(f"replication.policy.class = {name}\nreplication.policy.separator =").flows
    policy = policy_of(flow)

    assert flow.replication_policy == PolicyClass.IDENTITY
    assert policy.format_remote_topic("A", "orders") == "orders"
    assert policy.format_remote_topic("A", "heartbeats") == "Aheartbeats"
    assert policy.topic_source("orders") == "A"


@pytest.mark.parametrize(
    "lines",
    [
        "source.cluster.alias = A\n",
        "source.cluster.alias =\nreplication.policy.class = IdentityReplicationPolicy\n",
    ],
)
def test_an_alias_that_names_the_same_topics_is_accepted(load: Load, lines: str) -> None:
    """MirrorMaker 2 names remote topics after it, but not with the identity policy."""
    assert load(lines).notes == (
        "f:5: source.cluster.alias: accepted, no effect in this version (follows from the flow)",
    )


PROVIDER = "org.apache.kafka.common.config.provider"


def test_a_config_provider_is_known_by_its_class_under_any_name(load: Load, tmp_path: Path) -> None:
    """One class may have several names, and a usual name may have another class."""
    (tmp_path / "s.properties").write_text("user = me\n", encoding="utf-8")
    (tmp_path / "client").write_text("name", encoding="utf-8")
    settings = load(
        "config.providers = secrets, file, e, unused\n"
        f"config.providers.secrets.class = {PROVIDER}.FileConfigProvider\n"
        f"config.providers.file.class = {PROVIDER}.DirectoryConfigProvider\n"
        f"config.providers.e.class = {PROVIDER}.EnvVarConfigProvider\n"
        "config.providers.unused.class = io.strimzi.kafka.KubernetesConfigMapConfigProvider\n"
        f"A.client.id = ${{secrets:{tmp_path}/s.properties:user}}-${{e:E}}\n"
        f"B.client.id = ${{file:{tmp_path}:client}}\n",
        environ={"E": "e"},
    )
    clients = settings.flows[0].clients

    assert clients.source_admin["client.id"] == "me-e"
    assert clients.target_admin["client.id"] == "name"
    assert settings.notes == ()


def test_a_provider_of_another_class_is_one_fault_however_often_it_is_used(faults: Faults) -> None:
    """A Java class cannot be loaded; the line that names it is what has to change."""
    assert faults(
        "config.providers = vault\nconfig.providers.vault.class = com.example.VaultProvider\n"
        "A.sasl.jaas.config = ${vault:a:b}\nB.sasl.jaas.config = ${vault:a:c}\n"
    ) == [
        "f:6: config.providers.vault.class = com.example.VaultProvider: this class cannot be "
        "loaded; there are FileConfigProvider, DirectoryConfigProvider and EnvVarConfigProvider"
    ]
