"""
Decides which ACLs of source topics are copied to their remote topics.

A principal that may read the source topic may read the copy. Only the mirror may write the copy,
so ALLOW WRITE is not copied, and ALLOW ALL becomes ALLOW READ; unless all rights are wanted, as for
a copy that applications will switch to. DENY is copied unchanged, except DENY WRITE for many
topics: nothing that is copied grants WRITE.

An ACL of the source may cover many topics: by a prefix, or all of them. Each copy gets an ACL for
its full name instead. The same prefix could cover other topics of the target.

Source: Kafka's MirrorSourceConnector (KIP-382), which copies ACLs of full names only.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

ALL: Final = "ALL"
ALLOW: Final = "ALLOW"
READ: Final = "READ"
WRITE: Final = "WRITE"
EVERY_TOPIC: Final = "*"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Acl:
    """
    One ACL of topics.

    Attributes:
        topic: The full name of one topic; `*` for every topic; or a prefix of names.
        operation, permission: Kafka's names, such as READ and ALLOW.
        prefixed: True if `topic` is a prefix.
    """

    topic: str
    principal: str
    host: str
    operation: str
    permission: str
    prefixed: bool = False


def missing_acls(
    source: Collection[Acl], target: Collection[Acl], routes: Mapping[str, str], *, full: bool
) -> list[Acl]:
    """
    Return the ACLs to add on the target, by full names; none is ever removed there.

    Args:
        source, target: The existing ACLs.
        routes: Remote topic by source topic.
        full: Also copy ALLOW WRITE, and ALLOW ALL as it is.
    """
    wanted = {
        replace(
            acl,
            topic=routes[topic],
            operation=acl.operation if full else _downgraded(acl),
            prefixed=False,
        )
        for acl in source
        if full or not _is_needless(acl)
        for topic in _covered(acl, routes)
    }
    return sorted(wanted - set(target))


def _is_needless(acl: Acl) -> bool:
    """
    Return True if the copies need no such ACL, because none that is copied grants WRITE.

    A denial of WRITE on many topics protects the source, and would lock the mirror out of the
    copies. One for the full name of a topic is copied, as MirrorMaker 2 does.
    """
    is_broad = acl.prefixed or acl.topic == EVERY_TOPIC
    return acl.operation == WRITE and (acl.permission == ALLOW or is_broad)


def _covered(acl: Acl, topics: Collection[str]) -> Iterable[str]:
    if acl.prefixed:
        return (topic for topic in topics if topic.startswith(acl.topic))
    if acl.topic == EVERY_TOPIC:
        return topics
    return (acl.topic,) if acl.topic in topics else ()


def _downgraded(acl: Acl) -> str:
    return READ if acl.permission == ALLOW and acl.operation == ALL else acl.operation
