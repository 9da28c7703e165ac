"""Everything that must be refused: one line that names the fix, and nothing written anywhere."""

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from eos_mirror.testing import KafkaCluster, Security
from eos_mirror.testing.external import Cluster
from tests.mirror.conftest import Site, make_site
from tests.mirror.toolbox import Mirror, mirror

pytestmark = pytest.mark.brokers

CONFIGURATION, UNSAFE = 2, 4
TRANSACTION_STATE = "__transaction_state"


def refused(config: Path, *arguments: str, code: int, says: list[str]) -> Mirror:
    """Run, and check that it ends with this code and one line with all these words."""
    with mirror(config, *arguments) as running:
        assert running.wait() == code, (running.errors, running.events)
    lines = [line for line in running.errors if line.startswith("eos-mirror: ")]
    assert len(lines) == 1, running.errors
    for words in says:
        assert words in lines[0]
    assert "Traceback" not in "".join(running.errors)
    return running


def assert_untouched(site: Site) -> None:
    """Nothing of the flow on the target, its transactional ids included, and no group anywhere."""
    assert not [topic for topic in topics_of(site.target) if site.flow.name in topic]
    for cluster, group in (
        (site.source, site.flow.source_group),
        (site.target, site.flow.shadow_group),
    ):
        groups = cluster.admin().list_consumer_groups().result(10).valid
        assert group not in {listing.group_id for listing in groups}
    assert not [tid for tid in noted_transactional_ids(site.target) if site.flow.name in tid]


def topics_of(cluster: Cluster) -> set[str]:
    """Names of all topics."""
    return set(cluster.admin().list_topics(timeout=10).topics)


def noted_transactional_ids(cluster: Cluster) -> set[str]:
    """Every transactional id that the coordinators ever noted, read from their own topic."""
    if TRANSACTION_STATE not in topics_of(cluster):
        return set()
    reader = Consumer(
        {**cluster.client_config(), "group.id": "notes", "enable.partition.eof": True}
    )
    partitions = len(reader.list_topics(TRANSACTION_STATE).topics[TRANSACTION_STATE].partitions)
    reader.assign([TopicPartition(TRANSACTION_STATE, p, 0) for p in range(partitions)])
    keys: set[str] = set()
    ends = 0
    while ends < partitions:
        for message in reader.consume(1000, 0.1):
            error = message.error()
            if error is None:
                keys.add(bytes(message.key() or b"").decode(errors="replace"))
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error  # noqa: SLF001
                ends += 1
    reader.close()
    return keys


