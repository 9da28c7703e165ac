"""Strimzi's resources become a configuration that loads, and no field is dropped in silence."""

import sys
from pathlib import Path

import pytest

from eos_mirror.errors import ConfigError
from eos_mirror.settings import PolicyClass
from eos_mirror.settings.converted import settle
from eos_mirror.settings.strimzi import convert_resources
from tests.settings.conversion import from_strimzi

pytest.importorskip("yaml", reason="PyYAML is not installed")

HEAD = "kind: KafkaMirrorMaker2\nmetadata: {name: mirror, namespace: kafka}\n"
OLD = f"""\
apiVersion: kafka.strimzi.io/v1beta2
{HEAD}spec:
  version: 3.9.0
  replicas: 3
  connectCluster: east
  clusters:
  - {{alias: west, bootstrapServers: 'west:9092'}}
  - alias: east
    bootstrapServers: east:9092,east:9093
    config:
      offset.storage.replication.factor: -1
      producer.compression.type: zstd
  mirrors:
  - sourceCluster: west
    targetCluster: east
    topicsPattern: 'orders\\.[a-z]{{1,3}}, bills'
    topicsExcludePattern: '.*-tmp'
    groupsPattern: shop.*
    sourceConnector:
      tasksMax: 5
      autoRestart: {{enabled: true}}
      config:
        replication.factor: -1
        refresh.topics.interval.seconds: 30
        sync.topic.acls.enabled: "false"
        replication.policy.class: org.apache.kafka.connect.mirror.IdentityReplicationPolicy
        offset.lag.max: 100
    checkpointConnector:
      tasksMax: 5
      config:
        sync.group.offsets.enabled: true
        replication.policy.class: org.apache.kafka.connect.mirror.IdentityReplicationPolicy
    heartbeatConnector:
      config: {{heartbeats.topic.replication.factor: 1}}
"""
SECURE = f"""\
apiVersion: kafka.strimzi.io/v1
{HEAD}spec:
  target:
    alias: east
    bootstrapServers: east:9093
    groupId: g
    configStorageTopic: c
    tls: {{trustedCertificates: [{{secretName: east-ca, pattern: '*.crt'}}]}}
    authentication:
      type: scram-sha-512
      username: mirror
      passwordSecret: {{secretName: east-user, password: password}}
    config: {{request.timeout.ms: 40000}}
  mirrors:
  - source:
      alias: west.1
      bootstrapServers: west:9093
      tls:
        trustedCertificates:
        - {{secretName: west-ca, certificate: ca.crt}}
        - {{secretName: west-ca, certificate: old.crt}}
      authentication:
        type: tls
        certificateAndKey: {{secretName: west-user, certificate: user.crt, key: user.key}}
    sourceConnector: {{}}
    topicsPattern: a
  - source: {{alias: north-2, bootstrapServers: 'north:9092'}}
    sourceConnector: {{state: stopped}}
    checkpointConnector: {{config: {{emit.checkpoints.interval.seconds: 9}}}}
    topicsPattern: b
"""
SMALL = f"""\
{HEAD}spec:
  target: {{alias: B, bootstrapServers: 'b:9092', CLUSTER}}
  mirrors:
  - source: {{alias: A, bootstrapServers: 'a:9092'}}
    sourceConnector: {{config: {{CONFIG}}}}
    checkpointConnector: {{}}
"""
"""One line for each test in place of the words in capitals."""


def small(config: str = "", cluster: str = "tls: {}") -> str:
    """Return a resource with these settings of the source connector and of the target."""
    return SMALL.replace("CONFIG", config).replace("CLUSTER", cluster)


def test_a_resource_of_v1beta2_loads_with_its_values(tmp_path: Path) -> None:
    """Clusters, patterns and the settings of all three connectors are those of the resource."""
    printed = from_strimzi(OLD, tmp_path)
    flow, (pair,) = printed.flow, printed.settings.heartbeats

    assert str(flow.flow) == "west->east"
    assert flow.clients.target_producer["bootstrap.servers"] == "east:9092,east:9093"
    assert flow.clients.target_producer["compression.type"] == "zstd"
    assert [one.pattern for one in flow.topics] == [r"orders\.[a-z]{1,3}", "bills"]
    assert [one.pattern for one in flow.topics_exclude] == [".*-tmp"]
    assert [one.pattern for one in flow.groups.include] == ["shop.*"]
    assert (flow.tasks_max, flow.replication_factor) == (5, None)
    assert flow.replication_policy == PolicyClass.IDENTITY
    assert flow.refresh_topics_interval.total_seconds() == 30
    assert (flow.sync_acls, flow.groups.sync_offsets) == (False, True)
    assert (str(pair.flow), pair.replication_factor) == ("west->east", 1)


