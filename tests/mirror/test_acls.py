"""Access rights of remote topics, on real brokers with and without access control."""

import uuid
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from eos_mirror.core.side import Side
from eos_mirror.core.topic_acls import Acl
from eos_mirror.kafka.acls import CREATE_AT_ONCE, TopicAcls
from eos_mirror.kafka.topics import Topics
from eos_mirror.testing import KafkaCluster, Security, read_topic, wait_until
from eos_mirror.testing.external import Cluster
from tests.mirror.conftest import Site, make_site
from tests.mirror.rights import LITERAL, NOTHING, PREFIXED, grant_all_but, login
from tests.mirror.toolbox import Mirror, mirror

pytestmark = [pytest.mark.brokers, pytest.mark.long]

CLUSTER = ResourceType.BROKER, "kafka-cluster", LITERAL
USERS = dict.fromkeys(("mirror", "app", "auditor", "stranger"), "pw")
SOON = timedelta(seconds=10)
SYNC = {
    "sync_topic_acls_enabled": "true",
    "sync_topic_acls_interval_seconds": 1,
    "summary_interval_seconds": 1,
}


@pytest.fixture(scope="module")
def guarded(own_brokers: None) -> Iterator[KafkaCluster]:  # noqa: ARG001 (skips without)
    """Source and target in one, with users and access control."""
    with KafkaCluster(
        name="guarded", security=Security.SASL_PLAIN, users=USERS, authorizer=True
    ) as cluster:
        grant_all_but(cluster, NOTHING)
        yield cluster


@pytest.fixture(scope="module")
def guarded_target(own_brokers: None) -> Iterator[KafkaCluster]:  # noqa: ARG001 (skips without)
    """Another cluster with the same users and access control, where all may join groups."""
    with KafkaCluster(
        name="guarded-target", security=Security.SASL_PLAIN, users=USERS, authorizer=True
    ) as cluster:
        grant_all_but(cluster, NOTHING)
        for operation in (AclOperation.DESCRIBE, AclOperation.ALTER):
            grant(cluster, CLUSTER, "mirror", operation)
        for user in USERS:
            grant(cluster, (ResourceType.GROUP, "*", LITERAL), user, AclOperation.READ)
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


def read_right(topic: str, user: str) -> Acl:
    """Return the ACL that allows a user to read a topic by its full name."""
    return Acl(
        topic=topic, principal=f"User:{user}", host="*", operation="READ", permission="ALLOW"
    )


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
    names = ("reader", "owner", "prefixed", "mirror")  # `RIGHTS` has an ACL of every topic
    expected = {
        *(read_right(site.remote, user) for user in names),
        replace(read_right(site.remote, "enemy"), permission="DENY"),
    }
    with mirror(config_of(site)) as running:
        running.wait_for("acl.added", count=len(expected))
        look_again(running, 3)
        assert running.stop() == 0, running.errors
    assert len(running.found("acl.added")) == len(expected)
    everything = TopicAcls(guarded.client_config(), side=Side.TARGET).list()
    assert {acl for acl in everything if acl.topic == site.remote} == expected


def test_who_may_read_a_topic_by_a_prefix_or_a_wildcard_may_read_its_copy(
    tmp_path: Path, guarded: KafkaCluster, guarded_target: KafkaCluster
) -> None:
    """The copy has an ACL of its full name; nothing wider appears on the target."""
    site = make_site(tmp_path, guarded, guarded_target)
    grant(guarded, CLUSTER, "mirror", AclOperation.DESCRIBE)
    by_prefix = (ResourceType.TOPIC, site.topic[:-1], PREFIXED)
    grant(guarded, by_prefix, "app", AclOperation.READ)
    grant(guarded, by_prefix, "app", AclOperation.ALL)
    grant(guarded, (ResourceType.TOPIC, "*", LITERAL), "auditor", AclOperation.READ)
    unrelated = (ResourceType.TOPIC, f"{site.topic}-other", PREFIXED)
    grant(guarded, unrelated, "stranger", AclOperation.READ)
    acls = TopicAcls(guarded_target.client_config(), side=Side.TARGET)
    before = acls.list()
    expected = {read_right(site.remote, user) for user in ("app", "auditor", "mirror")}
    site.produce(40)

    with mirror(config_of(site)) as running:
        running.wait_for("acl.added", count=len(expected))
        site.wait_caught_up()
        assert running.stop() == 0, running.errors

    assert acls.list() - before == expected
    for user in ("app", "auditor"):
        config = guarded_target.client_config(user)
        copy = read_topic(config, site.remote, partitions=site.partitions)
        assert sum(map(len, copy)) == 40
    visible = Topics(guarded_target.client_config("stranger"), side=Side.TARGET).list()
    assert site.remote not in visible


def test_more_acls_than_a_controller_takes_in_one_request_are_added(
    guarded_target: KafkaCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand are one request. A controller refuses one with more than 10,000 as a whole."""
    sizes = []
    create_acls = AdminClient.create_acls

    def count(admin: AdminClient, acls: list[AclBinding], **options: float) -> object:
        sizes.append(len(acls))
        return create_acls(admin, acls, **options)

    monkeypatch.setattr(AdminClient, "create_acls", count)
    many = {read_right(f"many-{number}", "app") for number in range(10_001)}
    acls = TopicAcls(guarded_target.client_config("mirror"), side=Side.TARGET)

    assert acls.add(many) == {}
    assert sizes == [CREATE_AT_ONCE] * 10 + [1]
    wait_until(lambda: many <= acls.list(), within=SOON, what="all ACLs")


def test_a_right_that_the_target_refuses_holds_up_no_other(guarded: KafkaCluster) -> None:
    """The refused right is named with its reason; the other rights of the request are added."""
    for operation in (AclOperation.DESCRIBE, AclOperation.ALTER):
        grant(guarded, CLUSTER, "mirror", operation)
    good = read_right(f"topic-{uuid.uuid4().hex[:8]}", "reader")
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
