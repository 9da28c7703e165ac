"""Access rights of remote topics, on real brokers with and without access control."""

import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from eos_mirror.core.side import Side
from eos_mirror.core.topic_acls import Acl
from eos_mirror.kafka.acls import TopicAcls
from eos_mirror.testing import KafkaCluster, Security
from eos_mirror.testing.external import Cluster
from tests.mirror.conftest import Site, make_site
from tests.mirror.rights import LITERAL, NOTHING, PREFIXED, grant_all_but, login
from tests.mirror.toolbox import Mirror, mirror

pytestmark = [pytest.mark.brokers, pytest.mark.long]

CLUSTER = ResourceType.BROKER, "kafka-cluster", LITERAL
SYNC = {
    "sync_topic_acls_enabled": "true",
    "sync_topic_acls_interval_seconds": 1,
    "summary_interval_seconds": 1,
}


@pytest.fixture(scope="module")
def guarded(own_brokers: None) -> Iterator[KafkaCluster]:  # noqa: ARG001 (skips without)
    """Source and target in one, with users and access control."""
    with KafkaCluster(
        name="guarded", security=Security.SASL_PLAIN, users={"mirror": "pw"}, authorizer=True
    ) as cluster:
        grant_all_but(cluster, NOTHING)
        yield cluster


def grant(
    cluster: KafkaCluster,
    resource: tuple[ResourceType, str, ResourcePatternType],
    user: str,
    operation: AclOperation,
    permission: AclPermissionType = AclPermissionType.ALLOW,
) -> None:
    """Grant or deny an operation to a user."""
    binding = AclBinding(*resource, f"User:{user}", "*", operation, permission)
    for answer in cluster.admin().create_acls([binding]).values():
        answer.result(10)


def look_again(running: Mirror, times: int) -> None:
    """Wait until the rights were synced this many times: as often as a summary is logged."""
    told = len(running.found("flow.summary"))
    running.wait_for("flow.summary", count=told + times)


def config_of(site: Site) -> Path:
    """Write a configuration that syncs rights, with the mirror's user as the login."""
    config = login(site)
    with config.open("a") as file:
        file.writelines(f"{key.replace('_', '.')} = {value}\n" for key, value in SYNC.items())
    return config


def test_rights_that_may_not_be_listed_are_said_once_and_stop_nothing(
    tmp_path: Path, guarded: KafkaCluster
) -> None:
    """Without Describe on the cluster, records are mirrored. The next test grants Describe."""
    site = make_site(tmp_path, guarded, guarded)
    site.produce(100)
    with mirror(config_of(site)) as running:
        skipped = running.wait_for("acls.skipped")
        assert "DESCRIBE on the cluster of the source" in skipped["reason"]
        look_again(running, 3)
        site.wait_caught_up()
        assert running.stop() == 0, running.errors
    assert len(running.found("acls.skipped")) == 1


def test_who_may_read_a_topic_may_read_its_copy(tmp_path: Path, guarded: KafkaCluster) -> None:
    """No right to write is copied, a denial stays a denial, and no right is added twice."""
    site = make_site(tmp_path, guarded, guarded)
    for operation in (AclOperation.DESCRIBE, AclOperation.ALTER):
        grant(guarded, CLUSTER, "mirror", operation)
    topic = (ResourceType.TOPIC, site.topic, LITERAL)
    grant(guarded, topic, "reader", AclOperation.READ)
    grant(guarded, topic, "owner", AclOperation.ALL)
    grant(guarded, topic, "writer", AclOperation.WRITE)
    grant(guarded, topic, "enemy", AclOperation.READ, AclPermissionType.DENY)
    grant(guarded, (ResourceType.TOPIC, site.topic, PREFIXED), "prefixed", AclOperation.READ)
    with mirror(config_of(site)) as running:
        running.wait_for("acl.added", count=3)
        look_again(running, 3)
        assert running.stop() == 0, running.errors
    assert len(running.found("acl.added")) == 3
    everything = TopicAcls(guarded.client_config(), side=Side.TARGET).list()
    assert everything is not None
    assert {acl for acl in everything if acl.topic == site.remote} == {
        Acl(
            topic=site.remote,
            principal=f"User:{user}",
            host="*",
            operation="READ",
            permission=permission,
        )
        for user, permission in (("reader", "ALLOW"), ("owner", "ALLOW"), ("enemy", "DENY"))
    }


def test_a_right_that_the_target_refuses_holds_up_no_other(guarded: KafkaCluster) -> None:
    """The refused right is named with its reason; the other rights of the request are added."""
    for operation in (AclOperation.DESCRIBE, AclOperation.ALTER):
        grant(guarded, CLUSTER, "mirror", operation)
    good = Acl(
        topic=f"topic-{uuid.uuid4().hex[:8]}",
        principal="User:reader",
        host="*",
        operation="READ",
        permission="ALLOW",
    )
    nobody = replace(good, principal="no principal")
    strange = replace(good, operation="UNKNOWN")
    acls = TopicAcls(guarded.client_config("mirror"), side=Side.TARGET)

    refused = acls.add([nobody, strange, good])

    assert refused is not None
    assert refused.keys() == {nobody, strange}
    assert "INVALID_REQUEST" in refused[nobody]
    assert good in acls.list()


def test_a_target_without_access_control_is_said_once(
    tmp_path: Path, guarded: KafkaCluster, target_cluster: Cluster
) -> None:
    """Without access control there is no place for the rights, and the flow logs it once."""
    site = make_site(tmp_path, guarded, target_cluster)
    grant(guarded, CLUSTER, "mirror", AclOperation.DESCRIBE)
    grant(guarded, (ResourceType.TOPIC, site.topic, LITERAL), "reader", AclOperation.READ)
    config = site.config(**SYNC)
    with config.open("a") as file:
        for key, value in guarded.java_properties("mirror").items():
            if key != "bootstrap.servers":
                file.write(f"{site.flow.source}.{key} = {value}\n")
    with mirror(config) as running:
        assert "has no access control" in running.wait_for("acls.skipped")["reason"]
        look_again(running, 3)
        assert running.stop() == 0, running.errors
    assert len(running.found("acls.skipped")) == 1