def test_every_field_that_is_not_taken_over_is_reported(tmp_path: Path) -> None:
    """Each path has its reason, and what was taken over is not among them."""
    printed = from_strimzi(OLD, tmp_path)

    assert printed.not_taken == {
        "spec.clusters[1].config.offset.storage.replication.factor": (
            "no effect here (Connect worker)"
        ),
        "spec.mirrors[0].sourceConnector.autoRestart": "a task that fails is always restarted",
        "spec.mirrors[0].sourceConnector.config.offset.lag.max": (
            "no effect here (offset syncs are written with each commit)"
        ),
        "spec.mirrors[0].checkpointConnector.tasksMax": (
            "one process emits the checkpoints of a flow"
        ),
        "spec.version": "there is no Kafka Connect",
        "spec.replicas": (
            "a run has no workers: tasks.max counts the tasks, and more runs stand by"
        ),
    }


def test_a_resource_of_v1_loads_with_its_logins(tmp_path: Path) -> None:
    """Each Secret is an environment variable; certificates, key and password reach the clients."""
    printed = from_strimzi(SECURE, tmp_path)
    flows = {str(flow.flow): flow for flow in printed.settings.flows}
    source = flows["west.1->east"].clients.source_consumer
    target = flows["west.1->east"].clients.target_producer

    assert list(flows) == ["west.1->east", "north-2->east"]
    assert source["security.protocol"] == "SSL"
    assert source["ssl.ca.pem"] == "<WEST_CA_CA_CRT>\n<WEST_CA_OLD_CRT>"
    assert source["ssl.certificate.pem"] == "<WEST_USER_USER_CRT>"
    assert source["ssl.key.pem"] == "<WEST_USER_USER_KEY>"
    assert target["security.protocol"] == "SASL_SSL"
    assert target["sasl.mechanism"] == "SCRAM-SHA-512"
    assert (target["sasl.username"], target["sasl.password"]) == ("mirror", "<EAST_USER_PASSWORD>")
    assert target["socket.timeout.ms"] == "40000"
    assert "#   EAST_USER_PASSWORD: key password of Secret east-user\n" in printed.text
    assert "#   EAST_CA_CRT: all *.crt, one after another, of Secret east-ca\n" in printed.text
    assert "security.protocol" not in printed.lines("north-2")


def test_a_flow_does_no_more_than_its_connectors(tmp_path: Path) -> None:
    """Without a connector there are no checkpoints and no heartbeats, in no direction."""
    printed = from_strimzi(SECURE, tmp_path)
    flows = {str(flow.flow): flow for flow in printed.settings.flows}

    assert not flows["west.1->east"].groups.emit_checkpoints
    assert flows["north-2->east"].groups.emit_checkpoints
    assert printed.settings.heartbeats == ()


def test_a_stopped_connector_names_the_verb(tmp_path: Path) -> None:
    """A run mirrors every enabled flow; the text says how to stop it before."""
    printed = from_strimzi(SECURE, tmp_path)
    verb = "eos-mirror stop FILE 'north-2->east'"

    assert printed.not_taken["spec.mirrors[1].sourceConnector.state"].endswith(verb)
    assert f"# north-2->east is stopped in Strimzi. A run mirrors it, unless you order {verb}." in (
        printed.text
    )


def test_a_mirror_without_a_source_connector_copies_nothing(tmp_path: Path) -> None:
    """As in Strimzi; the text says what to change."""
    text = small().replace("    sourceConnector: {config: {}}\n", "    topicsPattern: a\n")
    printed = from_strimzi(text, tmp_path)

    assert printed.flow.topics == ()
    assert not printed.flow.heartbeats_replicated
    assert "spec.mirrors[0].topicsPattern" in printed.not_taken
    assert "A->B copies no topic. To copy topics, set A->B.topics" in printed.text


OAUTH_V1BETA2 = """authentication: {type: oauth, clientId: me, scope: s, audience: x,
    tokenEndpointUri: 'https://sso/token', clientSecret: {secretName: o, key: k},
    tlsTrustedCertificates: [{secretName: sso, certificate: ca.crt}]}"""
