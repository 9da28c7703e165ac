"""Copies the ACLs of source topics to their remote topics."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from itertools import islice

from eos_mirror.core.reported import Reported
from eos_mirror.core.side import Side
from eos_mirror.core.topic_acls import Acl, missing_acls
from eos_mirror.errors import NotAuthorized
from eos_mirror.kafka.acls import TopicAcls
from eos_mirror.runtime.control import EventSink
from eos_mirror.settings import clients
from eos_mirror.settings.model import FlowSettings
from eos_mirror.settings.values import AclMode

NAMED = 5
"""One ACL of the source can be refused for every topic. The log line names this many."""


class AclSync:
    """Syncs the ACLs of one flow. It only adds ACLs, and logs a permanent obstacle once."""

    def __init__(
        self,
        settings: FlowSettings,
        routes: Callable[[], Mapping[str, str]],
        *,
        on_event: EventSink,
    ) -> None:
        """
        Args:
            routes: Returns the current remote topic of each source topic.
            on_event: Receives log events.
        """
        self._source = TopicAcls(clients.source_admin(settings), side=Side.SOURCE)
        self._target = TopicAcls(clients.target_admin(settings), side=Side.TARGET)
        self._is_full = settings.acls_mode is AclMode.FULL
        self._routes = routes
        self._on_event = on_event
        self._reported = Reported()

    def follow(self) -> None:
        """
        Add the missing ACLs to the target.

        Raises:
            RestartTask: A cluster did not answer (SourceUnavailable or TargetUnavailable).
        """
        try:
            there, here = self._source.list(), self._target.list()
            missing = missing_acls(there, here, self._routes(), full=self._is_full)
            refused = self._target.add(missing)
        except NotAuthorized as exc:
            self._tell_once(str(exc))
            return
        if refused is None:
            self._tell_once("the target has no access control")
            return
        for acl in missing:
            if acl not in refused:
                self._on_event("acl.added", _fields(acl))
        if refused:
            self._tell_once(_reason(refused))
        else:
            self._reported.over()

    def _tell_once(self, reason: str) -> None:
        if self._reported.is_new(reason):
            self._on_event("acls.skipped", {"reason": reason})


def _fields(acl: Acl) -> dict[str, str]:
    fields = asdict(acl)
    del fields["prefixed"]  # an ACL of a copy never is
    return fields


def _reason(refused: Mapping[Acl, str]) -> str:
    named = [f"{_named(acl)}: {why}" for acl, why in islice(refused.items(), NAMED)]
    if len(refused) > NAMED:
        named.append(f"and {len(refused) - NAMED} more")
    return "; ".join(named)


def _named(acl: Acl) -> str:
    return f"{acl.permission} {acl.operation} on {acl.topic} to {acl.principal} from {acl.host}"
