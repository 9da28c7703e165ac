"""Which access rights a copy gets: Kafka's cases."""

from dataclasses import replace

import pytest

from eos_mirror.core.topic_acls import Acl, missing_acls

READS = Acl(topic="orders", principal="User:reader", host="*", operation="READ", permission="ALLOW")
ROUTES = {"orders": "A.orders"}


def on_the_copy(acl: Acl, operation: str) -> Acl:
    """The same of the remote topic."""
    return replace(acl, topic="A.orders", operation=operation)


@pytest.mark.parametrize(
    ("permission", "operation", "becomes"),
    [
        ("ALLOW", "READ", "READ"),
        ("ALLOW", "DESCRIBE", "DESCRIBE"),
        ("ALLOW", "ALL", "READ"),
        ("DENY", "ALL", "ALL"),
        ("DENY", "WRITE", "WRITE"),
        ("DENY", "READ", "READ"),
        ("ALLOW", "ALTER", "ALTER"),
    ],
)
def test_a_right_is_copied_or_made_smaller(permission: str, operation: str, becomes: str) -> None:
    """Denials as they are; everything becomes reading."""
    acl = replace(READS, permission=permission, operation=operation)
    assert missing_acls([acl], [], ROUTES, full=False) == [on_the_copy(acl, becomes)]


def test_nobody_gets_the_right_to_write_a_copy() -> None:
    """It is the mirror's."""
    assert missing_acls([replace(READS, operation="WRITE")], [], ROUTES, full=False) == []


def test_all_rights_are_copied_if_they_are_asked_for() -> None:
    """For a copy that applications will write some day."""
    source = [replace(READS, operation=operation) for operation in ("ALL", "READ", "WRITE")]
    wanted = [on_the_copy(acl, acl.operation) for acl in source]
    assert missing_acls(source, [], ROUTES, full=True) == wanted


def test_what_is_there_is_not_added_again() -> None:
    """Two rights may become the same one."""
    source = [READS, replace(READS, operation="ALL")]
    assert missing_acls(source, [], ROUTES, full=False) == [on_the_copy(READS, "READ")]
    assert missing_acls(source, [on_the_copy(READS, "READ")], ROUTES, full=False) == []


def test_topics_that_are_not_mirrored_have_no_copy() -> None:
    """Neither has the wildcard."""
    assert (
        missing_acls(
            [replace(READS, topic="secrets"), replace(READS, topic="*")], [], ROUTES, full=False
        )
        == []
    )