OAUTH_V1 = """authentication: {type: custom, sasl: true, config: {sasl.mechanism: OAUTHBEARER,
    sasl.login.callback.handler.class:
      io.strimzi.kafka.oauth.client.JaasClientOauthLoginCallbackHandler,
    sasl.jaas.config: 'org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required
      oauth.token.endpoint.uri="https://sso/token" oauth.client.id="me" oauth.scope="s"
      oauth.client.secret="${strimzisecrets:kafka/o:k}" oauth.audience="x";'}}"""


@pytest.mark.parametrize("cluster", [OAUTH_V1BETA2, OAUTH_V1], ids=["oauth", "custom"])
def test_an_oauth_login_has_the_keys_of_the_client(cluster: str, tmp_path: Path) -> None:
    """Fields of v1beta2 and options of Strimzi's login class become the same settings."""
    printed = from_strimzi(small(cluster=cluster), tmp_path)
    client = printed.flow.clients.target_producer

    assert client["security.protocol"] == "SASL_PLAINTEXT"
    assert client["sasl.oauthbearer.method"] == "oidc"
    assert client["sasl.oauthbearer.token.endpoint.url"] == "https://sso/token"
    assert client["sasl.oauthbearer.client.id"] == "me"
    assert client["sasl.oauthbearer.client.secret"] == "<O_K>"
    assert client["sasl.oauthbearer.scope"] == "s"
    assert client.get("https.ca.pem") == ("<SSO_CA_CRT>" if cluster == OAUTH_V1BETA2 else None)
    assert any("audience" in path for path in printed.not_taken)


def test_a_login_of_ones_own_is_taken_over_as_in_strimzi(tmp_path: Path) -> None:
    """Only settings of SASL and of the key store count, and `sasl` decides the protocol."""
    config = "{ssl.keystore.type: PEM, ssl.keystore.key: '${strimzisecrets:n/s:k}', acks: 1}"
    cluster = f"tls: {{}}, authentication: {{type: custom, config: {config}}}"
    printed = from_strimzi(small(cluster=cluster), tmp_path)

    assert printed.lines("B")["security.protocol"] == "SSL"
    assert printed.lines("B")["ssl.keystore.key"] == "${env:S_K}"
    assert printed.not_taken == {
        "spec.target.authentication.config.acks": "Strimzi ignores it, too"
    }


