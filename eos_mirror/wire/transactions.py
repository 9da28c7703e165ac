"""
The requests of one transactional id to its coordinators, in both transaction protocols.

With the older protocol (TV1), partitions and the group are added to a transaction by requests of
their own. With that of KIP-890 (TV2), they join it when they are written, and each commit gives the
producer a new epoch, so that a late request of one transaction cannot affect the next.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from eos_mirror.core.records import TopicPartition
from eos_mirror.ports import ShadowCommit
from eos_mirror.wire.cluster import Cluster, Coordinator, Kind, patiently
from eos_mirror.wire.errors import (
    CONCURRENT_TRANSACTIONS,
    NO_COORDINATOR,
    Malformed,
    Refused,
    Unreachable,
)
from eos_mirror.wire.messages import (
    ADD_OFFSETS_TO_TXN,
    ADD_PARTITIONS_TO_TXN,
    END_TXN_3,
    END_TXN_5,
    INIT_PRODUCER_ID,
    TXN_OFFSET_COMMIT_3,
    TXN_OFFSET_COMMIT_5,
    Api,
)

TRANSACTION_VERSION: Final = "transaction.version"
JOINS_BY_WRITING: Final = 2
"""From this level of `transaction.version` on, the cluster speaks the protocol of KIP-890."""

NOT_FINISHED: Final = frozenset({CONCURRENT_TRANSACTIONS})
"""The previous transaction of the id is not finished. Nothing was done."""

NOT_YET: Final = NOT_FINISHED | NO_COORDINATOR
"""
The same, or the coordinator moves. It may have done what was asked, so this is only for requests
that change nothing when they are repeated in an open transaction: not for its end.
"""

NOT_ATTEMPTED: Final = 55
"""A partition was not added because another one was refused."""

END_OF_TEXT: Final = "\0"
"""librdkafka, which reads the metadata, takes it for a C string, and writes it so, too."""

NO_PRODUCER: Final = -1
NO_TIMEOUT_MS: Final = 60_000
"""Not read: a producer id without transactions has no timeout."""

NO_EPOCH: Final = -1
NO_GENERATION: Final = -1

Answer = Mapping[str, Any]


class TransactionalId:
    """
    An initialised transactional id, and its requests. Used by one thread.

    No request without an answer is sent again, and the id is never initialised again: after a
    failure, the owner takes a new id.

    Attributes:
        producer_id, epoch, transactional_id, joins_by_writing: See `outbox.Identity`.
    """

    def __init__(
        self, cluster: Cluster, transactional_id: str, *, group: str, timeout_ms: int, until: float
    ) -> None:
        """
        Initialise the id: the outcome of everything before is decided then.

        Args:
            group: The shadow group, which has no members.
            timeout_ms: After this time the coordinator aborts an open transaction.
        """
        self.transactional_id: str | None = transactional_id
        self._group = group
        self._group_coordinator = Coordinator(cluster, Kind.GROUP, group)
        self._group_coordinator.find(until)
        self._coordinator = Coordinator(cluster, Kind.TRANSACTION, transactional_id)
        self.producer_id, self.epoch = initialised(self._coordinator, timeout_ms, until=until)
        connection = self._coordinator.connected(until)
        self.joins_by_writing = connection.knows(END_TXN_5) and (
            connection.features.get(TRANSACTION_VERSION, 0) >= JOINS_BY_WRITING
        )

    def add(self, partitions: Iterable[TopicPartition], *, until: float) -> None:
        """Add partitions to the open transaction (TV1)."""
        new = list(partitions)
        fields = {**self._who(), "topics": _by_topic((one.topic, one.partition) for one in new)}
        codes = _codes_of(new, "results", "results")
        _ask(self._coordinator, ADD_PARTITIONS_TO_TXN, fields, codes, until=until)

    def send_offsets(self, offsets: Mapping[TopicPartition, ShadowCommit], *, until: float) -> None:
        """Make shadow offsets a part of the open transaction."""
        if not self.joins_by_writing:
            fields = {**self._who(), "group_id": self._group}
            _ask(self._coordinator, ADD_OFFSETS_TO_TXN, fields, _code, until=until)
        fields = {
            **self._who(),
            "group_id": self._group,
            "generation_id": NO_GENERATION,
            "member_id": "",
            "group_instance_id": None,
            "topics": _by_topic((p.topic, _offset(p, one)) for p, one in offsets.items()),
        }
        api = TXN_OFFSET_COMMIT_5 if self.joins_by_writing else TXN_OFFSET_COMMIT_3
        codes = _codes_of(offsets, "topics", "partitions")
        _ask(self._group_coordinator, api, fields, codes, until=until)

    def end(self, *, until: float) -> None:
        """
        Commit the open transaction.

        Raises:
            Unanswered, Malformed: Whether it is committed is unknown.
        """
        api = END_TXN_5 if self.joins_by_writing else END_TXN_3
        fields = {**self._who(), "committed": True}
        answer = _ask(self._coordinator, api, fields, _code, until=until, again=NOT_FINISHED)
        if self.joins_by_writing:
            self.producer_id, self.epoch = _producer_of(answer)

    def _who(self) -> dict[str, Any]:
        return {
            "transactional_id": self.transactional_id,
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
        }


class Initialised(NamedTuple):
    """A producer id of the target, and its epoch."""

    producer_id: int
    epoch: int


def initialised(coordinator: Coordinator, timeout_ms: int, *, until: float) -> Initialised:
    """
    Initialise a transactional id.

    Everyone who used the id before is fenced, and their open transaction is decided.
    """
    fields = _init_fields(coordinator.key, timeout_ms)
    return Initialised(
        *_producer_of(_ask(coordinator, INIT_PRODUCER_ID, fields, _code, until=until))
    )


def plain_producer_id(cluster: Cluster, *, until: float) -> Initialised:
    """Return a new producer id for writing without transactions. Any broker assigns it."""

    def once() -> Initialised:
        connection = cluster.any_broker(until=until)
        answer = connection.call(INIT_PRODUCER_ID, _init_fields(None, NO_TIMEOUT_MS), until=until)
        return Initialised(*_producer_of(_checked(answer, _code, INIT_PRODUCER_ID.name)))

    return patiently(once, until=until, codes=NOT_YET)


def _init_fields(transactional_id: str | None, timeout_ms: int) -> dict[str, Any]:
    return {
        "transactional_id": transactional_id,
        "transaction_timeout_ms": timeout_ms,
        "producer_id": NO_PRODUCER,
        "producer_epoch": NO_EPOCH,
    }


def _ask(
    coordinator: Coordinator,
    api: Api,
    fields: Mapping[str, Any],
    codes_of: Callable[[Answer], Iterable[int]],
    *,
    until: float,
    again: frozenset[int] = NOT_YET,
) -> dict[str, Any]:
    """
    Send a request, and again while the answer is one of these codes.

    While the coordinator cannot be reached, nothing is sent: it may be another broker in a moment.
    """

    def once() -> dict[str, Any]:
        if time.monotonic() > until:
            raise Unreachable(f"{api.name} is not sent: no time is left for its answer")
        answer = coordinator.connected(until).call(api, fields, until=until)
        try:
            return _checked(answer, codes_of, api.name)
        except Refused as exc:
            if exc.code in NO_COORDINATOR:
                coordinator.forget()
            raise

    return patiently(once, until=until, codes=again)


def _checked(
    answer: dict[str, Any], codes_of: Callable[[Answer], Iterable[int]], what: str
) -> dict[str, Any]:
    refused = {code for code in codes_of(answer) if code}
    if refused:
        raise Refused(min(refused - {NOT_ATTEMPTED}, default=NOT_ATTEMPTED), what)
    return answer


def _code(answer: Answer) -> Iterable[int]:
    return (answer["error_code"],)


def _codes_of(
    wanted: Iterable[TopicPartition], topics: str, partitions: str
) -> Callable[[Answer], Iterable[int]]:
    """Return a function that reads the code of each partition, in the fields with these names."""

    def codes(answer: Answer) -> Iterable[int]:
        found = {
            TopicPartition(topic["name"], one["partition_index"]): one["error_code"]
            for topic in answer[topics]
            for one in topic[partitions]
        }
        missing = sorted(set(wanted) - found.keys())
        if missing:
            raise Malformed(f"an answer without {missing[0]}")
        return found.values()

    return codes


def _producer_of(answer: Answer) -> tuple[int, int]:
    """Return the producer id and the epoch that an answer assigns."""
    producer_id, epoch = answer["producer_id"], answer["producer_epoch"]
    if producer_id < 0 or epoch < 0:
        raise Malformed(f"an answer with producer id {producer_id} and epoch {epoch}")
    return producer_id, epoch


def _by_topic(pairs: Iterable[tuple[str, Any]]) -> list[dict[str, Any]]:
    topics: dict[str, list[Any]] = {}
    for topic, one in pairs:
        topics.setdefault(topic, []).append(one)
    return [{"name": topic, "partitions": some} for topic, some in topics.items()]


def _offset(remote: TopicPartition, commit: ShadowCommit) -> dict[str, Any]:
    epoch = commit.position.leader_epoch
    return {
        "partition_index": remote.partition,
        "committed_offset": commit.position.next_offset,
        "committed_leader_epoch": -1 if epoch is None else epoch,
        "committed_metadata": commit.metadata + END_OF_TEXT,
    }
