"""
Consumer groups of a cluster and their committed offsets, many groups in parallel.

Only for a process that may crash: an admin client that reads the offsets of a group at the moment
when the group's coordinator moves crashes its process. `groups.CommittedOffsets` does not.
"""

import math
import time
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Future
from itertools import islice
from typing import Any, NamedTuple

from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
)
from confluent_kafka import TopicPartition as ClientPartition

from eos_mirror.core.records import TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.errors import SourceUnavailable, TargetUnavailable
from eos_mirror.kafka.client import new_admin
from eos_mirror.kafka.errors import UNREACHABLE, translated
from eos_mirror.kafka.groups import NO_SUCH_GROUP, TO_A_COORDINATOR_S, as_group_offset
from eos_mirror.kafka.reconnecting import ReconnectingClient
from eos_mirror.ports import GroupOffset

AT_ONCE = 1000
"""Requests in flight. The client cannot ask for the offsets of two groups in one request."""

WITHIN_S = 5.0
"""Limit of each wait. All requests in flight share it, so one missing coordinator costs as much as
a hundred. In the tests, one broker answers a thousand requests in 0.3 s, and a thousand commits in
1.4 s."""

ALIVE_FOR_S = 30.0
"""For this long, an answer proves that the cluster as a whole is reachable."""

WITHOUT_MEMBERS = frozenset({ConsumerGroupState.EMPTY, ConsumerGroupState.DEAD})
MAY_PASS = UNREACHABLE
"""Codes of a coordinator that is moving, loading or away. All others are a refusal."""

NAMELESS = (
    "it has no name, and the client library sends no request about it. "
    "groups = .+ excludes it without this report"
)


class Refusal(NamedTuple):
    """
    Why a request about one group failed.

    Attributes:
        reason: Text for people.
        may_pass: True if the coordinator is moving or away.
    """

    reason: str
    may_pass: bool


HAS_MEMBERS = "it has members on the target"
NO_ANSWER = Refusal("its coordinator does not answer", may_pass=True)


