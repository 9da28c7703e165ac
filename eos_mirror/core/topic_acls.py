"""
Which access rights of source topics their copies get.

Who may read the original may read the copy. Nobody is let in to write it but the mirror, so what
allows writing is left out, and what allows everything allows reading; unless all rights are asked
for, as for a copy that applications will move to. A denial is a denial.

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
    One binding of one topic by its whole name.

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
    What has to be added on the target; nothing is ever taken away there.

    Args:
        source, target: What there is, of topics by their whole names.
        routes: Remote topic by source topic.
        full: Also what allows writing.
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
