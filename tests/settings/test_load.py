"""Loading settings from a file: defaults, types, origins, precedence and notes."""

import pickle
import re
from datetime import timedelta
from pathlib import Path

import pytest

from eos_mirror.core.flow import Flow
from eos_mirror.settings import (
    BoundaryMode,
    ConnectorType,
    PolicyClass,
    Runtime,
    load_settings,
)
from eos_mirror.settings.plugins import policy_of
from eos_mirror.settings.values import NameFormat
from tests.settings.conftest import BASE, Load

EXAMPLE = Path(__file__).parents[2] / "config" / "mm2.properties"


def test_four_lines_are_enough(load: Load) -> None:
    """Four lines are enough; every other setting has its documented default and type."""
    settings = load()
    (flow,) = settings.flows

    assert [(c.alias, c.bootstrap_servers) for c in settings.clusters] == [
        ("A", ("a:9092",)),
        ("B", ("b:9092",)),
    ]
    assert settings.runtime is Runtime.SPARK
    assert settings.spark == {}
    assert settings.notes == ()
    assert settings.summary_interval == timedelta(minutes=1)
    assert settings.shutdown_timeout == timedelta(seconds=10)
    assert flow.flow == Flow("A", "B")
    assert [p.pattern for p in flow.topics] == [".*"]
    assert [p.pattern for p in flow.topics_exclude] == [
        r"mm2.*\.internal",
        r".*\.replica",
        "__.*",
    ]
    assert flow.heartbeats_replicated
    assert flow.replication_policy == PolicyClass.DEFAULT
    assert flow.replication_policy_separator == "."
    assert flow.internal_topic_separator_enabled
    assert flow.replication_factor == 2
    assert flow.tasks_max == 1
    assert flow.refresh_topics
    assert flow.refresh_topics_interval == timedelta(minutes=10)
    assert flow.admin_timeout == timedelta(minutes=1)
    assert flow.connector.type is ConnectorType.SINK
    assert flow.exactly_once
    assert flow.transaction_boundary is BoundaryMode.INTERVAL
    assert flow.transaction_interval == timedelta(milliseconds=100)
    assert flow.transaction_bytes == 256 * 1024 * 1024
    assert flow.transaction_records == 1_000_000
    assert flow.transaction_timeout == timedelta(minutes=1)
    assert flow.session_timeout == timedelta(seconds=10)
    assert flow.start_position == "earliest"
    assert flow.internal_topic_replication_factor == 3
    assert flow.internal_topic_min_insync_replicas == 2
    assert flow.offsets_keepalive == timedelta(days=1)
    assert flow.name_formats == (NameFormat.LEGACY,)
    assert set(settings.origins.values()) == {"f:2", "f:3", "f:4", "default"}


def test_the_example_file_loads() -> None:
    """config/mm2.properties loads, and none of its lines is without effect."""
    settings = load_settings(EXAMPLE, environ={})

    assert [str(flow.flow) for flow in settings.flows] == ["A->B"]
    assert settings.notes == ()


def test_the_commented_lines_of_the_example_load_too(tmp_path: Path) -> None:
    """Every commented line of the example is valid when it is uncommented."""
    text = EXAMPLE.read_text(encoding="utf-8")
    path = tmp_path / "f"
    path.write_text(re.sub(r"(?m)^# (\S+ = |    )", r"\1", text), encoding="utf-8")

    settings = load_settings(path, environ={"A_PASSWORD": "secret"})

    (flow,) = settings.flows
    assert flow.replication_policy == PolicyClass.IDENTITY
    assert flow.clients.source_consumer["sasl.password"] == "secret"
    assert settings.spark == {"spark.master": "spark://localhost:7077"}


@pytest.mark.parametrize(
    ("more", "tasks_max", "origin"),
    [
        ("tasks.max = 2\n", 2, "f:5"),
        ("B.tasks.max = 3\ntasks.max = 2\n", 3, "f:5"),
        ("tasks.max = 2\nB.tasks.max = 3\nA->B.tasks.max = 4\n", 4, "f:7"),
        ("A.tasks.max = 5\n", 1, "default"),
        ("tasks.max = 2\ntasks.max = 6\n", 6, "f:6"),
    ],
)
def test_flow_beats_cluster_beats_top_level(
    load: Load, more: str, tasks_max: int, origin: str
) -> None:
    """
    A flow's line overrides its target cluster's, which overrides the top level's.

    The last duplicate wins.
    """
    settings = load(more)

    assert settings.flows[0].tasks_max == tasks_max
    assert settings.origins["A->B.tasks.max"] == origin


