"""
What the engine needs from outside, as Protocols of at most six methods.

The engine (`replication/`) is written against these; `kafka/` and `runtime/` implement them. The
fakes in `tests/engine/` are checked against real brokers. One thread owns a task's adapters.
"""

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Protocol

from eos_mirror.core.claims import Claim, ClaimRecord
from eos_mirror.core.messages import Orders, TaskReport
from eos_mirror.core.records import Position, RecordRun, TopicPartition, TopicRecord
from eos_mirror.core.topic_limits import TopicLimits
from eos_mirror.errors import PartitionStopped


@dataclass(slots=True, kw_only=True)
class Polled:
    """
    What one poll returned.

    Attributes:
        runs: In arrival order. A partition may appear more than once.
        ends: Offset (LSO) at which the reader reached the end of a partition, after the runs.
        faults: Partitions that cannot be read any further after the runs, with the reason.
        more_pending: The poll returned no runs, but more fetched data is in flight. An open
            transaction on the source has the same effect for a moment.
    """

    runs: list[RecordRun] = field(default_factory=list)
    ends: dict[TopicPartition, int] = field(default_factory=dict)
    faults: dict[TopicPartition, PartitionStopped] = field(default_factory=dict)
    more_pending: bool = False


class RebalanceListener(Protocol):
    """Called from inside `Source.poll` and `Source.close`, on the polling thread. Never raises."""

    def on_granted(self, partitions: Sequence[TopicPartition]) -> None:
        """Called when the group assigned these. Nothing is read of them before `Source.assign`."""

    def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        """Called when the group takes these back. The group waits until this returns."""

    def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
        """Called when the group already gave these away. Commit nothing for them any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOffset:
    """A committed offset of the source, and the metadata of that commit."""

    position: Position
    metadata: str


class SourceOffsets(Protocol):
    """Positions at least once: the source group's offsets, or those that MirrorMaker 2 stores."""

    absent: str
    """Where a position is missing, and what to do: the end of an error."""

    def committed(
        self, partitions: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, GroupOffset | None]:
        """Return offsets; None if never committed or expired. May raise SourceUnavailable."""

    def commit(self, offsets: Mapping[TopicPartition, GroupOffset], *, within: timedelta) -> None:
        """Commit and wait. RestartTask: no member any more, or no answer; it may have worked."""


class Source(Protocol):
    """A member of the source consumer group, read_committed, without automatic resets."""

    def subscribe(self, topics: Sequence[str]) -> None:
        """Subscribe to exactly these topics, or none. The same ones as before: join again."""

    def poll(self, *, wait: timedelta) -> Polled:
        """
        Return everything that is ready, at most one chunk. Wait only if nothing is ready.

        Raises:
            RestartTask: The consumer is dead (fenced instance, fatal error).
            TransactionLost: Our own lane also writes here, and a request of that failed.
            NotAuthorized: READ was denied.
        """

    def assign(self, positions: Mapping[TopicPartition, Position]) -> None:
        """Start reading granted partitions at these positions."""

    def unassign(self, partitions: Sequence[TopicPartition]) -> None:
        """Stop reading these partitions, and drop what was prefetched."""

    def commit(self, positions: Mapping[TopicPartition, Position]) -> None:
        """Commit advisory group offsets on the source, for people and lag tools. Does not wait."""

    def close(self) -> None:
        """Close the consumer. A static member keeps its partitions until its session ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTopic:
    """
    A topic as it is now.

    Attributes:
        leaderless: Partitions without a leader: they cannot be read or written now.
        shrunk: Number of replicas in sync, and of all replicas, of partitions where they differ.
        missing: Rights on the topic that a task needs and does not have. Without DESCRIBE,
            nothing else is known about it.
    """

    topic_id: str
    partitions: int
    leaderless: frozenset[int] = frozenset()
    shrunk: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    missing: Sequence[str] = ()


class SourceMetadata(Protocol):
    """Requests to the source that do not go through the group."""

    def topics(self, names: Sequence[str]) -> Mapping[str, KnownTopic]:
        """Return id, partitions and leaders. A missing topic is absent from the answer."""

    def start_offset(self, partition: TopicPartition, start: str) -> int:
        """Resolve a position of `core.start_positions` to the nearest offset of the log."""

    def log_start(self, partition: TopicPartition) -> int:
        """Return the first offset that can still be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """
    Where the open transaction's records of one target partition were written.

    Attributes:
        first, last: Downstream offsets; None if the broker did not report them.
        count: Records handed to the client.
    """

    first: int | None
    last: int | None
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowCommit:
    """One shadow offset to commit with the open transaction."""

    position: Position
    metadata: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """
    A commit that the target acknowledged.

    Attributes:
        doubt: Why the client may have sent the commit twice; a late duplicate could commit the
            next transaction (KAFKA-17754). None: it was sent once.
    """

    doubt: str | None = None


