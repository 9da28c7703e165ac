"""
At least once: an idempotent producer, and positions in the source group.

send -> flush, every record acknowledged -> commit the source group's offsets, and wait.
A crash between the last two repeats what was not committed; nothing is ever skipped.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

from eos_mirror.core.internal_records import OffsetSync
from eos_mirror.core.ledger import Kind
from eos_mirror.core.map_records import StartRecord
from eos_mirror.core.metadata import GroupMetadata, encode_group
from eos_mirror.core.records import Position, RecordRun, TopicPartition
from eos_mirror.errors import NotAuthorized, RefusedByTarget, RestartTask
from eos_mirror.ports import Failed, GroupOffset, PlainProducer, SourceGroup, TaskContext
from eos_mirror.replication.acquisition import Acquisition
from eos_mirror.replication.config import COMMIT_BUDGET, FLUSH_BUDGET, WATCH_MARGIN, TaskConfig
from eos_mirror.replication.group_positions import GroupPositions
from eos_mirror.replication.partition import OwnedPartition
from eos_mirror.replication.provenance import Provenance
from eos_mirror.replication.world import World

T = TypeVar("T")

PAIRS_AGAIN_S = 30.0
"""After offset syncs could not be written."""


class AtLeastOnce:
    """Implements `Mode`. There is nobody to fence: a late writer repeats its last batch."""

    advises = False
    fences = 0

    def __init__(
        self,
        config: TaskConfig,
        world: World,
        context: TaskContext,
        *,
        group: SourceGroup,
        now: Callable[[], float],
        reached: Callable[[str], None],
    ) -> None:
        """
        Args:
            group: Offsets of the source group.
            now: Monotonic seconds.
            reached: Called at named points of a batch.
        """
        self._config = config
        self._world = world
        self._context = context
        self._group = group
        self._now = now
        self._reached = reached
        self._is_told = False
        self._pairs_from = now()
        self._onward = Provenance(config.flow).onward if config.provenance else _whole
        self.dropped = 0
        self.acquisition = Acquisition(
            config,
            world,
            context,
            claims=_NoClaims(),
            positions=GroupPositions(config, world, group),
            now=now,
        )

    def open(self) -> "Batch":
        """See `Mode`."""
        return Batch(
            self._world.open_plain_producer(),
            self._group,
            self._context,
            hooks=_Hooks(self._onward, self._refused, self._pairs, self._committed),
            now=self._now,
            reached=self._reached,
        )

    def _refused(self, owned: OwnedPartition, failed: Failed) -> None:
        remote = owned.remote
        if self._config.abort_on_send_failure:
            raise RefusedByTarget(
                f"produce to {remote}: {failed.reason}",
                topic=remote.topic,
                partition=remote.partition,
            )
        self._note(owned, failed)
        self.dropped += failed.count
        self._context.event(
            "records.dropped",
            {"partition": str(remote), "records": failed.count, "reason": failed.reason},
        )

    def _pairs(self, touched: Iterable[OwnedPartition]) -> Sequence[OffsetSync]:
        """
        Positions, and where the copies end, when all before them has arrived.

        They count once the offsets are committed: until then another task may have gone on in
        our place, and what is at a position and behind it may lie before these ends.
        """
        if self._world.offset_syncs is None or self._now() < self._pairs_from:
            return []
        positions = {owned.remote: (owned.source, owned.position.next_offset) for owned in touched}
        return self._trying(partial(self._world.offset_syncs.pairs, positions)) or []

    def _committed(self, pairs: Sequence[OffsetSync]) -> None:
        if self._world.offset_syncs is None or not pairs:
            return
        if self._trying(partial(self._world.offset_syncs.write, pairs)):
            self._is_told = False

    def _trying(self, step: Callable[[], T]) -> T | None:
        """Best effort: groups wait for the next one, and no batch waits for a second failure."""
        try:
            with self._context.watch("offset syncs", FLUSH_BUDGET + WATCH_MARGIN):
                return step()
        except (NotAuthorized, RestartTask) as exc:
            self._pairs_from = self._now() + PAIRS_AGAIN_S
            if not self._is_told:
                self._is_told = True
                reason = f"{type(exc).__name__}: {exc}"
                self._context.event("offset-syncs.failed", {"reason": reason})
            return None

    def _note(self, owned: OwnedPartition, failed: Failed) -> None:
        """Before the offsets are committed: nothing is left out without a record of it."""
        with self._context.watch("ledger", FLUSH_BUDGET + WATCH_MARGIN):
            self._world.note(
                Kind.DROP,
                {
                    "task": self._context.slot,
                    "partition": str(owned.source),
                    "topic_id": owned.topic_id,
                    "from": max(owned.committed, 0),
                    "to": owned.position.next_offset,
                    "records": failed.count,
                    "reason": failed.reason,
                },
            )

    def renew(self) -> "Batch":
        """See `Mode`; a batch is never suspicious."""
        return self.open()

    def release(self, remotes: Iterable[TopicPartition]) -> None:
        """See `Mode`: positions are committed, that is all."""


def _whole(run: RecordRun) -> RecordRun:
    return run


class _NoClaims:
    def claim(self, remotes: Sequence[TopicPartition]) -> None:
        """Nothing: several may write."""

    def release(self, remotes: Iterable[TopicPartition]) -> None:
        """Nothing."""


class _Hooks(NamedTuple):
    """
    Attributes:
        onward: What of a run is copied.
        refused: Raises, or notes that these records are left out.
        acknowledged: Takes the partitions of a batch when all of it has arrived and nothing else
            was sent; what it returns counts if the offsets are committed then.
        committed: Takes that.
    """

    onward: Callable[[RecordRun], RecordRun | None]
    refused: Callable[[OwnedPartition, Failed], None]
    acknowledged: Callable[[Iterable[OwnedPartition]], Sequence[OffsetSync]]
    committed: Callable[[Sequence[OffsetSync]], None]


class Batch:
    """
    Implements `Writer`.

    Invariant A: an offset is committed only after every record below it was acknowledged, or
    dropped and told.
    """

    def __init__(
        self,
        producer: PlainProducer,
        group: SourceGroup,
        context: TaskContext,
        *,
        hooks: "_Hooks",
        now: Callable[[], float],
        reached: Callable[[str], None],
    ) -> None:
        """
        Args:
            now: Monotonic seconds.
            reached: Called at named points, so that tests can stop a task exactly there.
        """
        self._producer = producer
        self._group = group
        self._context = context
        self._hooks = hooks
        self._now = now
        self._reached = reached
        self._touched: dict[TopicPartition, OwnedPartition] = {}
        self._is_over = False
        self.is_open = False
        self.opened_at = 0.0
        self.size_bytes = 0
        self.records = self._sent = 0

    def add(self, owned: OwnedPartition, run: RecordRun) -> RecordRun | None:
        """See `Writer`."""
        if self._is_over:
            raise RestartTask("records were added after a failed commit")
        if not self.is_open:
            self.is_open = True
            self.opened_at = self._now()
            self._reached("begun")
        onward = self._hooks.onward(run)
        if onward is not None:
            self._producer.send(onward, owned.remote)  # what it refuses is not passed over
            self.size_bytes += onward.size_bytes
            self._sent += len(onward.offsets)
        self._touched[owned.remote] = owned
        owned.position = Position(run.next_offset, run.leader_epoch)
        self.records += len(run.offsets)
        return onward

    def start(self, starts: Mapping[TopicPartition, StartRecord]) -> None:
        """See `Writer`: the commit that follows says it."""

    def commit(self, also: Iterable[OwnedPartition] = (), *, spill: bool = False) -> int:  # noqa: ARG002 (of the protocol; nothing is in memory only)
        """See `Writer`."""
        self._touched.update({owned.remote: owned for owned in also})
        self._is_over = True  # until it is known to be good
        with self._context.watch("flush", FLUSH_BUDGET + WATCH_MARGIN):
            failed = self._producer.flush(within=FLUSH_BUDGET)
        if self._sent:
            self._reached("flushed")
        for remote, failure in failed.items():
            if not failure.is_refusal:
                raise RestartTask(f"produce to {remote}: {failure.reason}")
            self._hooks.refused(self._touched[remote], failure)
        pairs = self._hooks.acknowledged(self._touched.values())
        with self._context.watch("commit", COMMIT_BUDGET + WATCH_MARGIN):
            self._group.commit(
                {
                    owned.source: GroupOffset(
                        position=owned.position,
                        metadata=encode_group(
                            GroupMetadata(topic_id=owned.topic_id, partitions=owned.partitions)
                        ),
                    )
                    for owned in self._touched.values()
                },
                within=COMMIT_BUDGET,
            )
        self._hooks.committed(pairs)
        return self._settle()

    def _settle(self) -> int:
        now, sent = self._now(), self._sent
        for owned in self._touched.values():
            owned.committed = owned.position.next_offset
            owned.committed_at = now
        self._touched.clear()
        self.is_open = self._is_over = False
        self.size_bytes = self.records = self._sent = 0
        self._reached("committed")
        return sent