@pytest.mark.parametrize(
    ("more", "group_min_bytes"),
    [
        ("consumer.fetch.min.bytes = 1\n", "1"),
        ("consumer.fetch.min.bytes = 1\nA->B.consumer.fetch.min.bytes = 2\n", "2"),
        ("A->B.consumer.fetch.min.bytes = 2\nA.consumer.fetch.min.bytes = 3\n", "3"),
        ("A.consumer.fetch.min.bytes = 3\nA->B.source.consumer.fetch.min.bytes = 4\n", "4"),
        ("B.consumer.fetch.min.bytes = 5\n", None),
    ],
)
def test_consumer_settings_in_the_order_of_mm2(
    load: Load, more: str, group_min_bytes: str | None
) -> None:
    """`A.consumer.x` beats `A->B.consumer.x`; `A->B.source.consumer.x` beats both."""
    (flow,) = load(more).flows

    assert flow.clients.source_consumer.get("fetch.min.bytes") == group_min_bytes


@pytest.mark.parametrize(
    ("more", "linger"),
    [
        ("producer.linger.ms = 1\n", "1"),
        ("producer.linger.ms = 1\nB.producer.linger.ms = 2\n", "2"),
        ("A->B.producer.override.linger.ms = 3\nB.producer.linger.ms = 2\n", "3"),
        ("A.producer.linger.ms = 4\n", None),
        ("A->B.producer.linger.ms = 5\n", None),
    ],
)
def test_producer_settings_in_the_order_of_mm2(load: Load, more: str, linger: str | None) -> None:
    """The data producer has the target's settings; `producer.override.` of a flow wins."""
    (flow,) = load(more).flows

    assert flow.clients.target_producer.get("linger.ms") == linger


def test_security_is_inherited_by_every_client(load: Load) -> None:
    """Client settings override the cluster's, which override the top level's, on each side."""
    (flow,) = load(
        "security.protocol = SSL\nB.security.protocol = PLAINTEXT\n"
        "A.admin.security.protocol = SASL_SSL\n"
        "A->B.source.cluster.ssl.ca.location = /ca\n"
    ).flows
    clients = flow.clients

    assert clients.source_consumer["security.protocol"] == "SSL"
    assert clients.source_admin["security.protocol"] == "SASL_SSL"
    assert clients.target_producer["security.protocol"] == "PLAINTEXT"
    assert clients.target_admin["security.protocol"] == "PLAINTEXT"
    assert clients.source_consumer["ssl.ca.location"] == "/ca"
    assert "ssl.ca.location" not in clients.target_admin


def test_only_enabled_flows_into_the_wanted_clusters(load: Load) -> None:
    """`clusters` selects the flows by their target, as `--clusters` of MirrorMaker 2 does."""
    more = "B->A.enabled = TRUE\nclusters = A, B, C\nC.bootstrap.servers = c:1\nA->C.enabled=false"

    assert [str(f.flow) for f in load(more).flows] == ["B->A", "A->B"]
    assert [str(f.flow) for f in load(more, clusters=["B"]).flows] == ["A->B"]


@pytest.mark.parametrize(
    "aliases", [("us-west", "us-west-2"), ("us", "us.west"), ("source", "target")]
)
def test_aliases_that_begin_alike_are_told_apart(load: Load, aliases: tuple[str, str]) -> None:
    """A line belongs to the longest alias that fits, even if MM2 has a prefix of that name."""
    a, b = aliases
    settings = load(
        f"clusters = {a}, {b}\n{a}.bootstrap.servers = a:1\n{b}.bootstrap.servers = b:1\n"
        f"{a}->{b}.enabled = true\n{a}->{b}.tasks.max = 3\n"
        f"{a}.consumer.fetch.min.bytes = 7\n{b}.consumer.fetch.min.bytes = 8\n",
        base="",
    )
    (flow,) = settings.flows

    assert flow.tasks_max == 3
    assert flow.clients.source_consumer["fetch.min.bytes"] == "7"
    assert [c.bootstrap_servers for c in settings.clusters] == [("a:1",), ("b:1",)]


def test_values_are_typed(load: Load) -> None:
    """Durations, sizes, enumerations, patterns and positions have the types of the code."""
    (flow,) = load(
        "transaction.boundary = POLL\nA->B.topics =\nreplication.factor = -1\n"
        "start.position = timestamp:2025-01-31T12:00:00+02:00\n"
        "replication.policy.class=org.apache.kafka.connect.mirror.IdentityReplicationPolicy\n"
        "refresh.topics.interval.seconds = 5  \n"
        "metric.names.formats = new, legacy\n"
    ).flows

    assert flow.transaction_boundary is BoundaryMode.POLL
    assert flow.topics == ()
    assert flow.replication_factor is None
    assert flow.start_position == "timestamp:2025-01-31T10:00:00+00:00"
    assert flow.replication_policy == PolicyClass.IDENTITY
    assert flow.refresh_topics_interval == timedelta(seconds=5)
    assert flow.name_formats == (NameFormat.NEW, NameFormat.LEGACY)


