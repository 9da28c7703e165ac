"""Rights of the user `mirror` on a cluster with access control: granted, denied, given back."""

from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from eos_mirror.core.flow import Flow
from eos_mirror.testing import KafkaCluster, Security
from tests.mirror.conftest import Site

USER = "User:mirror"
LITERAL, PREFIXED = ResourcePatternType.LITERAL, ResourcePatternType.PREFIXED
Resource = tuple[ResourceType, str, ResourcePatternType]

RIGHTS: tuple[Resource, ...] = (
    (ResourceType.TOPIC, "*", LITERAL),
    (ResourceType.GROUP, "*", LITERAL),
    (ResourceType.TRANSACTIONAL_ID, "eos-mirror.", PREFIXED),
)
"""Everything that a mirror needs."""

NOTHING = -1
"""In place of the index of a missing right."""


@contextmanager
def guarded_cluster() -> Iterator[KafkaCluster]:
    """Run a cluster with access control, whose user `mirror` has every right that is needed."""
    with KafkaCluster(
        name="guarded", security=Security.SASL_PLAIN, users={"mirror": "pw"}, authorizer=True
    ) as cluster:
        grant_all_but(cluster, NOTHING)
        yield cluster


def grant_all_but(cluster: KafkaCluster, missing: int) -> None:
    """Grant the mirror's user all `RIGHTS` except the one with this index."""
    admin = cluster.admin()
    for i, resource in enumerate(RIGHTS):
        entry = (*resource, USER, "*", AclOperation.ALL, AclPermissionType.ALLOW)
        if i == missing:
            wait_for_all(admin.delete_acls([AclBindingFilter(*entry)]).values())
        else:
            wait_for_all(admin.create_acls([AclBinding(*entry)]).values())


def deny(cluster: KafkaCluster, resource: Resource, operation: AclOperation) -> None:
    """Withdraw a right: a denial overrides every permission."""
    binding = AclBinding(*resource, USER, "*", operation, AclPermissionType.DENY)
    wait_for_all(cluster.admin().create_acls([binding]).values())


def allow_again(cluster: KafkaCluster, resource: Resource, operation: AclOperation) -> None:
    """Remove the denial."""
    binding = AclBindingFilter(*resource, USER, "*", operation, AclPermissionType.DENY)
    wait_for_all(cluster.admin().delete_acls([binding]).values())


def wait_for_all(answers: Iterable[Future[object]]) -> None:
    """Wait until the cluster has answered every request; raise if it refused one."""
    for answer in answers:
        answer.result(10)


def resource_of(kind: str, flow: Flow, site: Site) -> Resource:
    """Return the resource of a flow that a right is about."""
    return {
        "source topic": (ResourceType.TOPIC, site.topic, LITERAL),
        "source group": (ResourceType.GROUP, flow.source_group, LITERAL),
        "remote topic": (ResourceType.TOPIC, site.remote, LITERAL),
        "shadow group": (ResourceType.GROUP, flow.shadow_group, LITERAL),
        "transactional id": (
            ResourceType.TRANSACTIONAL_ID,
            flow.transactional_id(""),
            PREFIXED,
        ),
    }[kind]


def login(site: Site, **extra: object) -> Path:
    """Write the site's configuration with the mirror's user as the login at both clusters."""
    return _logged_in(site, site.config(**extra), site.flow.source, site.flow.target)


def login_at_target(site: Site) -> Path:
    """Write the site's configuration with the mirror's user as the login at the target."""
    return _logged_in(site, site.config(), site.flow.target)


def _logged_in(site: Site, config: Path, *aliases: str) -> Path:
    with config.open("a") as file:
        for alias in aliases:
            for key, value in site.target.java_properties("mirror").items():
                if key != "bootstrap.servers":
                    file.write(f"{alias}.{key} = {value}\n")
    return config
