"""Who is in a consumer group, and where it is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AdminClient

from eos_mirror.core.records import Position, TopicPartition
from eos_mirror.kafka.errors import as_mirror_error, translated
from eos_mirror.kafka.metadata import ANSWER, PATIENCE
from eos_mirror.kafka.retry import retrying
from eos_mirror.ports import GroupOffset

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
    return retrying(lambda: _members(admin, group, source=source), within=within)


def _members(admin: AdminClient, group: str, *, source: bool) -> list[GroupMember]:
    answer = admin.describe_consumer_groups([group], request_timeout=ANSWER.total_seconds())
    with translated(f"describe group {group}", source=source):
        try:
            described = answer[group].result(ANSWER.total_seconds() + 1)
        except KafkaException as exc:
            if exc.args[0].code() in NO_SUCH_GROUP | {KafkaError.GROUP_AUTHORIZATION_FAILED}:
                return []
            raise
    return [GroupMember(client_id=m.client_id, host=m.host) for m in described.members]


def group_offsets(
    admin: AdminClient, group: str, partitions: Sequence[TopicPartition], *, source: bool
) -> dict[TopicPartition, GroupOffset]:
    """
    Committed offsets of a group; partitions without one are left out.

    Args:
        source: Whose fault it is when the cluster does not answer.

    Raises:
        RestartTask: By class.
    """
    if not partitions:
        return {}
    return retrying(lambda: _offsets(admin, group, partitions, source=source), within=PATIENCE)


def _offsets(
    admin: AdminClient, group: str, partitions: Sequence[TopicPartition], *, source: bool
) -> dict[TopicPartition, GroupOffset]:
    wanted = ConsumerGroupTopicPartitions(group, [ClientPartition(*p) for p in partitions])
    with translated(f"read the offsets of group {group}", source=source):
        answer = admin.list_consumer_group_offsets([wanted], request_timeout=ANSWER.total_seconds())
        try:
            found = answer[group].result(ANSWER.total_seconds() + 1).topic_partitions or []
        except KafkaException as exc:
            if exc.args[0].code() in NO_SUCH_GROUP:
                return {}
            raise
    for one in found:
        if one.error is not None:
            raise as_mirror_error(one.error, f"read the offsets of group {group}", source=source)
    return {
        TopicPartition(p.topic, p.partition): GroupOffset(
            position=Position(p.offset), metadata=p.metadata or ""
        )
        for p in found
        if p.offset >= 0
    }


def set_group_offsets(
    admin: AdminClient, group: str, offsets: Mapping[TopicPartition, GroupOffset], *, source: bool
) -> None:
    """
    Commit offsets for a group without members.

    Raises:
        RestartTask: By class; a group with members is refused by the broker.
    """
    theirs = [
        ClientPartition(*partition, offset.position.next_offset, metadata=offset.metadata)
        for partition, offset in offsets.items()
    ]
    with translated(f"set the offsets of group {group}", source=source):
        answer = admin.alter_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(group, theirs)], request_timeout=ANSWER.total_seconds()
        )
        done = answer[group].result(ANSWER.total_seconds() + 1).topic_partitions or []
    for one in done:
        if one.error is not None:
            raise as_mirror_error(one.error, f"set an offset of group {group}", source=source)
