"""
The groups of a cluster and their offsets, many at once.

For a process that may end: an admin client that asks a group's coordinator while that moves can
take its process along (`groups.CommittedOffsets` is for those that may not).
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Future
from itertools import islice
from typing import Any

from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
)
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AdminClient

from eos_mirror.core.records import TopicPartition
from eos_mirror.kafka.errors import translated
from eos_mirror.kafka.groups import NO_SUCH_GROUP, TO_A_COORDINATOR_S, as_group_offset
from eos_mirror.kafka.metadata import ANSWER
from eos_mirror.ports import GroupOffset

AT_ONCE = 1000
"""Requests under way. The client cannot ask for the offsets of two groups in one."""

WITHOUT_MEMBERS = frozenset({ConsumerGroupState.EMPTY, ConsumerGroupState.DEAD})
REFUSED = frozenset(
    {
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.UNKNOWN_MEMBER_ID,
    }
)
"""What concerns one group; everything else ends the round."""


class GroupOffsets:
    """
    Of one cluster. One thread uses it.

    Attributes:
        requests: Sent so far.
        refused: Why not, by group, where the cluster refused the last request about it.
    """

    def __init__(self, config: Mapping[str, Any], *, source: bool) -> None:
        """
        Args:
            config: Connection and security.
            source: Whose fault it is when the cluster does not answer.
        """
        self._admin = AdminClient(dict(config))
        self._source = source
        self.requests = 0
        self.refused: dict[str, str] = {}

    def names(self) -> set[str]:
        """
        Every group of consumers, also one that only ever committed; not those of Connect or of
        share consumers.

        Raises:
            RestartTask: By class.
        """
        with translated("list groups", source=self._source):
            return {group.group_id for group in self._list().valid}

    def read(self, groups: Collection[str]) -> dict[str, dict[TopicPartition, GroupOffset]]:
        """
        What each group has committed; groups that may not be asked, or are gone, are left out.

        Raises:
            RestartTask: By class.
        """

        def ask(group: str) -> "Future[Any]":
            asked = [ConsumerGroupTopicPartitions(group)]
            return self._admin.list_consumer_group_offsets(
                asked, request_timeout=TO_A_COORDINATOR_S
            )[group]

        found = {}
        for group, answer in self._all(groups, ask, "read the offsets of group"):
            offsets = {
                TopicPartition(one.topic, one.partition): offset
                for one in answer.topic_partitions or ()
                if one.error is None and (offset := as_group_offset(one)) is not None
            }
            if offsets:
                found[group] = offsets
        return found

    def without_members(self, groups: Collection[str]) -> set[str]:
        """
        Those of them that nobody is in, also because they do not exist or may not be described.

        Raises:
            RestartTask: By class.
        """

        def ask(group: str) -> "Future[Any]":
            return self._admin.describe_consumer_groups(
                [group], request_timeout=TO_A_COORDINATOR_S
            )[group]

        states = self._states()
        unsaid = [g for g in groups if states.get(g) is ConsumerGroupState.UNKNOWN]
        states.update({g: one.state for g, one in self._all(unsaid, ask, "describe group")})
        return {g for g in groups if states.get(g, ConsumerGroupState.DEAD) in WITHOUT_MEMBERS}

    def _states(self) -> dict[str, ConsumerGroupState]:
        """Of every group, with one request to each broker; old ones (before 2.6) do not say."""
        with translated("list groups", source=self._source):
            listed = self._list()
            for exc in listed.errors or ():
                raise exc
        return {group.group_id: group.state for group in listed.valid}

    def _list(self) -> Any:
        self.requests += 1
        listed = self._admin.list_consumer_groups(request_timeout=ANSWER.total_seconds())
        return listed.result(ANSWER.total_seconds() + 1)

    def write(self, wanted: Mapping[str, Mapping[TopicPartition, GroupOffset]]) -> set[str]:
        """
        Commit for groups without members; the cluster refuses it for others.

        Returns:
            The groups that have all of it now; for the others see `refused`.

        Raises:
            RestartTask: By class.
        """

        def ask(group: str) -> "Future[Any]":
            theirs = [
                ClientPartition(*partition, offset.position.next_offset, metadata=offset.metadata)
                for partition, offset in wanted[group].items()
            ]
            return self._admin.alter_consumer_group_offsets(
                [ConsumerGroupTopicPartitions(group, theirs)], request_timeout=TO_A_COORDINATOR_S
            )[group]

        done = set()
        for group, answer in self._all(wanted, ask, "set the offsets of group"):
            errors = [one.error for one in answer.topic_partitions or () if one.error is not None]
            if errors:
                self.refused[group] = errors[0].str()
            else:
                done.add(group)
        return done

    def _all(
        self, groups: Collection[str], ask: Callable[[str], "Future[Any]"], what: str
    ) -> Iterator[tuple[str, Any]]:
        """Answers by group, without those that are refused or about a group that is not there."""
        left = iter(sorted(groups))
        while some := list(islice(left, AT_ONCE)):
            self.requests += len(some)
            answers = {group: ask(group) for group in some}
            for group, answer in answers.items():
                self.refused.pop(group, None)
                with translated(f"{what} {group}", source=self._source):
                    found = self._result(group, answer)
                if found is not None:
                    yield group, found

    def _result(self, group: str, answer: "Future[Any]") -> Any:
        """None if there is no such group, or if it is refused."""
        try:
            return answer.result(ANSWER.total_seconds())
        except KafkaException as exc:
            error = exc.args[0]
            if error.code() in REFUSED:
                self.refused[group] = error.str()
            elif error.code() not in NO_SUCH_GROUP:
                raise
            return None
