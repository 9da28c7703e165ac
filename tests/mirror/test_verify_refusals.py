"""Proofs that cannot start: one line that says what to do, and no traceback."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from eos_mirror.testing import KafkaCluster, Security
from eos_mirror.testing.external import Cluster
from eos_mirror.testing.spark_cluster import LOOPBACK, spark_cluster
from tests.mirror.conftest import Site, make_site
from tests.mirror.proofs import verify, with_folder
from tests.mirror.toolbox import mirror

pytestmark = [pytest.mark.brokers, pytest.mark.long]

USER = "mirror"


@pytest.fixture
def guarded(own_brokers: None) -> Iterator[KafkaCluster]:  # noqa: ARG001 (skips without)
    """A target with a user and access control."""
    with KafkaCluster(
        name="guarded", security=Security.SASL_PLAIN, users={USER: "pw"}, authorizer=True
    ) as cluster:
        yield cluster


def rule(name: str, *, allow: bool) -> AclBinding:
    """Return a rule that allows everything on a topic, or denies Read on it; `*` is all topics."""
    kind = AclPermissionType.ALLOW if allow else AclPermissionType.DENY
    operation = AclOperation.ALL if allow else AclOperation.READ
    pattern = ResourcePatternType.LITERAL
    return AclBinding(ResourceType.TOPIC, name, pattern, f"User:{USER}", "*", operation, kind)


def grant(cluster: KafkaCluster, *rules: AclBinding) -> None:
    """Create rules that grant or deny."""
    for answer in cluster.admin().create_acls(list(rules)).values():
        answer.result(10)


def everything_else() -> list[AclBinding]:
    """Return rules that allow everything on groups and transactional ids."""
    return [
        AclBinding(
            kind, "*", ResourcePatternType.LITERAL, f"User:{USER}", "*", AclOperation.ALL,
            AclPermissionType.ALLOW,
        )
        for kind in (ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID)
    ]  # fmt: skip


def login(site: Site, config: Path) -> Path:
    """Add the login of the guarded target's user to a configuration."""
    with config.open("a") as file:
        for key, value in site.target.java_properties(USER).items():
            if key != "bootstrap.servers":
                file.write(f"{site.flow.target}.{key} = {value}\n")
    return config


def test_a_topic_that_may_not_be_read_is_named(
    tmp_path: Path, source_cluster: Cluster, guarded: KafkaCluster
) -> None:
    """The line names the topic, the cluster and what to do, before Spark starts."""
    grant(guarded, rule("*", allow=True), *everything_else())
    site = make_site(tmp_path, source_cluster, guarded)
    site.produce(400)
    with mirror(login(site, site.config()), "--once") as running:
        assert running.wait() == 0, running.errors
    grant(guarded, rule(site.remote, allow=False))

    code, _, said = verify(site, change=lambda config: login(site, config))

    assert code == 2, said
    (line,) = [line for line in said.splitlines() if line.startswith("eos-mirror: ")]
    assert f"READ on topic {site.remote} ({site.flow.target}) is missing" in line
    assert "--topics" in line
    assert "Traceback" not in said


@pytest.mark.spark
def test_a_spark_that_has_no_slot_is_not_waited_for_in_silence(site: Site) -> None:
    """If no worker is large enough for the executor, the proof exits with one line."""
    site.produce(400)
    with mirror(site.config(), "--once") as running:
        assert running.wait() == 0, running.errors
    with spark_cluster(site.folder, cores=1, memory="1g") as address:

        def elsewhere(config: Path) -> Path:
            with config.open("a") as file:
                file.write(f"verify.spark.master = {address}\n")
                file.write(f"verify.spark.driver.host = {LOOPBACK}\n")
                file.write("verify.spark.executor.memory = 64g\n")
            return config

        code, _, said = verify(site, change=elsewhere, env=with_folder("impatient"))

    assert code == 1, said
    (line,) = [line for line in said.splitlines() if line.startswith("eos-mirror: ")]
    assert f"{address} has no free cores" in line
    assert "verify.spark.master" in line
    assert "Traceback" not in said
