"""Who is in a consumer group."""

from dataclasses import dataclass
from datetime import timedelta

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from eos_mirror.kafka.errors import translated
from eos_mirror.kafka.metadata import ANSWER, PATIENCE
from eos_mirror.kafka.retry import retrying

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