def checked(config: Path) -> list[dict[str, Any]]:
    """What `run --check` prints when it finds nothing wrong."""
    command = [sys.executable, "-m", "eos_mirror.cli.main", "run", str(config), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert not done.stderr, "what the clients are refused on purpose is no news"
    return [json.loads(line) for line in done.stdout.splitlines()]


def rewrite(config: Path, old: str, new: str) -> Path:
    """Change a line of the file."""
    text = config.read_text()
    assert old in text
    config.write_text(text.replace(old, new))
    return config


def test_an_unknown_key_is_refused_with_the_nearest_one(site: Site) -> None:
    """A typo is never a silent no-op."""
    config = rewrite(site.config(), "tasks.max", "task.max")

    refused(config, code=CONFIGURATION, says=["task.max", "tasks.max", f"{config}:"])

    assert_untouched(site)


def test_a_spark_master_with_too_few_slots_is_refused_with_the_numbers(site: Site) -> None:
    """Tasks that wait for a slot look like tasks that run."""
    config = site.config(tasks_max=4, runtime="spark", spark_master="local[2]")

    refused(config, code=CONFIGURATION, says=["local[2] has 2 slots", "4"])

    assert_untouched(site)


def test_a_pattern_that_matches_nothing_is_said_with_what_was_meant(site: Site) -> None:
    """The flow starts, for the topic may still come; a typo is seen at once."""
    misspelled = site.topic.replace("orders", "ordres")
    config = rewrite(site.config(), "topics = ", f"topics = {misspelled}, ")
    warning, plan = checked(config)
    assert warning["event"] == "flow.warning"
    assert plan["topics"] == {site.topic: site.remote}
    assert f"matches {misspelled} of `topics`; did you mean" in warning["reason"]
    assert site.topic in warning["reason"].partition("did you mean")[2]


def test_an_alias_without_bootstrap_servers_is_refused(site: Site) -> None:
    """Before any cluster is asked."""
    line = f"{site.flow.target}.bootstrap.servers = {site.target.bootstrap}\n"
    config = rewrite(site.config(), line, "")

    refused(config, code=CONFIGURATION, says=[f"{site.flow.target}.bootstrap.servers"])


def test_an_unreachable_cluster_is_refused_after_a_bounded_wait(site: Site) -> None:
    """The line names the key, the address and the place."""
    config = rewrite(site.config(admin_timeout_ms=3000), site.target.bootstrap, "127.0.0.1:9")

    refused(
        config,
        code=CONFIGURATION,
        says=[f"{site.flow.target}.bootstrap.servers=127.0.0.1:9", f"{config}:3"],
    )

    assert_untouched(site)


def test_two_flows_onto_one_topic_are_refused(site: Site) -> None:
    """Both flows and their topics are named."""
    flow = site.flow
    config = site.config(replication_policy_class="IdentityReplicationPolicy")
    third = "u" + flow.source[1:]
    text = config.read_text().replace(
        f"clusters = {flow.source}, {flow.target}",
        f"clusters = {flow.source}, {flow.target}, {third}",
    )
    config.write_text(
        f"{text}{third}.bootstrap.servers = {site.source.bootstrap}\n"
        f"{third}->{flow.target}.enabled = true\n"
    )

    refused(config, code=CONFIGURATION, says=[str(flow), f"{third}->{flow.target}", site.topic])

    assert_untouched(site)
    assert site.topic not in topics_of(site.target)


def test_transactional_ids_are_found_where_coordinators_note_them(site: Site) -> None:
    """The other tests here find nothing; this is what they would find."""
    site.produce(10)
    with mirror(site.config(), "--once") as run:
        assert run.wait() == 0, run.errors

    assert [tid for tid in noted_transactional_ids(site.target) if site.flow.name in tid]


def test_a_check_that_passes_notes_no_transactional_id(site: Site) -> None:
    """What is tried is refused, even where everything is granted."""
    (plan,) = checked(site.config())

    assert plan["topics"] == {site.topic: site.remote}
    assert_untouched(site)


def test_a_transaction_longer_than_the_target_allows_is_refused(site: Site) -> None:
    """Kafka's own limit is 15 minutes; a task would only be refused again and again."""
    config = site.config(transaction_timeout_ms=900_001)

    says = ["transaction.timeout.ms=900001", "at most 900000", "transaction.max.timeout.ms"]
    refused(config, code=CONFIGURATION, says=says)

    assert_untouched(site)
    assert checked(rewrite(config, "900001", "900000"))


def test_a_second_deployment_with_another_configuration_is_refused(site: Site) -> None:
    """While the first one runs. The same configuration, or the first one gone, is fine."""
    site.produce(100)
    session = {"session_timeout_ms": 6000}  # the shortest that brokers allow
    with mirror(site.config(**session)) as first:
        first.wait_for("ready")
        other = site.config(topics_exclude="nothing", **session)
        refused(other, code=UNSAFE, says=[str(site.flow), "another configuration", "running"])
        assert first.stop() == 0, first.errors
    with mirror(other, "--once") as second:
        assert second.wait() == 0, second.errors
    assert site.compare().exact


@pytest.fixture(scope="module")
def guarded(own_brokers: None) -> Iterator[KafkaCluster]:  # noqa: ARG001 (skips where there are none)
    """A target with users and access control."""
    with KafkaCluster(
        name="guarded",
        security=Security.SASL_PLAIN,
        users={"mirror": "pw"},
        authorizer=True,
    ) as cluster:
        yield cluster


NOTHING = -1
RIGHTS = (
    (ResourceType.TOPIC, "*", ResourcePatternType.LITERAL),
    (ResourceType.GROUP, "*", ResourcePatternType.LITERAL),
    (ResourceType.TRANSACTIONAL_ID, "eos-mirror.", ResourcePatternType.PREFIXED),
)


def grant_all_but(cluster: KafkaCluster, missing: int) -> None:
    """The mirror's user gets every right, but of one kind."""
    admin = cluster.admin()
    user, host = "User:mirror", "*"
    for i, (kind, name, pattern) in enumerate(RIGHTS):
        binding = AclBinding(
            kind, name, pattern, user, host, AclOperation.ALL, AclPermissionType.ALLOW
        )
        exact = AclBindingFilter(
            kind, name, pattern, user, host, AclOperation.ALL, AclPermissionType.ALLOW
        )
        answers: Iterable[Future[object]] = (
            admin.delete_acls([exact]).values()
            if i == missing
            else admin.create_acls([binding]).values()
        )
        for answer in answers:
            answer.result(10)


@pytest.mark.parametrize(
    ("missing", "says"),
    [
        (0, ["not authorized", "topic"]),
        (1, ["not authorized", "READ on group"]),
        (2, ["not authorized", "transactional ids"]),
    ],
    ids=["topics", "groups", "transactional ids"],
)
def test_a_missing_right_is_named_before_anything_is_written(
    tmp_path: Path,
    source_cluster: KafkaCluster,
    guarded: KafkaCluster,
    missing: int,
    says: list[str],
) -> None:
    """Claims topic, group or transactional id: the line says which, and how to grant it."""
    grant_all_but(guarded, missing)
    site = make_site(tmp_path, source_cluster, guarded)

    refused(login(site), code=CONFIGURATION, says=[*says, "kafka-acls"])

    assert_untouched(site)


def test_a_claims_topic_that_may_not_be_written_is_named(
    tmp_path: Path, source_cluster: KafkaCluster, guarded: KafkaCluster
) -> None:
    """It exists, and everything else is granted."""
    grant_all_but(guarded, missing=NOTHING)
    site = make_site(tmp_path, source_cluster, guarded)
    claims = site.flow.claims_topic
    guarded.create_topic(claims, 1, config={"cleanup.policy": "compact"})
    denied = AclBinding(
        ResourceType.TOPIC,
        claims,
        ResourcePatternType.LITERAL,
        "User:mirror",
        "*",
        AclOperation.WRITE,
        AclPermissionType.DENY,
    )
    for answer in guarded.admin().create_acls([denied]).values():
        answer.result(10)

    refused(login(site), code=CONFIGURATION, says=[f"WRITE on topic {claims}", "kafka-acls"])

    assert [topic for topic in topics_of(guarded) if site.flow.name in topic] == [claims]


def login(site: Site) -> Path:
    """The site's configuration, as the mirror's user of a guarded target."""
    config = site.config()
    with config.open("a") as file:
        for key, value in site.target.java_properties("mirror").items():
            if key != "bootstrap.servers":
                file.write(f"{site.flow.target}.{key} = {value}\n")
    return config