@pytest.mark.parametrize(
    ("config", "lines"),
    [
        ("consumer.auto.offset.reset: latest", {"start.position": "latest"}),
        ("consumer.fetch.max.bytes: 7", {"source.consumer.fetch.max.bytes": "7"}),
        ("producer.override.linger.ms: 5", {"producer.override.linger.ms": "5"}),
        (
            "admin.request.timeout.ms: 9000",
            {f"{side}.admin.request.timeout.ms": "9000" for side in ("source", "target")},
        ),
        ("topics.blacklist: x", {"topics.exclude": "x"}),
        ("tasks.max: 3", {"tasks.max": "3"}),
        ("topics: 'a\\.b'", {"topics": "a\\\\.b"}),
        ("consumer.client.rack: '${strimzienv:R}'", {"source.consumer.client.rack": "${env:R}"}),
        ("emit.checkpoints.enabled: false", {}),
    ],
)
def test_a_setting_of_the_source_connector_has_its_key(
    config: str, lines: dict[str, str], tmp_path: Path
) -> None:
    """The key has the effect that the setting has in MirrorMaker 2, whatever the clusters set."""
    assert from_strimzi(small(config), tmp_path).lines("A->B") == {"enabled": "true", **lines}


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ("foo.bar: 1", "unknown key"),
        ("value.converter: x.Y", "no effect here (records are copied as bytes)"),
        ("consumer.max.poll.records: 5", "no effect: librdkafka has no such setting"),
        ("consumer.isolation.level: read_uncommitted", "exactly once depends on it"),
        ("producer.linger.ms: 5", "sets only the producer of offset syncs; for the data, write "
         "A->B.producer.override.*"),
        ("groups: g", "the MirrorCheckpointConnector decides it, and does not set it"),
        ("transforms.mask.type: Filter", "no effect: transforms does not list mask"),
    ],
)  # fmt: skip
def test_a_setting_without_use_is_not_printed(config: str, reason: str, tmp_path: Path) -> None:
    """Its reason is that of the loader, where the loader has one."""
    printed = from_strimzi(small(config), tmp_path)

    assert printed.lines("A->B") == {"enabled": "true"}
    path = f"spec.mirrors[0].sourceConnector.config.{config.partition(':')[0]}"
    assert printed.not_taken[path] == reason


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("kind: [", "mirror.yaml:1:8: this is no YAML: expected the node content"),
        ("kind: Kafka", "mirror.yaml: has no resource of kind KafkaMirrorMaker2; name another"),
        ("- 1", "mirror.yaml: document 1 has no fields; write it as a mapping"),
        ("kind: KafkaMirrorMaker2", "mirror.yaml: spec is missing; add it"),
        (f"{HEAD}spec: {{}}", "mirror.yaml: spec.mirrors is missing; add one"),
        (SECURE.replace("    bootstrapServers: east:9093\n", ""),
         "mirror.yaml: spec.target.bootstrapServers is missing; add it"),
        (OLD.replace("sourceCluster: west", "sourceCluster: wets"),
         "mirror.yaml: spec.mirrors[0].sourceCluster = wets: there is no such cluster; "
         "spec.clusters has west, east"),
        (SECURE.replace("type: tls", "type: kerberos"),
         "mirror.yaml: spec.mirrors[0].source.authentication.type = kerberos: expected tls, plain"),
        (SECURE.replace("alias: north-2", "alias: west.1"),
         "mirror.yaml: spec.mirrors[1].source.alias = west.1: another cluster has this alias; "
         "rename one, or join the mirrors"),
        (small("tasks.max: 0"), "mirror.yaml: spec.mirrors[0].sourceConnector.config.tasks.max: "
         "expected a whole number from 1"),
        (small("transforms: mask"), "mirror.yaml: spec.mirrors[0].sourceConnector.config."
         "transforms: mask has no type; add "),
        (small("replication.policy.class: com.acme.Policy"), "mirror.yaml: spec.mirrors[0]."
         "sourceConnector.config.replication.policy.class: "),
        (small("topics: [a, b]"), "mirror.yaml: spec.mirrors[0].sourceConnector.config.topics: "
         "expected text, a number, true or false"),
        (small(cluster="authentication: {type: oauth, clientId: c, tokenEndpointUri: t}"),
         "mirror.yaml: spec.target.authentication.type: OAUTHBEARER needs sasl.oauthbearer.client."
         "secret"),
        (OLD + "---\n" + OLD, "mirror.yaml: mirror.spec.mirrors[0]: west->east is defined in "
         "mirror.spec.mirrors[0], too; join them, or convert one at a time"),
    ],
)  # fmt: skip
def test_a_resource_that_cannot_be_converted_is_one_clear_line(text: str, fault: str) -> None:
    """The line names the file, the field and what to do."""
    with pytest.raises(ConfigError) as caught:
        settle(convert_resources(text, file="mirror.yaml"))

    (line,) = caught.value.faults
    assert line.startswith(fault)


def test_resources_of_a_list_become_one_configuration(tmp_path: Path) -> None:
    """`kubectl get -o yaml` prints a list; both directions fit into one file."""
    back = (
        OLD.replace("sourceCluster: west", "sourceCluster: east")
        .replace("targetCluster: east", "targetCluster: west")
        .replace("name: mirror", "name: back")
        .replace("connectCluster: east", "connectCluster: west")
        .replace("producer.compression.type: zstd", "client.id: m")
    )
    items = "".join(
        f"- {text}".replace("\n", "\n  ").rstrip() + "\n"
        for text in (OLD, back, "kind: Kafka\nmetadata: {name: k}")
    )
    printed = from_strimzi(f"kind: List\nitems:\n{items}", tmp_path)

    assert [str(one.flow) for one in printed.settings.flows] == ["east->west", "west->east"]
    assert printed.not_taken["back.spec.version"] == "there is no Kafka Connect"
    assert printed.not_taken["Kafka k"] == "only resources of kind KafkaMirrorMaker2 are converted"


def test_without_its_library_yaml_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line has the command that installs it."""
    monkeypatch.setitem(sys.modules, "yaml", None)

    with pytest.raises(ConfigError, match=r"mirror.yaml: PyYAML is not installed: pip install"):
        convert_resources(OLD, file="mirror.yaml")
