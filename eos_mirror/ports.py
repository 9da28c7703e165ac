"""
What the engine needs of the world, as Protocols of at most six methods.

The engine (`replication/`) is written against these; `kafka/` and `runtime/` implement them. Fakes
live in `tests/engine/`, where tests hold them to the answers of real brokers.
One thread owns a `Source`, a `TransactionalProducer` and a `ClaimsLog`.
"""

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Protocol

from eos_mirror.core.claims import Claim, ClaimRecord
from eos_mirror.core.messages import Orders, TaskReport
from eos_mirror.core.records import Position, RecordRun, TopicPartition
from eos_mirror.core.topic_limits import TopicLimits
from eos_mirror.errors import PartitionStopped


@dataclass(slots=True, kw_only=True)
class Polled:
    """
    What one poll brought.

    Attributes:
        runs: In arrival order. A partition may appear more than once.
        ends: End-of-partition events: offset at which the reader stood at the end (LSO).
            They come after the runs.
        faults: Partitions that cannot be read on after the runs, with the reason.
        more_pending: It brought no runs, but more of what was just read is on its way. An open
            transaction of the source looks like this for a moment.
    """

    runs: list[RecordRun] = field(default_factory=list)
    ends: dict[TopicPartition, int] = field(default_factory=dict)
    faults: dict[TopicPartition, PartitionStopped] = field(default_factory=dict)
    more_pending: bool = False


class RebalanceListener(Protocol):
    """Called from inside `Source.poll` and `Source.close`, on the polling thread. Never raises."""

    def on_granted(self, partitions: Sequence[TopicPartition]) -> None:
        """The group gave us these. Nothing is read from them before `Source.assign`."""

    def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        """The group takes these back and waits for us to finish with them."""

    def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
        """The group has already given these away. Nothing may be committed for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOffset:
    """A committed offset of the source group, and the metadata of that commit."""

    position: Position
    metadata: str


class SourceGroup(Protocol):
    """The offsets of the source group, as its member sees them: the truth at least once."""

    def committed(
        self, partitions: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, GroupOffset | None]:
        """Committed offsets; None: never committed, or expired. May raise SourceUnavailable."""

    def commit(self, offsets: Mapping[TopicPartition, GroupOffset], *, within: timedelta) -> None:
        """
        Commit and wait.

        Raises:
            RestartTask: Not a member any more, or no answer; the outcome may be unknown.
        """


class Source(Protocol):
    """A member of the source consumer group, read_committed, without automatic resets."""

    def subscribe(self, topics: Sequence[str]) -> None:
        """Subscribe to exactly these topics; to the same as before: join the group again."""

    def poll(self, *, wait: timedelta) -> Polled:
        """
        Everything that is ready, at most one chunk; waits only when nothing is.

        Raises:
            RestartTask: The consumer is dead (fenced instance, fatal error).
            NotAuthorized: Read on the topic or the group was denied.
        """

    def assign(self, positions: Mapping[TopicPartition, Position]) -> None:
        """Start reading granted partitions at these positions."""

    def unassign(self, partitions: Sequence[TopicPartition]) -> None:
        """Stop reading; what was prefetched is dropped."""

    def commit(self, positions: Mapping[TopicPartition, Position]) -> None:
        """Advisory group offsets on the source, for people and lag tools. Does not wait."""

    def close(self) -> None:
        """Leave. A static member keeps its partitions until the session ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTopic:
    """
    A topic as it is now.

    Attributes:
        leaderless: Partitions without a leader: they cannot be read or written now.
        missing: Rights on it that a task needs and does not have. Without DESCRIBE nothing else is
            known of it.
    """

    topic_id: str
    partitions: int
    leaderless: frozenset[int] = frozenset()
    missing: Sequence[str] = ()


class SourceMetadata(Protocol):
    """Questions about the source that do not go through the group."""

    def topics(self, names: Sequence[str]) -> Mapping[str, KnownTopic]:
        """Identity, size and leaders. A missing topic is absent from the answer."""

    def start_offset(self, partition: TopicPartition, start: str) -> int:
        """Resolve `earliest`, `latest` or `timestamp:ISO` to an offset."""

    def log_start(self, partition: TopicPartition) -> int:
        """First offset that can still be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """
    Where the records of one target partition in the open transaction went.

    Attributes:
        first: Downstream offset of the first record; None if the broker did not say.
        last: Downstream offset of the last record; None if the broker did not say.
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
        doubt: Why the client may have sent it twice, so that a late copy could commit the next
            transaction (KAFKA-17754); None: it was sent once.
    """

    doubt: str | None = None


class TransactionalProducer(Protocol):
    """One incarnation on the target: initialised, owned by one thread, never aborted."""

    def begin(self) -> None:
        """Begin a transaction."""

    def send(self, run: RecordRun, remote: TopicPartition, *, batch: int | None = None) -> None:
        """
        Hand over a run unchanged; it is sent in the background.

        Args:
            batch: Runs of one partition with different numbers never share a batch, and those with
                a higher one are sent only after all before were acknowledged. None: batches are
                as large as the client likes. A partition has numbers in all of a transaction, or
                in none of it.

        Raises:
            RefusedByTarget: The client itself refuses a record.
        """

    def send_map(self, entries: Mapping[str, bytes | None]) -> None:
        """Records of the offset map topic, in the open transaction; None is a tombstone."""

    def flush(self, *, within: timedelta) -> Mapping[TopicPartition, Delivered]:
        """
        Wait until everything is acknowledged; say where it went.

        Raises:
            RefusedByTarget: A batch was refused, so the transaction cannot be committed.
        """

    def commit(
        self, offsets: Mapping[TopicPartition, ShadowCommit], *, within: timedelta
    ) -> Committed:
        """
        Send the shadow offsets and commit.

        Raises:
            RestartTask: Whatever went wrong; the outcome may be unknown.
        """

    def close(self) -> None:
        """Drop the client. An open transaction is left to the next claimer."""


class PlainProducer(Protocol):
    """An idempotent producer without transactions."""

    def send(self, run: RecordRun, remote: TopicPartition, *, batch: int | None = None) -> None:
        """See `TransactionalProducer.send`; a flush ends what a transaction ends there."""

    def flush(self, *, within: timedelta) -> None:
        """
        Wait until every record has arrived.

        Raises:
            RefusedByTarget: Batches were refused since the last flush. Everything else has
                arrived, but of a partition with numbered batches nothing behind the refused one.
            RestartTask: Not decided in time, or the client is dead.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowOffset:
    """A committed shadow offset: where mirroring resumes, and the metadata of that commit."""

    position: Position
    metadata: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionEnd:
    """
    Where a target partition ends; 0 for one that was never written.

    Attributes:
        stable: Last stable offset: where a read_committed reader stops.
        written: High watermark.
    """

    stable: int
    written: int

    @property
    def is_decided(self) -> bool:
        """No transaction with records here waits for its marker."""
        return self.stable >= self.written