class TransactionalProducer(Protocol):
    """One incarnation on the target: initialised, owned by one thread, never aborted."""

    def begin(self) -> None:
        """Begin a transaction."""

    def send(self, run: RecordRun, remote: TopicPartition, *, batch: int | None = None) -> None:
        """
        Hand a run to the client unchanged; it is sent in the background.

        Args:
            batch: Number of the batch. Runs of one partition with different numbers never share a
                batch. A higher number is sent only after all lower ones were acknowledged. None:
                the client decides how large batches are. Within one transaction, a partition has
                numbers for all its runs or for none.

        Raises:
            RefusedByTarget: The client itself refuses a record.
        """

    def send_to(self, topic: str, records: Sequence[TopicRecord]) -> None:
        """Send records to a topic that accepts them: map or quarantine. A refusal ends the task."""

    def flush(self, *, within: timedelta) -> Mapping[TopicPartition, Delivered]:
        """
        Wait until everything is acknowledged; return where it was written.

        Raises:
            RefusedByTarget: A batch was refused, so the transaction cannot be committed.
            TransactionLost, RestartTask: A request failed, or has no answer.
        """

    def commit(
        self, offsets: Mapping[TopicPartition, ShadowCommit], *, within: timedelta
    ) -> Committed:
        """
        Send the shadow offsets and commit.

        Raises:
            TransactionLost, RestartTask: The commit failed; its outcome may be unknown.
        """

    def close(self) -> None:
        """Close the client. An open transaction is left to the next claimer."""


class PlainProducer(Protocol):
    """An idempotent producer without transactions; a flush has the role of a commit."""

    def send(self, run: RecordRun, remote: TopicPartition, *, batch: int | None = None) -> None:
        """See `TransactionalProducer`."""

    def send_to(self, topic: str, records: Sequence[TopicRecord]) -> None:
        """See `TransactionalProducer`."""

    def flush(self, *, within: timedelta) -> None:
        """
        Wait until every record has arrived.

        Raises:
            RefusedByTarget: Batches were refused since the last flush. All other records have
                arrived, except those after a refused numbered batch of the same partition.
            RestartTask, TransactionLost: A record was not decided in time, or the client is dead.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowOffset:
    """A committed shadow offset: where mirroring resumes, and the metadata of that commit."""

    position: Position
    metadata: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionEnd:
    """Where a target partition ends; 0 for one that was never written."""

    stable: int
    """Last stable offset: where a read_committed reader stops."""
    written: int
    """High watermark."""

    @property
    def is_decided(self) -> bool:
        """True if no transaction with records here waits for its marker."""
        return self.stable >= self.written


class Unstable:
    """The answer for a partition with a transaction that is decided but not yet visible."""


UNSTABLE = Unstable()


class TargetReader(Protocol):
    """Reads the logs of the target."""

    def ends(self, remotes: Sequence[TopicPartition]) -> Mapping[TopicPartition, PartitionEnd]:
        """Return where each partition ends."""

    def first_offsets(
        self, starts: Mapping[TopicPartition, int], *, committed: bool
    ) -> Mapping[TopicPartition, Sequence[int]]:
        """
        Return the first two offsets that hold a record, at or after each start.

        Args:
            starts: Offsets within the log.
            committed: True: see what a read_committed reader sees, up to the first open
                transaction. False: include aborted records.
        """

    def map_entries(self, topic: str) -> Mapping[str, bytes] | Unstable:
        """Return a topic's map, newest value by key; `Unstable` if a transaction may hide any."""


