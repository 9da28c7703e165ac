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


@pytest.mark.parametrize(
    "acl",
    [
        replace(READS, topic="secrets"),
        replace(READS, topic="ord"),
        replace(READS, topic="orders-", prefixed=True),
        replace(READS, topic="rders", prefixed=True),
        replace(READS, topic="A.", prefixed=True),
        replace(READS, topic="*", prefixed=True),
    ],
    ids=lambda acl: f"{acl.topic}{' prefixed' if acl.prefixed else ''}",
)
def test_an_acl_that_covers_no_mirrored_topic_is_not_copied(acl: Acl) -> None:
    """It has another name, or a prefix of no mirrored topic; a prefix `*` is no wildcard."""
    assert missing_acls([acl], [], ROUTES, full=False) == []


@pytest.mark.parametrize(
    "acl",
    [
        replace(READS, topic="*"),
        replace(READS, topic="ord", prefixed=True),
        replace(READS, topic="orders", prefixed=True),
    ],
    ids=["every topic", "prefix", "whole name as a prefix"],
)
@pytest.mark.parametrize(
    ("permission", "operation", "full", "becomes"),
    [
        ("ALLOW", "READ", False, "READ"),
        ("ALLOW", "ALL", False, "READ"),
        ("ALLOW", "WRITE", False, None),
        ("ALLOW", "WRITE", True, "WRITE"),
        ("ALLOW", "ALL", True, "ALL"),
        ("DENY", "READ", False, "READ"),
        ("DENY", "WRITE", False, None),
        ("DENY", "WRITE", True, "WRITE"),
    ],
)
def test_an_acl_of_many_topics_becomes_one_of_each_copy(
    acl: Acl, permission: str, operation: str, full: bool, becomes: str | None
) -> None:
    """The copy of a covered topic gets the right by its full name, by the same rules."""
    routes = {"orders": "A.orders", "orders-eu": "renamed"}
    acl = replace(acl, permission=permission, operation=operation, host="10.0.0.1")

    assert missing_acls([acl], [], routes, full=full) == [
        replace(acl, topic=copy, operation=becomes, prefixed=False)
        for copy in ("A.orders", "renamed")
        if becomes is not None
    ]


def test_a_right_that_several_acls_grant_is_added_once() -> None:
    """By name, by prefix and for every topic, the same principal gets one ACL of the copy."""
    source = [READS, replace(READS, topic="ord", prefixed=True), replace(READS, topic="*")]
    added = [on_the_copy(READS, "READ")]

    assert missing_acls(source, [], ROUTES, full=False) == added
    assert missing_acls(source, added, ROUTES, full=False) == []


def test_an_acl_of_many_topics_on_the_target_does_not_stand_for_that_of_the_copy() -> None:
    """Only the ACL of the full name counts as present: the copy keeps it when a prefix is gone."""
    wide = [replace(READS, topic="A.", prefixed=True), replace(READS, topic="*")]
    prefix = replace(READS, topic="A.orders", prefixed=True)

    assert missing_acls([READS], [*wide, prefix], ROUTES, full=False) == [
        on_the_copy(READS, "READ")
    ]