def test_a_pattern_matches_whole_ascii_names(load: Load) -> None:
    """Patterns match whole names, and `\\d` is an ASCII digit, as in Java."""
    (flow,) = load("topics = a\\\\d, b.*\n").flows

    assert [bool(p.fullmatch("a1")) for p in flow.topics] == [True, False]
    assert not flow.topics[0].fullmatch("a\u0661")


def test_internal_topics_follow_mm2s_replication_factor(load: Load) -> None:
    """MM2's replication factor applies to internal topics and caps min.insync.replicas."""
    settings = load("offset-syncs.topic.replication.factor = 1\n")
    (flow,) = settings.flows

    assert flow.internal_topic_replication_factor == 1
    assert flow.internal_topic_min_insync_replicas == 1
    assert settings.origins["A->B.internal.topic.replication.factor"] == "f:5"
    assert settings.notes == ()


def test_environment_is_read_only_where_a_value_is_used(load: Load) -> None:
    """A variable may be missing if only flows that do not run here use it; values are trimmed."""
    more = "A.sasl.password = ${env:P}\nA.tasks.max = ${env:NONE}\nC.sasl.password=${env:NONE}\n"
    settings = load(
        f"clusters = A, B, C\nC.bootstrap.servers = c:1\nC->A.enabled = true\n{more}",
        clusters=["B"],
        environ={"P": " hunter2\n"},
    )

    assert settings.flows[0].clients.source_consumer["sasl.password"] == "hunter2"


def test_a_client_setting_knows_where_it_came_from(load: Load) -> None:
    """The origin of a client setting is listed with the flow's prefix."""
    origins = load("A.consumer.fetch.min.bytes = 1\nB.producer.linger.ms = 2\n").origins

    assert origins["A->B.source.consumer.fetch.min.bytes"] == "f:5"
    assert origins["A->B.producer.override.linger.ms"] == "f:6"


@pytest.mark.parametrize(
    ("line", "note"),
    [
        (
            "offset-syncs.topic.location = target",
            "f:5: offset-syncs.topic.location: accepted, no effect in this version "
            "(offset syncs are on the target)",
        ),
        (
            "B.offset.storage.replication.factor = 1",
            "f:5: B.offset.storage.replication.factor: "
            "accepted, no effect in this version (Connect worker)",
        ),
        (
            "A->B.producer.linger.ms = 1",
            "f:5: A->B.producer.linger.ms: no effect: "
            "the data producer is set by A->B.producer.override.linger.ms",
        ),
        (
            "A->B.security.protocol = SSL",
            "f:5: A->B.security.protocol: no effect: write "
            "A->B.source.consumer.security.protocol or A->B.producer.override.security.protocol",
        ),
        (
            "A.producer.linger.ms = 1",
            "f:5: A.producer.linger.ms: no effect: no client of an enabled flow uses it",
        ),
        (
            "A.consumer.max.poll.records = 1",
            "f:5: A.consumer.max.poll.records: no effect: librdkafka has no such setting",
        ),
        (
            "runtime = local\nruntime = spark",
            "f:5: runtime: no effect: set again in line 6",
        ),
        (
            "replication.policy.separator = A",
            "flow A->B: alias 'A' contains the separator 'A': "
            "the name of a remote topic does not show its source",
        ),
    ],
)
def test_a_line_without_effect_is_noted(load: Load, line: str, note: str) -> None:
    """A line of MirrorMaker 2 that has no effect is accepted, with one note that says so."""
    assert load(f"{line}\n").notes == (note,)


def test_audits_have_the_spark_of_the_mirror_but_for_what_is_said_of_them(load: Load) -> None:
    """`verify.spark.` settings override those of the mirror, in any order of the lines."""
    settings = load("verify.spark.master = local[2]\nspark.master = spark://a:1\nspark.x = 1\n")

    assert settings.spark == {"spark.master": "spark://a:1", "spark.x": "1"}
    assert settings.verify_spark == {"spark.master": "local[2]", "spark.x": "1"}


def test_audits_need_no_spark_where_the_mirror_has_none_unless_they_are_said_to(
    load: Load,
) -> None:
    """A mirror without Spark is verified without Spark, unless `verify.spark.` is set."""
    assert load("").verify_spark == {}
    assert load("runtime = local\nspark.x = 1\n").verify_spark is None
    audits = load("runtime = local\nverify.spark.master = local[2]\n").verify_spark
    assert audits == {"spark.master": "local[2]"}


