"""
Decides which ACLs of source topics are copied to their remote topics.

A principal that may read the source topic may read the copy. Only the mirror may write the copy,
so ALLOW WRITE is not copied, and ALLOW ALL becomes ALLOW READ; unless all rights are wanted, as for
a copy that applications will switch to. DENY is copied unchanged.

Source: Kafka's MirrorSourceConnector (KIP-382).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final

ALL: Final = "ALL"
ALLOW: Final = "ALLOW"
READ: Final = "READ"
WRITE: Final = "WRITE"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Acl:
    """
    One binding of one topic by its full name.

    Attributes:
        operation, permission: Kafka's names, such as READ and ALLOW.
    """

    topic: str
    principal: str
    host: str
    operation: str
    permission: str


def missing_acls(
    source: Collection[Acl], target: Collection[Acl], routes: Mapping[str, str], *, full: bool
) -> list[Acl]:
    """
    Return the bindings to add on the target; none is ever removed there.

    Args:
        source, target: Existing bindings of topics by their full names.
        routes: Remote topic by source topic.
        full: Also copy ALLOW WRITE, and ALLOW ALL as it is.
    """
    wanted = {
        replace(acl, topic=routes[acl.topic], operation=acl.operation if full else _downgraded(acl))
        for acl in source
        if acl.topic in routes
        and (full or not (acl.permission == ALLOW and acl.operation == WRITE))
    }
    return sorted(wanted - set(target))


def _downgraded(acl: Acl) -> str:
    return READ if acl.permission == ALLOW and acl.operation == ALL else acl.operation
