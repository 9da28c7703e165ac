"""Members and committed offsets of a consumer group."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import chain, repeat
from typing import Any, NamedTuple, cast

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, KafkaException
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AdminClient, MemberDescription

from eos_mirror.core.records import Position, TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.errors import MirrorError
from eos_mirror.kafka.client import new_consumer
from eos_mirror.kafka.deadline import ANSWER, PATIENCE, Deadline
from eos_mirror.kafka.errors import as_mirror_error, translated
from eos_mirror.kafka.reconnecting import ReconnectingClient
from eos_mirror.kafka.retry import retrying
from eos_mirror.ports import GroupOffset

COORDINATOR_ANSWERS_S = (1.0, 2.0, 4.0)
"""How long to wait in the first tries. While a cluster creates __consumer_offsets, the client may
miss that the coordinator is available, and then reports it only when the request times out."""

TO_A_COORDINATOR_S = 3600.0
"""Timeout of every admin request to the coordinator of a group. It must not expire: we wait on the
future instead. If the client's own timeout expires before it has found the coordinator, finding it
later frees the request twice and aborts the process (librdkafka issue 4605)."""

NO_SUCH_GROUP = frozenset({KafkaError.GROUP_ID_NOT_FOUND})


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMember:
    """
    A member as the coordinator knows it; a dead member remains until its session expires.

    Attributes:
        owns: The partitions that it was assigned; none while the group rebalances.
    """

    client_id: str
    host: str
    owns: tuple[TopicPartition, ...] = ()


def group_members(
    admin: AdminClient, group: str, *, side: Side, within: timedelta = PATIENCE
) -> list[GroupMember]:
    """
    Return the members of a group; none if it does not exist or may not be described.

    Args:
        side: Which cluster it is; selects SourceUnavailable or TargetUnavailable.

    Raises:
        RestartTask: The cluster did not answer (SourceUnavailable or TargetUnavailable).
    """
    return members_or_none(admin, group, side=side, within=within) or []


def members_or_none(
    admin: AdminClient, group: str, *, side: Side, within: timedelta = PATIENCE
) -> list[GroupMember] | None:
    """Return the members of a group as `group_members`; None if it may not be described."""
    waits_s = coordinator_waits_s()
    return retrying(
        lambda _: _members(admin, group, side=side, wait_s=next(waits_s)), within=within
    )


def hosts_of_members(admin: AdminClient, group: str, *, side: Side) -> set[str]:
    """
    Return where the members of a group of any kind are, such as workers of Kafka Connect.

    Raises:
        SourceUnavailable, TargetUnavailable: The cluster did not answer.
    """

    def ask(deadline: Deadline) -> set[str]:
        with translated(f"describe group {group}", side=side):
            found: Any = admin.list_groups(group, timeout=deadline.answer_s)
        return {member.client_host for one in found for member in one.members}

    return retrying(ask)


def coordinator_waits_s() -> Iterator[float]:
    """Yield how long to wait for a group's coordinator: in the first try, the second, and so on."""
    return chain(COORDINATOR_ANSWERS_S, repeat(ANSWER.total_seconds()))


def _members(
    admin: AdminClient, group: str, *, side: Side, wait_s: float
) -> list[GroupMember] | None:
    answer = admin.describe_consumer_groups([group], request_timeout=TO_A_COORDINATOR_S)
    with translated(f"describe group {group}", side=side):
        try:
            described = answer[group].result(wait_s)
        except KafkaException as exc:
            if exc.args[0].code() in NO_SUCH_GROUP:
                return []
            if exc.args[0].code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
                return None
            raise
    return [
        GroupMember(
            client_id=m.client_id,
            host=m.host,
            owns=tuple(TopicPartition(p.topic, p.partition) for p in _assigned(m)),
        )
        for m in described.members
    ]


def _assigned(member: MemberDescription) -> Sequence[ClientPartition]:
    return member.assignment.topic_partitions if member.assignment else ()


class CommittedOrReasons(NamedTuple):
    """
    Committed offsets, and reasons for the partitions whose offset is unknown.

    Attributes:
        offsets: Committed offset by partition.
        reasons: Error by partition; says why its offset is unknown.
    """

    offsets: dict[TopicPartition, GroupOffset]
    reasons: dict[TopicPartition, MirrorError]