class Unstable:
    """The answer for a partition with a transaction that is decided but not yet visible."""


UNSTABLE = Unstable()


class TargetReader(Protocol):
    """What there is to see on the target."""

    def ends(self, remotes: Sequence[TopicPartition]) -> Mapping[TopicPartition, PartitionEnd]:
        """Where each partition ends."""

    def first_offsets(
        self, starts: Mapping[TopicPartition, int], *, committed: bool
    ) -> Mapping[TopicPartition, Sequence[int]]:
        """
        The first two offsets at or after each of these that hold a record.

        Args:
            starts: None behind the end of its partition.
            committed: As a read_committed reader sees it, which stops at the first open
                transaction; otherwise with what was aborted.
        """

    def map_entries(self, topic: str) -> Mapping[str, bytes] | Unstable:
        """Newest value by key of one topic's map; `Unstable` while a transaction may hide any."""


class Target(TargetReader, Protocol):
    """The target cluster as the engine sees it."""

    def shadow_offsets(
        self, remotes: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, ShadowOffset | Unstable | None]:
        """Committed shadow offsets, stable ones only (A6). None: never committed."""

    def topics(self, names: Sequence[str]) -> Mapping[str, KnownTopic]:
        """Identity, size and leaders. A missing topic is absent from the answer."""

    def limits(self, topics: Collection[str]) -> Mapping[str, TopicLimits]:
        """
        What each topic takes now. Absent: a topic that is missing, or may not be described.

        Raises:
            TargetUnavailable: No answer.
        """


class Lane(Protocol):
    """How one task reads and writes records: its writers take what its reader hands out."""

    @property
    def group(self) -> SourceGroup:
        """Offsets of the source group, once the source is open."""

    def open_source(self, listener: RebalanceListener) -> Source:
        """Join the source group. Once in the life of a task."""

    def open_producer(self, transactional_id: str) -> TransactionalProducer:
        """A new, initialised incarnation (A0)."""

    def open_plain_producer(self) -> PlainProducer:
        """A producer without transactions."""

    def fence(self, transactional_ids: Collection[str]) -> set[str]:
        """
        Try once to initialise and drop each of these ids, in parallel (A4).

        Returns:
            The ids whose every earlier user is dead now; the others may be tried again.
        """


class ClaimsLog(Protocol):
    """The claims topic on the target."""

    def append(self, claims: Sequence[Claim]) -> Mapping[str, int]:
        """Append claims, all acknowledged; offset by claim key (A1)."""

    def read_through(self, offset: int | None) -> Mapping[str, ClaimRecord]:
        """Every live claim, from a view that includes `offset`; None: today's end (A2)."""

    def tombstone(self, keys: Sequence[str]) -> None:
        """Tombstone claims: our own on release, others' after they were fenced (A5)."""


class TaskProcess(Protocol):
    """What every task sees of its process. Methods are safe to call from the task's thread."""

    stop: threading.Event
    """Set when the task shall finish what it is at, and return."""

    @property
    def slot(self) -> int:
        """Index of the task, from 0."""

    def event(self, name: str, fields: Mapping[str, Any]) -> None:
        """Send a log event to the driver, in order, with the next heartbeat."""

    def watch(self, what: str, budget: timedelta) -> AbstractContextManager[None]:
        """Exit the process if the block takes longer than the budget."""


class TaskContext(TaskProcess, Protocol):
    """What the engine sees of its process."""

    def orders(self) -> Orders:
        """The newest orders of the driver; the same object until there are others."""

    def report(self, report: TaskReport) -> None:
        """Send a report to the driver; also proves that the loop turns."""


class TaskChannel(TaskProcess, Protocol):
    """What the runtime gives a running task: messages in their JSON form."""

    @property
    def submission(self) -> str:
        """Which start of the slot this is, such as `0.7`: the eighth of slot 0."""

    def orders(self) -> Mapping[str, Any]:
        """The newest orders; empty before the first. The same object until there are others."""

    def report(self, report: Mapping[str, Any]) -> None:
        """Send a report to the driver, in order; also proves that the loop turns."""


TaskEntry = Callable[[Mapping[str, Any], TaskChannel], None]
"""The body of a task: configuration and channel in; returns when it is asked to stop."""
