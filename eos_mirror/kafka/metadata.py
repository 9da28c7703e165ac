"""Metadata and offsets of topics, read with one admin client and without a group."""

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

from confluent_kafka import (
    OFFSET_INVALID,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
)
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AclOperation, AdminClient, OffsetSpec, TopicMetadata

from eos_mirror.core.records import TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.errors import (
    FatalError,
    LoginImpossible,
    MirrorError,
    RetriableError,
    SourceUnavailable,
    TargetUnavailable,
)
from eos_mirror.kafka.any_broker import ask_any_broker
from eos_mirror.kafka.client import new_admin
from eos_mirror.kafka.deadline import ANSWER, GRACE_S, PATIENCE, Deadline
from eos_mirror.kafka.errors import UNANSWERED, as_mirror_error, translated
from eos_mirror.kafka.groups import CommittedOffsets
from eos_mirror.kafka.reconnecting import ReconnectingClient
from eos_mirror.kafka.retry import retrying
from eos_mirror.ports import KnownTopic

SHORT_PATIENCE = timedelta(seconds=3)
"""For one partition among many. Longer than a leader election after a controlled shutdown, shorter
than the metrics interval (5 s), which must not slip because one broker is away."""

KAFKA_BASE64 = str.maketrans("+/", "-_")
"""The client prints ids in plain base64, Kafka in URL-safe base64."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NO_ANSWER = KafkaError(KafkaError._TIMED_OUT, "its leader did not answer")  # noqa: SLF001 (public)
MISSING = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.UNKNOWN_TOPIC_ID})


class Offsets(NamedTuple):
    """
    What the leaders of some partitions answered.

    Attributes:
        found: Offset by partition.
        reasons: Why each of the other partitions has no offset. The class of the error says what
            to do: SourceUnavailable and TargetUnavailable (no leader, or a leader that does not
            answer) may pass, NotAuthorized needs a right. The text names the partition.
    """

    found: dict[TopicPartition, int]
    reasons: dict[TopicPartition, MirrorError]


class ClusterMetadata:
    """
    Implements `ports.SourceMetadata`. `KafkaTarget` also uses it, for topics of the target.

    `connection` has the client, for `translated`.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        *,
        side: Side,
        patience: timedelta = PATIENCE,
        needed: Sequence[AclOperation] = (),
    ) -> None:
        """
        Args:
            config: Admin client configuration.
            side: Which cluster it is; selects SourceUnavailable or TargetUnavailable.
            patience: How long to retry.
            needed: Rights needed on topics; `topics` reports which are missing. If empty, `topics`
                raises for a topic that may not be described.
        """
        self._needed = needed
        self.connection = ReconnectingClient(new_admin, config)
        self._config = dict(config)
        self._groups: dict[str, CommittedOffsets] = {}
        self.patience = patience
        self._side = side

    @property
    def admin(self) -> AdminClient:
        """Return the client for one request; the next request may need another client."""
        return self.connection.client

    def check_login(self) -> None:
        """Raise LoginImpossible if the client was refused the login since it connected."""
        self.connection.check_login()

    def forget_coordinators(self) -> None:
        """See `ReconnectingClient`."""
        self.connection.forget_coordinators()

    def connect(self) -> None:
        """Start to connect and return. The first answer of a new client takes 50 ms longer."""
        with suppress(LoginImpossible):  # the first request reports it
            ask_any_broker(self.admin, within_s=ANSWER.total_seconds())

    def topics(self, names: Sequence[str]) -> Mapping[str, KnownTopic]:
        """See `ports.SourceMetadata`."""
        return retrying(partial(self._topics, names), within=self.patience) if names else {}

    def _topics(self, names: Sequence[str], deadline: Deadline) -> dict[str, KnownTopic]:
        found: dict[str, KnownTopic] = {}
        answer_s = deadline.answer_s
        with translated("describe topics", side=self._side, of=self.connection):
            answers = self.admin.describe_topics(
                TopicCollection(list(names)),
                include_authorized_operations=bool(self._needed),
                request_timeout=answer_s,
            )
            for name, answer in answers.items():
                try:
                    topic = answer.result(answer_s + GRACE_S)
                except KafkaException as exc:
                    code = exc.args[0].code()
                    if code in MISSING:
                        continue
                    if code != KafkaError.TOPIC_AUTHORIZATION_FAILED or not self._needed:
                        raise
                    found[name] = KnownTopic(topic_id="", partitions=0, missing=("DESCRIBE",))
                    continue
                allowed = topic.authorized_operations or self._needed  # a broker may omit them
                found[name] = KnownTopic(
                    topic_id=str(topic.topic_id).translate(KAFKA_BASE64),
                    partitions=len(topic.partitions),
                    leaderless=frozenset(p.id for p in topic.partitions if p.leader is None),
                    shrunk={
                        p.id: (len(p.isr), len(p.replicas))
                        for p in topic.partitions
                        if len(p.isr) < len(p.replicas)
                    },
                    missing=tuple(one.name for one in self._needed if one not in allowed),
                )
        return found

    def start_offset(self, partition: TopicPartition, start: str) -> int:
        """See `ports.SourceMetadata`."""
        kind, _, value = start.partition(":")
        if kind == "timestamp":
            return self.since(datetime.fromisoformat(value), [partition])[partition]
        if kind == "earliest":
            return self.log_start(partition)
        end = self.ends([partition])[partition]
        if kind == "latest":
            return end
        first = self.log_start(partition)
        if kind == "group":
            wanted = self._committed(value, partition, first)
        else:
            wanted = end - int(value) if kind == "last" else int(value)
        return min(max(wanted, first), end)

    def _committed(self, group: str, partition: TopicPartition, first: int) -> int:
        """Return the committed offset of a group, or the first one of the log."""
        if group not in self._groups:
            self._groups[group] = CommittedOffsets(self._config, group, side=self._side)
        read = partial(self._groups[group].read, [partition])
        found = retrying(read, within=self.patience).get(partition)
        return first if found is None else found.position.next_offset

    def log_start(self, partition: TopicPartition) -> int:
        """See `ports.SourceMetadata`."""
        return self.offsets([partition], OffsetSpec.earliest())[partition]

    def since(
        self, at: datetime, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """Return the first offset with this time or a later one; the end of the log if none has."""
        found = self.offsets(partitions, OffsetSpec.for_timestamp(milliseconds_of(at)))
        young = [partition for partition, offset in found.items() if offset < 0]
        return {**found, **(self.ends(young) if young else {})}

    def since_or_reasons(self, at: datetime, partitions: Sequence[TopicPartition]) -> Offsets:
        """
        Return the first offset with this time or a later one, and reasons for other partitions.

        It may be in an open transaction. A partition has neither if its log has no such record.
        """
        spec = OffsetSpec.for_timestamp(milliseconds_of(at))
        found, reasons = self.offsets_or_reasons(
            partitions, spec, isolation=IsolationLevel.READ_UNCOMMITTED
        )
        return Offsets({p: offset for p, offset in found.items() if offset >= 0}, reasons)

    def starts(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the first offset of each log; records before it have expired."""
        return self.offsets(partitions, OffsetSpec.earliest())

    def ends(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the last stable offset of each partition, where a read_committed reader stops."""
        return self.offsets(partitions, OffsetSpec.latest())

    def ends_or_reasons(self, partitions: Sequence[TopicPartition]) -> Offsets:
        """Return `ends` where they are known, and reasons for the other partitions."""
        return self.offsets_or_reasons(partitions, OffsetSpec.latest())

    def high_watermarks_or_reasons(self, partitions: Sequence[TopicPartition]) -> Offsets:
        """Return `high_watermarks` where they are known, and reasons for the other partitions."""
        return self.offsets_or_reasons(
            partitions, OffsetSpec.latest(), isolation=IsolationLevel.READ_UNCOMMITTED
        )

    def starts_or_reasons(self, partitions: Sequence[TopicPartition]) -> Offsets:
        """Return `starts` where they are known, and reasons for the other partitions."""
        return self.offsets_or_reasons(partitions, OffsetSpec.earliest())

    def high_watermarks(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the high watermarks, where a read_uncommitted reader stops."""
        return self.offsets(
            partitions, OffsetSpec.latest(), isolation=IsolationLevel.READ_UNCOMMITTED
        )

    def offsets(
        self,
        partitions: Sequence[TopicPartition],
        spec: OffsetSpec,
        *,
        isolation: IsolationLevel = IsolationLevel.READ_COMMITTED,
    ) -> dict[TopicPartition, int]:
        """
        Return one kind of offset for every partition.

        Raises:
            RestartTask: A partition has no such offset or does not answer.
            NotAuthorized: A right on one of the topics is missing.
        """

        def ask(deadline: Deadline) -> dict[TopicPartition, int]:
            found, reasons = self._ask(partitions, spec, isolation, deadline)
            if reasons:
                raise _gravest(list(reasons.values()))
            return found

        return retrying(ask, within=self.patience)

    def offsets_or_reasons(
        self,
        partitions: Sequence[TopicPartition],
        spec: OffsetSpec,
        *,
        isolation: IsolationLevel = IsolationLevel.READ_COMMITTED,
        within: timedelta = SHORT_PATIENCE,
    ) -> Offsets:
        """
        Return one kind of offset for each partition that has one, and reasons for the others.

        A partition without an offset is requested again while `within` lasts, unless a right is
        missing. No partition waits longer than that for another one.

        Raises:
            SourceUnavailable, TargetUnavailable: The cluster as a whole does not answer.
        """
        found: dict[TopicPartition, int] = {}
        reasons: dict[TopicPartition, MirrorError] = {}

        def ask(deadline: Deadline) -> None:
            nonlocal reasons
            left = [partition for partition in partitions if partition not in found]
            try:
                more, reasons = self._ask(left, spec, isolation, deadline)
            except (SourceUnavailable, TargetUnavailable) as exc:
                if not found:
                    raise
                more, reasons = {}, {one: reasons.get(one, exc) for one in left}
            found.update(more)
            if not all(isinstance(reason, FatalError) for reason in reasons.values()):
                raise RetriableError("some partitions have no offset")

        if partitions:
            with suppress(RetriableError):
                retrying(ask, within=within)
        return Offsets(found, reasons)

    def _ask(
        self,
        partitions: Sequence[TopicPartition],
        spec: OffsetSpec,
        isolation: IsolationLevel,
        deadline: Deadline,
    ) -> Offsets:
        """Ask once, without retries."""
        answer_s = deadline.answer_s
        with translated("list offsets", side=self._side, of=self.connection):
            answers = self.admin.list_offsets(
                {ClientPartition(*p): spec for p in partitions},
                isolation_level=isolation,
                request_timeout=answer_s,
            )
            found, errors = _sorted_out(answers, within_s=answer_s + GRACE_S)
            known = self._ask_for_leaders(errors, answer_s, may_fail=bool(found)) if errors else {}
        reasons = {
            partition: as_mirror_error(
                _cause(error, partition, known), f"list offsets of {partition}", side=self._side
            )
            for partition, error in errors.items()
        }
        return Offsets(found, reasons)

    def _ask_for_leaders(
        self, partitions: Collection[TopicPartition], answer_s: float, *, may_fail: bool
    ) -> Mapping[str, TopicMetadata]:
        """
        Make the client refresh the leaders.

        By itself it keeps asking the old leaders, even after FENCED_LEADER_EPOCH.

        Args:
            may_fail: True if some broker has answered, so that a failure here is not an outage of
                the cluster.
        """
        names = {partition.topic for partition in partitions}
        # all topics take one request, like the topic refresh
        name = names.pop() if len(names) == 1 else None
        try:
            return self.admin.list_topics(name, timeout=answer_s).topics
        except KafkaException:
            if may_fail:
                return {}
            raise


def _sorted_out(
    answers: "Mapping[ClientPartition, Future[Any]]", *, within_s: float
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, KafkaError]]:
    """
    Split the answers into offsets and errors.

    If a leader did not answer, the client returns neither.

    Raises:
        KafkaException: The client could not look up the leaders.
    """
    found: dict[TopicPartition, int] = {}
    errors: dict[TopicPartition, KafkaError] = {}
    for asked, answer in answers.items():
        partition = TopicPartition(asked.topic, asked.partition)
        try:
            offset = answer.result(within_s).offset
        except KafkaException as exc:
            if exc.args[0].code() in UNANSWERED:
                raise
            errors[partition] = exc.args[0]
        else:
            if offset == OFFSET_INVALID:
                errors[partition] = NO_ANSWER
            else:
                found[partition] = offset
    return found, errors


def _cause(
    error: KafkaError, partition: TopicPartition, known: Mapping[str, TopicMetadata]
) -> KafkaError:
    """Return the cause of _NOENT, which is all the client reports if no partition has a leader."""
    topic = known.get(partition.topic)
    if error.code() != KafkaError._NOENT:  # noqa: SLF001 (the library's public name)
        return error
    if topic is None:
        return KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
    if topic.error is not None:
        return topic.error
    if partition.partition not in topic.partitions:
        return KafkaError(KafkaError._UNKNOWN_PARTITION)  # noqa: SLF001 (the same)
    return KafkaError(KafkaError.LEADER_NOT_AVAILABLE)


def _gravest(reasons: Sequence[MirrorError]) -> MirrorError:
    """Return the first error that does not pass by itself, else the first one."""
    passing = (SourceUnavailable, TargetUnavailable)
    return next((one for one in reasons if not isinstance(one, passing)), reasons[0])


def milliseconds_of(at: datetime) -> int:
    """
    Return a time as brokers compare it with the timestamps of records.

    It is rounded up, and not negative: negative numbers ask for other offsets.
    """
    return max(0, -((EPOCH - at) // timedelta(milliseconds=1)))