def test_spark_settings_are_passed_on(load: Load) -> None:
    """Spark settings are passed on as written, with tokens resolved."""
    settings = load(
        "spark.executor.cores = 2\nspark.x.secret = ${env:S}\n", environ={"S": "hunter2"}
    )

    assert settings.spark == {"spark.executor.cores": "2", "spark.x.secret": "hunter2"}


def test_no_secret_is_in_a_repr(load: Load) -> None:
    """repr and str of all settings mask every secret; pickling keeps it."""
    settings = load(
        "sasl.mechanism = PLAIN\nsecurity.protocol = SASL_SSL\n"
        'sasl.jaas.config = PlainLoginModule required username="u" password="hunter2";\n'
        "ssl.key.password = hunter2\nB.producer.sasl.oauthbearer.client.secret = hunter2\n"
        "spark.authenticate.secret = hunter2\n"
    )

    assert "hunter2" not in f"{settings!r}{settings}{settings.flows[0].clients}{settings.notes}"
    assert "hunter2" not in str(settings.origins)
    assert settings.flows[0].clients.source_consumer["sasl.password"] == "hunter2"
    assert pickle.loads(pickle.dumps(settings)) == settings  # noqa: S301 (our own bytes)


def test_every_key_of_mm2_is_accepted(load: Load) -> None:
    """A configuration with MirrorMaker 2's documented keys loads without a fault."""
    more = (
        "topics = .*\ngroups = .*\nA->B.groups.exclude = x\nemit.checkpoints.enabled = true\n"
        "checkpoints.topic.replication.factor=1\nheartbeats.topic.replication.factor=1\n"
        "offset-syncs.topic.replication.factor=1\noffset.storage.replication.factor=1\n"
        "status.storage.replication.factor=1\nconfig.storage.replication.factor=1\n"
        "sync.topic.acls.enabled = false\nemit.heartbeats.interval.seconds = 5\n"
        "consumer.poll.timeout.ms = 1000\ndedicated.mode.enable.internal.rest = true\n"
        "listeners = http://localhost:8083\nB.exactly.once.source.support = enabled\n"
        "key.converter = org.apache.kafka.connect.converters.ByteArrayConverter\n"
        "config.providers = file\n"
        "config.providers.file.class = org.apache.kafka.common.config.provider.FileConfigProvider\n"
        "topic.filter.class = org.apache.kafka.connect.mirror.DefaultTopicFilter\n"
        "transforms =\nA->B.use.defaults.from = source\nB.group.id = x\n"
        "A->B.sync.group.offsets.enabled = true\n"
        "A->B.replication.policy.class = org.apache.kafka.connect.mirror.DefaultReplicationPolicy\n"
    )

    assert load(more).flows
    assert BASE.count("\n") == 4, "the line numbers in these tests count from it"


def test_every_pair_has_heartbeats_unless_told_otherwise(load: Load) -> None:
    """
    As in MirrorMaker 2, every pair has heartbeats, even without an enabled flow.

    The most specific line decides.
    """
    pairs = load("").heartbeats
    assert [str(pair.flow) for pair in pairs] == ["B->A", "A->B"]
    assert all(pair.interval == timedelta(seconds=1) for pair in pairs)
    assert all(pair.replication_factor == 3 for pair in pairs)

    lines = "emit.heartbeats.enabled = false\nB->A.emit.heartbeats.enabled = true\n"
    (pair,) = load(f"{lines}A.heartbeats.topic.replication.factor = 1\n").heartbeats
    assert (str(pair.flow), pair.replication_factor) == ("B->A", 1)
    assert pair.client["bootstrap.servers"] == "a:9092"


def test_heartbeats_go_only_into_the_clusters_that_were_asked_for(load: Load) -> None:
    """With `--clusters`, heartbeats go only to these clusters."""
    assert [str(pair.flow) for pair in load("", clusters=["B"]).heartbeats] == ["A->B"]


def test_topics_of_the_map_are_named_by_it(load: Load) -> None:
    """A topic of the map is named by the map, all others by the replication policy."""
    lines = "replication.policy.topics.map = orders:sales, raw-(.*):lake.$1\n"
    policy = policy_of(load(lines).flows[0])

    assert policy.format_remote_topic("A", "orders") == "sales"
    assert policy.format_remote_topic("A", "raw-clicks") == "lake.clicks"
    assert policy.format_remote_topic("A", "other") == "A.other"
