"""Two clusters, fake or real: their ports, and what a test does to them from outside."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Protocol

from eos_mirror.core.flow import Flow
from eos_mirror.core.records import DecodedRun, Position, TopicPartition
from eos_mirror.errors import RefusedByTarget, RestartTask, TransactionLost
from eos_mirror.ports import (
    ClaimsLog,
    Lane,
    Polled,
    RebalanceListener,
    ShadowCommit,
    Source,
    SourceMetadata,
    Target,
    TransactionalProducer,
)

BUDGET = timedelta(seconds=5)


class TargetBench(Protocol):
    """
    A target cluster. Every call of `new_topic` uses a new name.

    Attributes:
        is_exact: Its producers know which records a refused batch had, and which were named.
    """

    flow: Flow
    is_exact: bool

    def target(self) -> Target:
        """Open a new client."""

    def lane(self) -> Lane:
        """Open a lane with its own producers; nothing is read through it."""

    def claims(self) -> ClaimsLog:
        """Open a claims log with its own clients."""

    def new_topic(self, partitions: int) -> str:
        """Create an empty topic and return its name."""

    def configure(self, topic: str, config: Mapping[str, str]) -> None:
        """Set these topic configs; every broker applies them when this returns."""

    def delete_topic(self, topic: str) -> None:
        """Delete the topic and what depends on it."""

    def forget_offset(self, remote: TopicPartition) -> None:
        """Delete the shadow offset, as if it had expired."""

    def truncate(self, remote: TopicPartition, before: int) -> None:
        """Delete the records before this offset, as retention does."""

    def pend(
        self, producer: TransactionalProducer, offsets: Mapping[TopicPartition, ShadowCommit]
    ) -> None:
        """Do the first half of `commit`: send the offsets, decide nothing."""

    def time_out(self, transactional_id: str) -> None:
        """Let transaction.timeout.ms pass on a fake; real brokers do it by themselves."""

    def read(self, remote: TopicPartition) -> list[tuple[int, bytes | None]]:
        """Return the offsets and values that a read_committed reader sees now."""

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait until the condition holds by itself."""


class SourceBench(Protocol):
    """
    A source cluster and its group.

    Attributes:
        is_exact: Its sources carry every record that a log can hold.
    """

    is_exact: bool

    def new_topic(self, partitions: int) -> str:
        """Create an empty topic and return its name."""

    def recreate_topic(self, topic: str) -> None:
        """Delete the topic and create it again with one partition."""

    def produce(
        self, partition: TopicPartition, values: Sequence[bytes], *, commit: bool | None = None
    ) -> None:
        """Produce records; `commit` says how their transaction ends, None: no transaction."""

    def produce_uncarriable(self, partition: TopicPartition, value: bytes) -> None:
        """Produce a record with timestamp 0."""

    def begin(self, partition: TopicPartition, value: bytes) -> None:
        """Produce a record in a transaction that stays open."""

    def truncate(self, partition: TopicPartition, before: int) -> None:
        """Delete the records before this offset, as retention does."""

    def metadata(self) -> SourceMetadata:
        """Open a new client."""

    def open_source(self, listener: RebalanceListener, slot: int) -> Source:
        """Open a member of this bench's group."""

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait until the condition holds by itself."""


class Listener:
    """Remembers the group's callbacks, and accepts everything that is granted."""

    def __init__(self) -> None:
        self.granted: set[TopicPartition] = set()
        self.revoked: set[TopicPartition] = set()

    def on_granted(self, partitions: Sequence[TopicPartition]) -> None:
        """See the port."""
        self.granted.update(partitions)

    def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        """See the port."""
        self.revoked.update(partitions)
        self.granted.difference_update(partitions)

    on_lost = on_revoked


class Reader:
    """A group member that reads, and everything that it read."""

    def __init__(self, bench: SourceBench, topic: str, *, slot: int = 0) -> None:
        self._bench = bench
        self.listener = Listener()
        self.source = bench.open_source(self.listener, slot)
        self.values: dict[TopicPartition, list[tuple[int, bytes | None]]] = {}
        self.all = Polled()
        self.source.subscribe([topic])

    def poll(self) -> None:
        """Poll once, and keep what it returned."""
        polled = self.source.poll(wait=timedelta(milliseconds=50))
        for run in polled.runs:
            records = run.decoded()
            pairs = zip(records.offsets, records.values, strict=True)
            self.values.setdefault(run.partition, []).extend(pairs)
        self.all.runs += polled.runs
        self.all.ends.update(polled.ends)
        self.all.faults.update(polled.faults)

    def poll_until(self, condition: Callable[[], bool], what: str) -> None:
        """Poll until the condition holds."""

        def polled() -> bool:
            self.poll()
            return condition()

        self._bench.until(polled, what)

    def read_from(self, partition: TopicPartition, next_offset: int) -> None:
        """Wait for the grant, then start at this offset."""
        self.poll_until(lambda: partition in self.listener.granted, f"grant of {partition}")
        self.source.assign({partition: Position(next_offset)})

    def read_to_end(self, partition: TopicPartition, end: int) -> list[tuple[int, bytes | None]]:
        """Return everything up to an end-of-partition event at this offset."""
        self.poll_until(lambda: self.all.ends.get(partition) == end, f"end of {partition} at {end}")
        return self.values.get(partition, [])


def run_of(
    partition: TopicPartition,
    first: int,
    values: Sequence[bytes],
    keys: Sequence[bytes | None] = (),
) -> DecodedRun:
    """Return records at consecutive offsets, without keys if none are given."""
    return DecodedRun(
        partition=partition,
        offsets=list(range(first, first + len(values))),
        timestamps=[1_700_000_000_000] * len(values),
        keys=list(keys) or [None] * len(values),
        values=list(values),
        headers=[None] * len(values),
        leader_epoch=0,
        size_bytes=sum(map(len, values)),
    )


def shadow(next_offset: int, *, epoch: int | None = 0) -> ShadowCommit:
    """Return a shadow offset to commit."""
    return ShadowCommit(position=Position(next_offset, epoch), metadata=f"at {next_offset}")


def is_refused(call: Callable[[], object]) -> bool:
    """Return whether the call raises an error that ends the incarnation, at least."""
    try:
        call()
    except (RestartTask, RefusedByTarget, TransactionLost):
        return True
    return False