class Target(TargetReader, Protocol):
    """The target cluster as the engine sees it."""

    def shadow_offsets(
        self, remotes: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, ShadowOffset | Unstable | None]:
        """Return committed shadow offsets, stable ones only (A6). None: never committed."""

    def topics(self, names: Sequence[str]) -> Mapping[str, KnownTopic]:
        """Return id, partitions and leaders. A missing topic is absent from the answer."""

    def limits(self, topics: Collection[str]) -> Mapping[str, TopicLimits]:
        """Return what topics accept now, without missing and hidden ones; or TargetUnavailable."""

    def check_login(self) -> None:
        """Raise LoginImpossible if the target refused the last login. Nothing is asked."""


class Lane(Protocol):
    """How one task reads and writes records. Its producers accept what its source returns."""

    written: Mapping[str, int]
    """Records that its producers sent, as `TaskReport.written` counts them."""

    @property
    def offsets(self) -> SourceOffsets:
        """Positions at least once, after the source was opened."""

    def open_source(self, listener: RebalanceListener) -> Source:
        """Join the source group. Called once in the life of a task."""

    def open_producer(self, transactional_id: str) -> TransactionalProducer:
        """Return a new, initialised incarnation (A0)."""

    def open_plain_producer(self) -> PlainProducer:
        """Return a producer without transactions."""

    def fence(self, transactional_ids: Collection[str]) -> set[str]:
        """
        Try once to initialise and drop each of these ids, in parallel (A4).

        Returns:
            The ids whose earlier users are all fenced now; the others may be tried again.
        """

    def note_limits(self, limits: Mapping[str, TopicLimits]) -> None:
        """Note what topics of the target accept now."""


class ClaimsLog(Protocol):
    """The claims topic on the target."""

    def append(self, claims: Sequence[Claim]) -> Mapping[str, int]:
        """Append claims and wait for all acknowledgements; return the offset by claim key (A1)."""

    def read_through(self, offset: int | None) -> Mapping[str, ClaimRecord]:
        """Return every live claim, from a view including `offset`; None: the current end (A2)."""

    def tombstone(self, keys: Sequence[str]) -> None:
        """Tombstone claims: our own on release, others' after they were fenced (A5)."""


class TaskProcess(Protocol):
    """What every task sees of its process. Methods are safe to call from the task's thread."""

    stop: threading.Event
    """Set when the task shall finish its current work and return."""

    @property
    def slot(self) -> int | None:
        """Index of the task, from 0; None: a command does the work of a task."""

    def event(self, name: str, fields: Mapping[str, Any]) -> None:
        """Send a log event to the driver, in order, with the next heartbeat."""

    def watch(self, what: str, budget: timedelta) -> AbstractContextManager[None]:
        """Exit the process if the block takes longer than the budget."""


class TaskContext(TaskProcess, Protocol):
    """What the engine sees of its process."""

    def orders(self) -> Orders:
        """Return the newest orders of the driver; the same object until they change."""

    def report(self, report: TaskReport) -> None:
        """Send a report to the driver. It also proves that the loop is alive."""


class TaskChannel(TaskProcess, Protocol):
    """What the runtime gives a running task: messages in their JSON form."""

    @property
    def slot(self) -> int:
        """Index of the task, from 0."""

    @property
    def submission(self) -> str:
        """Which start of the slot this is, such as `0.7`: the eighth of slot 0."""

    def orders(self) -> Mapping[str, Any]:
        """Return the newest orders, empty before the first; the same object until they change."""

    def report(self, report: Mapping[str, Any]) -> None:
        """Send a report to the driver, in order. It also proves that the loop is alive."""


TaskEntry = Callable[[Mapping[str, Any], TaskChannel], None]
"""The body of a task: configuration and channel in; returns when it is asked to stop."""