class CommittedOffsets:
    """
    Committed offsets of one group, for a process that must not crash.

    An admin client that is answered NOT_COORDINATOR crashes its process (librdkafka issue 5040): it
    searches for the new coordinator in a structure that only consumers have.
    """

    def __init__(
        self, config: Mapping[str, Any], group: str, *, side: Side, stable: bool = False
    ) -> None:
        """
        Args:
            config: Client settings for connection and security.
            group: Never joined.
            side: Which cluster it is; selects SourceUnavailable or TargetUnavailable.
            stable: Wait for the end of open transactions that contain offsets. If False, the answer
                is the last offset that was committed, even if a later one is undecided.
        """
        self._config = {
            **config,
            "group.id": group,
            "isolation.level": "read_committed" if stable else "read_uncommitted",
            "enable.auto.commit": False,
        }
        self._group = group
        self._side = side
        self._client: ReconnectingClient[Consumer] | None = (
            None  # created on first use: a client connects as soon as it exists
        )

    def read(
        self, partitions: Sequence[TopicPartition], deadline: Deadline | None = None
    ) -> dict[TopicPartition, GroupOffset]:
        """
        Return offsets by partition; partitions without one are skipped.

        Args:
            deadline: Of the operation that reads them; limits the wait for the answer.

        Raises:
            RestartTask: The cluster did not answer (SourceUnavailable or TargetUnavailable).
        """
        offsets, reasons = self.read_or_reasons(partitions, deadline)
        for reason in reasons.values():
            raise reason
        return offsets

    def read_or_reasons(
        self, partitions: Sequence[TopicPartition], deadline: Deadline | None = None
    ) -> CommittedOrReasons:
        """
        Return offsets, and a reason for each partition whose offset the coordinator withholds.

        An example is a partition of a topic that may not be described.

        Raises:
            RestartTask: The cluster did not answer (SourceUnavailable or TargetUnavailable). No
                partition's offset is known.
        """
        offsets: dict[TopicPartition, GroupOffset] = {}
        reasons: dict[TopicPartition, MirrorError] = {}
        if not partitions:
            return CommittedOrReasons(offsets, reasons)
        if self._client is None:
            self._client = ReconnectingClient(new_consumer, self._config)
        what = f"read the offsets of group {self._group}"
        wanted = [ClientPartition(*partition) for partition in partitions]
        answer_s = ANSWER.total_seconds() if deadline is None else deadline.answer_s
        with translated(what, side=self._side, of=self._client):
            found = self._client.client.committed(wanted, timeout=answer_s)
        for one in found:
            partition = TopicPartition(one.topic, one.partition)
            if one.error is not None:
                said = f"{what} on {partition}"
                reasons[partition] = as_mirror_error(one.error, said, side=self._side)
            elif (offset := as_group_offset(one)) is not None:
                offsets[partition] = offset
        return CommittedOrReasons(offsets, reasons)


def as_group_offset(found: ClientPartition) -> GroupOffset | None:
    """Convert a committed offset that the client found; None if there is none."""
    if found.offset < 0:
        return None
    epoch = cast("int | None", found.leader_epoch)
    return GroupOffset(
        position=Position(found.offset, None if epoch is None or epoch < 0 else epoch),
        metadata=_metadata(found),
    )


def _metadata(found: ClientPartition) -> str:
    """
    Return the metadata of a committed offset; empty where the client returns no valid text.

    The client copies it without a terminator (librdkafka issue 4649) and reads the memory after it.
    Only metadata that confluent-kafka wrote, such as all of our own, ends with a NUL and arrives
    intact. Kafka Streams writes no NUL. The offset itself is right in any case.
    """
    try:
        text = found.metadata or ""
    except UnicodeDecodeError:
        return ""
    return text if "".join(text.split()).isprintable() else ""


def set_group_offsets(
    admin: AdminClient, group: str, offsets: Mapping[TopicPartition, GroupOffset], *, side: Side
) -> None:
    """
    Commit offsets for a group without members.

    Waits for a coordinator that is moving or still loading. A request that was not answered is not
    repeated: it might be applied late, on top of what the group commits by then.

    Raises:
        RestartTask: The cluster did not answer (SourceUnavailable or TargetUnavailable), or the
            broker refused it because the group has members.
    """
    theirs = [
        ClientPartition(*partition, offset.position.next_offset, metadata=offset.metadata)
        for partition, offset in offsets.items()
    ]
    retrying(lambda _: _set_group_offsets(admin, group, theirs, side=side))


def _set_group_offsets(
    admin: AdminClient, group: str, theirs: list[ClientPartition], *, side: Side
) -> None:
    with translated(f"set the offsets of group {group}", side=side):
        answer = admin.alter_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(group, theirs)], request_timeout=TO_A_COORDINATOR_S
        )
        done = answer[group].result(PATIENCE.total_seconds()).topic_partitions or []
    for one in done:
        if one.error is not None:
            raise as_mirror_error(one.error, f"set an offset of group {group}", side=side)
