"""Who is in a consumer group, and where it is."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import chain, repeat
from typing import Any, NamedTuple, cast

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, KafkaException
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AdminClient

from eos_mirror.core.records import Position, TopicPartition
from eos_mirror.errors import MirrorError
from eos_mirror.kafka.errors import as_mirror_error, translated
from eos_mirror.kafka.metadata import ANSWER, PATIENCE
from eos_mirror.kafka.reconnecting import ReconnectingClient
from eos_mirror.kafka.retry import retrying
from eos_mirror.ports import GroupOffset

COORDINATOR_ANSWERS_S = (1.0, 2.0, 4.0)
"""How long to wait at first. While a cluster makes __consumer_offsets, the client may miss that the
coordinator is there, and then tells so only when the request times out."""

TO_A_COORDINATOR_S = 3600.0
"""Request timeout of every admin request that goes to the coordinator of a group: none, as far as
we are concerned, who wait on the future instead. When the client's own time is up before it has
found the coordinator, finding it later frees the request twice and aborts the process (librdkafka
issue 4605)."""

NO_SUCH_GROUP = frozenset({KafkaError.GROUP_ID_NOT_FOUND})


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMember:
    """A member as the coordinator knows it; a dead one stays until its session ends."""

    client_id: str
    host: str


def group_members(
    admin: AdminClient, group: str, *, source: bool, within: timedelta = PATIENCE
) -> list[GroupMember]:
    """
    Members of a group; none if it does not exist or may not be described.

    Args:
        source: Whose fault it is when the cluster does not answer.

    Raises:
        RestartTask: By class.
    """
    waits_s = coordinator_waits_s()
    return retrying(
        lambda: _members(admin, group, source=source, wait_s=next(waits_s)), within=within
    )


def coordinator_waits_s() -> Iterator[float]:
    """How long to wait for the coordinator of a group: the first time, the second, and so on."""
    return chain(COORDINATOR_ANSWERS_S, repeat(ANSWER.total_seconds()))


def _members(admin: AdminClient, group: str, *, source: bool, wait_s: float) -> list[GroupMember]:
    answer = admin.describe_consumer_groups([group], request_timeout=TO_A_COORDINATOR_S)
    with translated(f"describe group {group}", source=source):
        try:
            described = answer[group].result(wait_s)
        except KafkaException as exc:
            if exc.args[0].code() in NO_SUCH_GROUP | {KafkaError.GROUP_AUTHORIZATION_FAILED}:
                return []
            raise
    return [GroupMember(client_id=m.client_id, host=m.host) for m in described.members]


class CommittedOrReasons(NamedTuple):
    """
    Attributes:
        offsets: By partition.
        reasons: Why nothing is known of others, by partition.
    """

    offsets: dict[TopicPartition, GroupOffset]
    reasons: dict[TopicPartition, MirrorError]


class CommittedOffsets:
    """
    Committed offsets of one group, for a process that must not end.

    An admin client that asks while the group's coordinator moves can take its process along
    (librdkafka 2.16 looks for a coordinator that only consumers have); a consumer cannot.
    """

    def __init__(
        self, config: Mapping[str, Any], group: str, *, source: bool, stable: bool = False
    ) -> None:
        """
        Args:
            config: Connection and security.
            group: Never joined.
            source: Whose fault it is when the cluster does not answer.
            stable: Wait for the end of transactions with offsets in them. Without it, the answer is
                the last offset that was committed, although a later one is undecided.
        """
        self._config = {
            **config,
            "group.id": group,
            "isolation.level": "read_committed" if stable else "read_uncommitted",
            "enable.auto.commit": False,
        }
        self._group = group
        self._source = source
        self._client: ReconnectingClient[Consumer] | None = (
            None  # it connects as soon as there is one
        )

    def read(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, GroupOffset]:
        """
        Offsets by partition; partitions without one are left out.

        Raises:
            RestartTask: By class.
        """
        offsets, reasons = self.read_or_reasons(partitions)
        for reason in reasons.values():
            raise reason
        return offsets

    def read_or_reasons(self, partitions: Sequence[TopicPartition]) -> CommittedOrReasons:
        """
        The same, with a reason for each partition of which the coordinator does not say anything,
        such as one of a topic that may not be described.

        Raises:
            RestartTask: By class; nothing is known of any partition.
        """
        offsets: dict[TopicPartition, GroupOffset] = {}
        reasons: dict[TopicPartition, MirrorError] = {}
        if not partitions:
            return CommittedOrReasons(offsets, reasons)
        if self._client is None:
            self._client = ReconnectingClient(Consumer, self._config)
        what = f"read the offsets of group {self._group}"
        wanted = [ClientPartition(*partition) for partition in partitions]
        with translated(what, source=self._source, of=self._client):
            found = self._client.client.committed(wanted, timeout=ANSWER.total_seconds())
        for one in found:
            partition = TopicPartition(one.topic, one.partition)
            if one.error is not None:
                said = f"{what} on {partition}"
                reasons[partition] = as_mirror_error(one.error, said, source=self._source)
            elif (offset := as_group_offset(one)) is not None:
                offsets[partition] = offset
        return CommittedOrReasons(offsets, reasons)


def as_group_offset(found: ClientPartition) -> GroupOffset | None:
    """What the client found; None if there is none."""
    if found.offset < 0:
        return None
    epoch = cast("int | None", found.leader_epoch)
    return GroupOffset(
        position=Position(found.offset, None if epoch is None or epoch < 0 else epoch),
        metadata=_metadata(found),
    )


def _metadata(found: ClientPartition) -> str:
    """
    What the committer noted with the offset; empty where the client makes no text of it.

    The client copies it without an end (librdkafka issue 4649) and reads what follows in memory.
    Only what confluent-kafka wrote, as all of our own metadata, has a NUL at its end and arrives
    as it is. Kafka Streams writes none. The offset itself is right in any case.
    """
    try:
        text = found.metadata or ""
    except UnicodeDecodeError:
        return ""
    return text if "".join(text.split()).isprintable() else ""


def set_group_offsets(
    admin: AdminClient, group: str, offsets: Mapping[TopicPartition, GroupOffset], *, source: bool
) -> None:
    """
    Commit offsets for a group without members.

    A coordinator that is moving or still loading is waited for. A request that was not answered is
    not made again: it might be done late, on top of what the group commits by then.

    Raises:
        RestartTask: By class; a group with members is refused by the broker.
    """
    theirs = [
        ClientPartition(*partition, offset.position.next_offset, metadata=offset.metadata)
        for partition, offset in offsets.items()
    ]
    retrying(lambda: _set_group_offsets(admin, group, theirs, source=source), within=PATIENCE)


def _set_group_offsets(
    admin: AdminClient, group: str, theirs: list[ClientPartition], *, source: bool
) -> None:
    with translated(f"set the offsets of group {group}", source=source):
        answer = admin.alter_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(group, theirs)], request_timeout=TO_A_COORDINATOR_S
        )
        done = answer[group].result(PATIENCE.total_seconds()).topic_partitions or []
    for one in done:
        if one.error is not None:
            raise as_mirror_error(one.error, f"set an offset of group {group}", source=source)
