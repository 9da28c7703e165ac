"""Which ACLs a copy gets, with the cases of Kafka's own tests."""

from dataclasses import replace

import pytest

from eos_mirror.core.topic_acls import Acl, missing_acls

READS = Acl(topic="orders", principal="User:reader", host="*", operation="READ", permission="ALLOW")
ROUTES = {"orders": "A.orders"}


def on_the_copy(acl: Acl, operation: str) -> Acl:
    """Return the ACL for the remote topic, with this operation."""
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
    """An ACL is copied unchanged, except that ALLOW ALL becomes ALLOW READ."""
    acl = replace(READS, permission=permission, operation=operation)
    assert missing_acls([acl], [], ROUTES, full=False) == [on_the_copy(acl, becomes)]


def test_nobody_gets_the_right_to_write_a_copy() -> None:
    """An ACL that allows WRITE is not copied, because only the mirror writes the copy."""
    assert missing_acls([replace(READS, operation="WRITE")], [], ROUTES, full=False) == []


def test_all_rights_are_copied_if_they_are_asked_for() -> None:
    """With `full`, all ACLs are copied unchanged, for a copy that applications will write."""
    source = [replace(READS, operation=operation) for operation in ("ALL", "READ", "WRITE")]
    wanted = [on_the_copy(acl, acl.operation) for acl in source]
    assert missing_acls(source, [], ROUTES, full=True) == wanted


def test_what_is_there_is_not_added_again() -> None:
    """An ACL that exists, or that two source ACLs map to, is added only once."""
    source = [READS, replace(READS, operation="ALL")]
    assert missing_acls(source, [], ROUTES, full=False) == [on_the_copy(READS, "READ")]
    assert missing_acls(source, [on_the_copy(READS, "READ")], ROUTES, full=False) == []


def test_topics_that_are_not_mirrored_have_no_copy() -> None:
    """ACLs of topics that are not mirrored, and of the wildcard, are not copied."""
    assert (
        missing_acls(
            [replace(READS, topic="secrets"), replace(READS, topic="*")], [], ROUTES, full=False
        )
        == []
    )
