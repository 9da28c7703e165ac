"""Access rights of topics, listed and added."""

from collections.abc import Collection, Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from eos_mirror.core.topic_acls import Acl
from eos_mirror.errors import MirrorError, NotAuthorized, SourceUnavailable, TargetUnavailable
from eos_mirror.kafka.errors import translated
from eos_mirror.kafka.metadata import ANSWER
from eos_mirror.kafka.reconnecting import ReconnectingClient

UNKNOWN = AclOperation.UNKNOWN.name
UNKNOWN_TO_US = "the client library does not know its operation"


class TopicAcls:
    """Of one cluster; of topics by their whole names."""

    def __init__(self, config: Mapping[str, Any], *, source: bool) -> None:
        """
        Args:
            config: Connection and security.
            source: Whose fault it is when the cluster does not answer.
        """
        self._config = dict(config)
        self._source = source
        self._client: ReconnectingClient[AdminClient] | None = (
            None  # it connects as soon as there is one
        )

    def list(self) -> set[Acl]:
        """
        Everything there is; nothing, if the cluster has no access control.

        Raises:
            NotAuthorized: Describe on the cluster is missing. The client does not tell: it
                answers that there is nothing, so the right itself is asked for.
            RestartTask: By class.
        """
        anybody: Any = None  # the stub's strings may be None
        every = AclBindingFilter(
            ResourceType.TOPIC,
            anybody,
            ResourcePatternType.LITERAL,
            anybody,
            anybody,
            AclOperation.ANY,
            AclPermissionType.ANY,
        )
        with translated("list access rights", source=self._source, of=self._client):
            answer = self._connected().describe_acls(every, request_timeout=ANSWER.total_seconds())
            found = answer.result(ANSWER.total_seconds() + 1)
        if not found:
            self._check_may_list()
        return {
            Acl(
                topic=one.name,
                principal=one.principal,
                host=one.host,
                operation=one.operation.name,
                permission=one.permission_type.name,
            )
            for one in found
        }

    def _check_may_list(self) -> None:
        with translated("ask for rights on the cluster", source=self._source):
            asked = self._connected().describe_cluster(
                include_authorized_operations=True, request_timeout=ANSWER.total_seconds()
            )
            rights = asked.result(ANSWER.total_seconds() + 1).authorized_operations
        if AclOperation.DESCRIBE not in (rights or ()):
            which = "source" if self._source else "target"
            raise NotAuthorized(
                f"list access rights: grant DESCRIBE on the cluster of the {which} with "
                "kafka-acls.sh"
            )

    def add(self, acls: Collection[Acl]) -> dict[Acl, str] | None:
        """
        Add these, each by itself: one that is refused holds up no other.

        Returns:
            Why not, of those that the cluster refused; None if it has no access control.

        Raises:
            NotAuthorized: Alter on the cluster is missing.
            SourceUnavailable, TargetUnavailable: The cluster does not answer.
        """
        refused = {acl: UNKNOWN_TO_US for acl in acls if acl.operation == UNKNOWN}
        wanted = {_binding(acl): acl for acl in acls if acl not in refused}
        if not wanted:
            return refused
        answers = self._connected().create_acls(
            list(wanted), request_timeout=ANSWER.total_seconds()
        )
        for binding, answer in answers.items():
            what = f"add an access right of {binding.name}"
            try:
                with translated(what, source=self._source, of=self._client):
                    answer.result(ANSWER.total_seconds() + 1)
            except (NotAuthorized, SourceUnavailable, TargetUnavailable):
                raise
            except MirrorError as exc:
                if _code_of(exc) == KafkaError.SECURITY_DISABLED:
                    return None
                refused[wanted[binding]] = str(exc)
        return refused

    def _connected(self) -> AdminClient:
        if self._client is None:
            self._client = ReconnectingClient(AdminClient, self._config)
        return self._client.client


def _binding(acl: Acl) -> AclBinding:
    return AclBinding(
        ResourceType.TOPIC,
        acl.topic,
        ResourcePatternType.LITERAL,
        acl.principal,
        acl.host,
        AclOperation[acl.operation],
        AclPermissionType[acl.permission],
    )


def _code_of(error: MirrorError) -> int | None:
    cause = error.__cause__
    return cause.args[0].code() if isinstance(cause, KafkaException) else None
