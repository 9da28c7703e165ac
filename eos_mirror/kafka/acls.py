"""Lists and adds the ACLs of topics."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
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

from eos_mirror.core.side import Side
from eos_mirror.core.topic_acls import Acl
from eos_mirror.errors import MirrorError, NotAuthorized, SourceUnavailable, TargetUnavailable
from eos_mirror.kafka.client import new_admin
from eos_mirror.kafka.deadline import ANSWER, GRACE_S
from eos_mirror.kafka.errors import translated
from eos_mirror.kafka.reconnecting import ReconnectingClient

UNKNOWN = AclOperation.UNKNOWN.name
UNKNOWN_TO_US = "the client library does not know its operation"

CREATE_AT_ONCE = 1_000
"""A controller refuses a request that creates more than 10,000 ACLs. 5,000 took 2 s on idle
brokers, and an answer may take 10 s."""


class TopicAcls:
    """The topic ACLs of one cluster."""

    def __init__(self, config: Mapping[str, Any], *, side: Side) -> None:
        """
        Args:
            config: Client settings for connection and security.
            side: Which cluster it is; selects SourceUnavailable or TargetUnavailable.
        """
        self._config = dict(config)
        self._side = side
        self._client: ReconnectingClient[AdminClient] | None = (
            None  # created on first use: a client connects as soon as it exists
        )

    def list(self) -> set[Acl]:
        """
        Return every topic ACL, in one request; none if the cluster has no authorizer.

        Raises:
            NotAuthorized: DESCRIBE on the cluster is missing. The client then returns nothing
                instead of an error, so this right is checked separately.
            RestartTask: The cluster did not answer (SourceUnavailable or TargetUnavailable).
        """
        anybody: Any = None  # the stub's strings may be None
        every = AclBindingFilter(
            ResourceType.TOPIC,
            anybody,
            ResourcePatternType.ANY,
            anybody,
            anybody,
            AclOperation.ANY,
            AclPermissionType.ANY,
        )
        with translated("list access rights", side=self._side, of=self._client):
            answer = self._connected().describe_acls(every, request_timeout=ANSWER.total_seconds())
            found = answer.result(ANSWER.total_seconds() + GRACE_S)
        if not found:
            self._check_may_list()
        return {
            Acl(
                topic=one.name,
                principal=one.principal,
                host=one.host,
                operation=one.operation.name,
                permission=one.permission_type.name,
                prefixed=one.resource_pattern_type is ResourcePatternType.PREFIXED,
            )
            for one in found
        }

    def _check_may_list(self) -> None:
        with translated("ask for rights on the cluster", side=self._side, of=self._client):
            admin = self._connected()
            if not admin.list_topics(timeout=ANSWER.total_seconds()).brokers:
                # DescribeCluster would abort the process: see any_broker.py
                raise KafkaException(KafkaError(KafkaError._ALL_BROKERS_DOWN))  # noqa: SLF001 (public name)
            asked = admin.describe_cluster(
                include_authorized_operations=True, request_timeout=ANSWER.total_seconds()
            )
            rights = asked.result(ANSWER.total_seconds() + GRACE_S).authorized_operations
        if AclOperation.DESCRIBE not in (rights or ()):
            which = "source" if self._side is Side.SOURCE else "target"
            raise NotAuthorized(
                f"list access rights: grant DESCRIBE on the cluster of the {which} with "
                "kafka-acls.sh"
            )

    def add(self, acls: Collection[Acl]) -> dict[Acl, str] | None:
        """
        Add ACLs in few requests: one that is refused does not block the others.

        Args:
            acls: For full names of topics, never for a prefix or for every topic.

        Returns:
            The reason for each ACL that was refused; None if the cluster has no authorizer.

        Raises:
            NotAuthorized: ALTER on the cluster is missing.
            SourceUnavailable, TargetUnavailable: The cluster does not answer.
        """
        refused = {acl: UNKNOWN_TO_US for acl in acls if acl.operation == UNKNOWN}
        wanted = {_binding(acl): acl for acl in acls if acl not in refused}
        for binding, answer in self._create(list(wanted)):
            what = f"add an access right of {binding.name}"
            try:
                with translated(what, side=self._side, of=self._client):
                    answer.result(ANSWER.total_seconds() + GRACE_S)
            except (NotAuthorized, SourceUnavailable, TargetUnavailable):
                raise
            except MirrorError as exc:
                if _code_of(exc) == KafkaError.SECURITY_DISABLED:
                    return None
                refused[wanted[binding]] = str(exc)
        return refused

    def _create(self, acls: Sequence[AclBinding]) -> Iterator[tuple[AclBinding, Future[None]]]:
        """Yield the answers; the next request is sent after the answers to this one were used."""
        for start in range(0, len(acls), CREATE_AT_ONCE):
            some = list(acls[start : start + CREATE_AT_ONCE])
            answers = self._connected().create_acls(some, request_timeout=ANSWER.total_seconds())
            yield from answers.items()

    def _connected(self) -> AdminClient:
        if self._client is None:
            self._client = ReconnectingClient(new_admin, self._config)
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
