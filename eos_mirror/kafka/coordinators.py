"""
Reads the state of the topics in which coordinators keep theirs, and creates none of them.

A request to a coordinator makes a cluster create the topic of these coordinators, if it is missing.
The requests of this module do not.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaException, TopicCollection

from eos_mirror.core.side import Side
from eos_mirror.errors import NotAuthorized, TooFewBrokers
from eos_mirror.kafka.authorization import broker_numbers
from eos_mirror.kafka.deadline import ANSWER, GRACE_S, Deadline
from eos_mirror.kafka.errors import translated
from eos_mirror.kafka.metadata import MISSING
from eos_mirror.kafka.topics import NOT_THERE_FOR_US, Topics, TopicSpec

MIN_IN_SYNC = "min.insync.replicas"


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorTopic:
    """
    An internal topic of the brokers.

    Attributes:
        name: Its name.
        replicas: Broker setting: how many replicas it is created with.
        min_in_sync: Broker setting: its `min.insync.replicas`; empty if that is the default of all
            topics.
    """

    name: str
    replicas: str
    min_in_sync: str


GROUPS = CoordinatorTopic(
    name="__consumer_offsets", replicas="offsets.topic.replication.factor", min_in_sync=""
)
TRANSACTIONS = CoordinatorTopic(
    name="__transaction_state",
    replicas="transaction.state.log.replication.factor",
    min_in_sync="transaction.state.log.min.isr",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorPartition:
    """A partition of such a topic."""

    has_leader: bool
    in_sync: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorState:
    """
    The state of such a topic.

    Attributes:
        is_missing: It does not exist. False if it may not be described.
        partitions: By number; none if it is missing or may not be described.
        min_in_sync: `min.insync.replicas` of the topic; None if it may not be described.
    """

    is_missing: bool
    partitions: Mapping[int, CoordinatorPartition] = field(default_factory=dict)
    min_in_sync: int | None = None

    def leaderless(self, numbers: Collection[int] | None = None) -> list[int]:
        """Return which of these partitions, or of all, have no leader."""
        return [n for n, one in self._some(numbers).items() if not one.has_leader]

    def too_few_in_sync(self, numbers: Collection[int] | None = None) -> list[int]:
        """Return which of these partitions, or of all, accept no write."""
        least = self.min_in_sync or 0
        some = self._some(numbers)
        return [n for n, one in some.items() if one.has_leader and one.in_sync < least]

    def _some(self, numbers: Collection[int] | None) -> Mapping[int, CoordinatorPartition]:
        if numbers is None:
            return self.partitions
        return {n: one for n, one in self.partitions.items() if n in numbers}


def partition_of(name: str, count: int) -> int:
    """
    Return the partition whose leader coordinates a group or a transactional id.

    Source: GroupMetadataManager.partitionFor and TransactionStateManager.partitionFor: Java's hash
    of the name, without its sign.
    """
    units = name.encode("utf-16-be")
    value = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (value * 31 + (high << 8) + low) & 0xFFFFFFFF
    signed = value - (1 << 32) if value >> 31 else value
    return (0 if signed == -(1 << 31) else abs(signed)) % count


def read_state(topics: Topics, topic: CoordinatorTopic, *, side: Side) -> CoordinatorState:
    """
    Return the state of the topic.

    Raises:
        SourceUnavailable, TargetUnavailable: The cluster does not answer.
    """
    deadline = Deadline(ANSWER)
    answer_s = deadline.answer_s
    with translated(f"describe topic {topic.name}", side=side, of=topics.connection):
        answers = topics.admin.describe_topics(
            TopicCollection([topic.name]), request_timeout=answer_s
        )
        try:
            found = answers[topic.name].result(answer_s + GRACE_S)
        except KafkaException as exc:
            code = exc.args[0].code()
            if code not in NOT_THERE_FOR_US:
                raise
            return CoordinatorState(is_missing=code in MISSING)
    return CoordinatorState(
        is_missing=False,
        partitions={one.id: _partition(one) for one in found.partitions},
        min_in_sync=_min_in_sync(topics, topic.name),
    )


def _partition(found: Any) -> CoordinatorPartition:
    return CoordinatorPartition(has_leader=found.leader is not None, in_sync=len(found.isr))


def _min_in_sync(topics: Topics, name: str) -> int | None:
    entry = topics.describe([name]).entries.get(name, {}).get(MIN_IN_SYNC)
    return int(entry.value) if entry else None


def refusal_to_create(topics: Topics, topic: CoordinatorTopic, *, side: Side) -> str:
    """
    Return why the brokers cannot create the topic, or could not write to it; empty if they can.

    The controller is only asked whether it would create the topic. Empty also if a right is missing
    to find out.

    Raises:
        SourceUnavailable, TargetUnavailable: The cluster does not answer.
    """
    names = [topic.replicas, *([topic.min_in_sync] if topic.min_in_sync else [])]
    wanted, *least = broker_numbers(topics.admin, *names) or [0]
    if not wanted:
        return ""
    if least and least[0] > wanted:
        return (
            f"its brokers have {topic.min_in_sync}={least[0]}, which is more than their "
            f"{topic.replicas}={wanted}"
        )
    brokers = _brokers_count(topics, side)
    if brokers >= wanted:
        return ""
    spec = TopicSpec(name=topic.name, partitions=1, replication_factor=wanted)
    refusal = topics.create([spec], validate_only=True).get(topic.name)
    if isinstance(refusal, TooFewBrokers | NotAuthorized):
        return f"its brokers have {topic.replicas}={wanted}, and only {brokers} of them answer"
    return ""


def _brokers_count(topics: Topics, side: Side) -> int:
    with translated("list brokers", side=side, of=topics.connection):
        return len(topics.admin.list_topics(timeout=ANSWER.total_seconds()).brokers)