class GroupOffsets:
    """
    Groups and committed offsets of one cluster. Used by one thread.

    A failed request concerns its own group only: `refused` notes it, and the other groups are
    answered. An error is raised only if the cluster does not answer at all.

    Attributes:
        requests: Number of requests sent so far.
        refused: Reason by group, where the last request about the group failed.
        unlisted: Why the last listing lacks the groups of some brokers; empty if it is complete.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        *,
        side: Side,
        before_wait: Callable[[], None] = lambda: None,
    ) -> None:
        """
        Args:
            config: Client settings for connection and security.
            side: Which cluster it is; selects SourceUnavailable or TargetUnavailable.
            before_wait: Called before each wait of about 5 s, so that a task can show that its loop
                is running.
        """
        self._client = ReconnectingClient(new_admin, config)
        self._before_wait = before_wait
        self._answered_s = -math.inf
        self._side = side
        self.requests = 0
        self.refused: dict[str, Refusal] = {}
        self.unlisted = ""

    def names(self) -> set[str]:
        """
        Return every group that may have offsets: of consumers, of Kafka Streams, or of neither.

        Groups of Connect are excluded. One group may have the empty name.

        Raises:
            RestartTask: No broker answers.
        """
        listed = {group.group_id for group in self._list().valid}
        return listed if self.unlisted else listed | self._of_unknown_kinds()

    def read(self, groups: Collection[str]) -> dict[str, dict[TopicPartition, GroupOffset]]:
        """
        Return the committed offsets of each group.

        Groups that no longer exist are skipped, and so are groups that cannot be asked: for them
        see `refused`.

        Raises:
            RestartTask: No broker answers.
        """

        def ask(group: str) -> "Future[Any]":
            asked = [ConsumerGroupTopicPartitions(group)]
            return self._client.client.list_consumer_group_offsets(
                asked, request_timeout=TO_A_COORDINATOR_S
            )[group]

        self._client.forget_coordinators()
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
        Return the groups without members.

        Groups that do not exist or may not be described are included, and so are those of Kafka
        Streams: the cluster refuses the commit if they have members. Groups that cannot be asked
        are excluded; see `refused`.

        Raises:
            RestartTask: No broker answers.
        """

        def ask(group: str) -> "Future[Any]":
            return self._client.client.describe_consumer_groups(
                [group], request_timeout=TO_A_COORDINATOR_S
            )[group]

        for group in groups:
            self.refused.pop(group, None)
        listed = {group.group_id: group.state for group in self._list().valid}
        # brokers before 2.6 do not report the state, and some brokers may not have answered
        unsaid = [
            group
            for group in groups
            if listed.get(group) is ConsumerGroupState.UNKNOWN
            or (self.unlisted and group not in listed)
        ]
        listed.update({g: one.state for g, one in self._all(unsaid, ask, "describe group")})
        unknown = {group for group in unsaid if group in self.refused}
        dead = ConsumerGroupState.DEAD
        return {g for g in groups if listed.get(g, dead) in WITHOUT_MEMBERS} - unknown

    def _list(self) -> Any:
        """List the groups. A client that waits for a broker which just died is replaced once."""
        try:
            return self._listed()
        except (SourceUnavailable, TargetUnavailable):
            self._client.replace()
            return self._listed()

    def _listed(self) -> Any:
        """List the groups with one request to each broker; some brokers may not answer."""
        self.requests += 1
        self._before_wait()
        with translated("list groups", side=self._side):
            answer = self._client.client.list_consumer_groups(request_timeout=WITHIN_S)
            listed = answer.result(WITHIN_S + 1)
            if listed.errors and not listed.valid:
                first = listed.errors[0]  # a KafkaError, which is no KafkaException
                raise first if isinstance(first, KafkaException) else KafkaException(first)
        self._answered_s = time.monotonic()
        self.unlisted = str(listed.errors[0]) if listed.errors else ""
        if self.unlisted:
            self._client.replace()  # this client would wait for the lost broker each time
        return listed

    def _of_unknown_kinds(self) -> set[str]:
        """
        Return the groups whose kind the client library does not know.

        These are groups of Kafka Streams (`group.protocol=streams`, KIP-1071), and of share
        consumers, which have no offsets. Only the deprecated request shows them. It describes all
        groups, and takes twice as long: 15 ms instead of 8 for a thousand groups of one broker.
        """
        self.requests += 1
        self._before_wait()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                found: Any = self._client.client.list_groups(timeout=WITHIN_S)
        except KafkaException as exc:
            self.unlisted = str(exc.args[0])
            return set()
        return {group.id for group in found if not group.protocol_type}

    def write(self, wanted: Mapping[str, Mapping[TopicPartition, GroupOffset]]) -> set[str]:
        """
        Commit offsets for groups without members; the cluster refuses groups with members.

        Returns:
            The groups whose offsets were all committed; for the others see `refused`.

        Raises:
            RestartTask: No broker answers.
        """

        def ask(group: str) -> "Future[Any]":
            theirs = [
                ClientPartition(*partition, offset.position.next_offset, metadata=offset.metadata)
                for partition, offset in wanted[group].items()
            ]
            return self._client.client.alter_consumer_group_offsets(
                [ConsumerGroupTopicPartitions(group, theirs)], request_timeout=TO_A_COORDINATOR_S
            )[group]

        done = set()
        for group, answer in self._all(wanted, ask, "set the offsets of group"):
            errors = [one.error for one in answer.topic_partitions or () if one.error is not None]
            if errors:
                by_members = errors[0].code() == KafkaError.UNKNOWN_MEMBER_ID  # we are none
                has_members = Refusal(HAS_MEMBERS, may_pass=False)
                self.refused[group] = has_members if by_members else _refusal(errors[0])
            else:
                done.add(group)
        return done

    def _all(
        self, groups: Collection[str], ask: Callable[[str], "Future[Any]"], what: str
    ) -> Iterator[tuple[str, Any]]:
        """Yield the answer of each group, except groups that are refused or do not exist."""
        left = iter(sorted(groups))
        are_answered = set()
        while some := list(islice(left, AT_ONCE)):
            self.requests += len(some)
            answers = {group: answer for group in some if (answer := self._asked(ask, group))}
            self._before_wait()
            until_s = time.monotonic() + WITHIN_S
            for group, answer in answers.items():
                with translated(f"{what} {group}", side=self._side):
                    found = self._result(group, answer, until_s=until_s)
                are_answered.add(group not in self.refused or not self.refused[group].may_pass)
                if found is not None:
                    yield group, found
        if any(self.refused.get(group) == NO_ANSWER for group in groups):
            self._client.replace()  # the old client would not find the coordinator again
        if True in are_answered:
            self._answered_s = time.monotonic()
        elif are_answered and time.monotonic() - self._answered_s > ALIVE_FOR_S:
            self._list()  # raises unless the cluster answers; then only these groups fail

    def _asked(self, ask: Callable[[str], "Future[Any]"], group: str) -> "Future[Any] | None":
        self.refused.pop(group, None)
        if not group:
            self.refused[group] = Refusal(NAMELESS, may_pass=False)
            return None
        return ask(group)

    def _result(self, group: str, answer: "Future[Any]", *, until_s: float) -> Any:
        """Return the answer; None if the group does not exist or cannot be asked."""
        try:
            return answer.result(max(0.0, until_s - time.monotonic()))
        except TimeoutError:
            self.refused[group] = NO_ANSWER
        except KafkaException as exc:
            if exc.args[0].code() not in NO_SUCH_GROUP:
                self.refused[group] = _refusal(exc.args[0])
        return None


def _refusal(error: KafkaError) -> Refusal:
    return Refusal(f"{error.name()} ({error.str()})", may_pass=error.code() in MAY_PASS)
