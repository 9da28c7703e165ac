"""
The groups of a cluster and their offsets, many at once.

For a process that may end: an admin client that asks a group's coordinator while that moves can
take its process along (`groups.CommittedOffsets` is for those that may not).
"""

import math
import time
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
from confluent_kafka.admin import AdminClient

from eos_mirror.core.records import TopicPartition
from eos_mirror.kafka.errors import UNREACHABLE, translated
from eos_mirror.kafka.groups import NO_SUCH_GROUP, TO_A_COORDINATOR_S, as_group_offset
from eos_mirror.kafka.reconnecting import ReconnectingClient
from eos_mirror.ports import GroupOffset

AT_ONCE = 1000
"""Requests under way. The client cannot ask for the offsets of two groups in one."""

WITHIN_S = 5.0
"""For each wait. All requests under way share it, so one coordinator that is away costs as much as
a hundred. One broker of the tests answers a thousand of them in 0.3 s, and takes a thousand commits
in 1.4 s."""

ALIVE_FOR_S = 30.0
"""So long an answer shows that the cluster as a whole is there."""

WITHOUT_MEMBERS = frozenset({ConsumerGroupState.EMPTY, ConsumerGroupState.DEAD})
MAY_PASS = UNREACHABLE
"""Codes of a coordinator that is moving, loading or away. All others are a refusal."""

NAMELESS = (
    "it has no name, and the client library sends no request about it. "
    "groups = .+ leaves it out without this report"
)


class Refusal(NamedTuple):
    """
    Why there is no answer about one group.

    Attributes:
        reason: For people.
        may_pass: The coordinator is moving or away.
    """

    reason: str
    may_pass: bool


NO_ANSWER = Refusal("its coordinator does not answer", may_pass=True)


class GroupOffsets:
    """
    Of one cluster. One thread uses it.

    A request about one group that fails concerns this group alone: it is noted in `refused`, and
    the others are answered. Only a cluster that does not answer at all is raised.

    Attributes:
        requests: Sent so far.
        refused: Why not, by group, where the last request about it failed.
        unlisted: Why the last listing lacks the groups of some brokers; empty if it lacks none.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        *,
        source: bool,
        before_wait: Callable[[], None] = lambda: None,
    ) -> None:
        """
        Args:
            config: Connection and security.
            source: Whose fault it is when the cluster does not answer.
            before_wait: Called before each wait, of some 5 s: a task shows with it that its loop
                turns.
        """
        self._client = ReconnectingClient(AdminClient, config)
        self._before_wait = before_wait
        self._answered_s = -math.inf
        self._source = source
        self.requests = 0
        self.refused: dict[str, Refusal] = {}
        self.unlisted = ""

    def names(self) -> set[str]:
        """
        Every group of consumers, also one that only ever committed; not those of Connect or of
        share consumers. One may have the empty name.

        Raises:
            RestartTask: No broker answers.
        """
        return {group.group_id for group in self._list().valid}

    def read(self, groups: Collection[str]) -> dict[str, dict[TopicPartition, GroupOffset]]:
        """
        What each group has committed. Groups that are gone are left out, and so are those that
        cannot be asked: for them see `refused`.

        Raises:
            RestartTask: No broker answers.
        """

        def ask(group: str) -> "Future[Any]":
            asked = [ConsumerGroupTopicPartitions(group)]
            return self._client.client.list_consumer_group_offsets(
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
        Groups that cannot be asked are not among them; see `refused`.

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
        # old brokers (before 2.6) do not say the state, and some may not have answered
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
        """With one request to each broker; not all of them may answer."""
        self.requests += 1
        self._before_wait()
        with translated("list groups", source=self._source):
            answer = self._client.client.list_consumer_groups(request_timeout=WITHIN_S)
            listed = answer.result(WITHIN_S + 1)
            if listed.errors and not listed.valid:
                raise listed.errors[0]
        self._answered_s = time.monotonic()
        self.unlisted = str(listed.errors[0]) if listed.errors else ""
        if self.unlisted:
            self._client.replace()  # this one would wait for the lost broker each time
        return listed

    def write(self, wanted: Mapping[str, Mapping[TopicPartition, GroupOffset]]) -> set[str]:
        """
        Commit for groups without members; the cluster refuses it for others.

        Returns:
            The groups that have all of it now; for the others see `refused`.

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
                self.refused[group] = _refusal(errors[0])
            else:
                done.add(group)
        return done

    def _all(
        self, groups: Collection[str], ask: Callable[[str], "Future[Any]"], what: str
    ) -> Iterator[tuple[str, Any]]:
        """Answers by group, without those that are refused or about a group that is not there."""
        left = iter(sorted(groups))
        are_answered = set()
        while some := list(islice(left, AT_ONCE)):
            self.requests += len(some)
            answers = {group: answer for group in some if (answer := self._asked(ask, group))}
            self._before_wait()
            until_s = time.monotonic() + WITHIN_S
            for group, answer in answers.items():
                with translated(f"{what} {group}", source=self._source):
                    found = self._result(group, answer, until_s=until_s)
                are_answered.add(group not in self.refused or not self.refused[group].may_pass)
                if found is not None:
                    yield group, found
        if any(self.refused.get(group) == NO_ANSWER for group in groups):
            self._client.replace()  # the old one would not find the coordinator again
        if True in are_answered:
            self._answered_s = time.monotonic()
        elif are_answered and time.monotonic() - self._answered_s > ALIVE_FOR_S:
            self._list()  # raises unless the cluster answers; then it is these groups alone

    def _asked(self, ask: Callable[[str], "Future[Any]"], group: str) -> "Future[Any] | None":
        self.refused.pop(group, None)
        if not group:
            self.refused[group] = Refusal(NAMELESS, may_pass=False)
            return None
        return ask(group)

    def _result(self, group: str, answer: "Future[Any]", *, until_s: float) -> Any:
        """None if there is no such group, or if it cannot be asked."""
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
