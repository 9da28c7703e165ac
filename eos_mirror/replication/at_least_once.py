"""
At least once: an idempotent producer, and positions in the source group, or MirrorMaker 2's topic.

send -> flush, every record acknowledged -> commit the positions, and wait.
A crash between the last two steps repeats what was not committed. Nothing is ever skipped.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple, TypeVar

from eos_mirror.core.handlers import FAILED
from eos_mirror.core.internal_records import OffsetSync
from eos_mirror.core.map_records import StartRecord
from eos_mirror.core.messages import MirrorConfig
from eos_mirror.core.metadata import GroupMetadata, encode_group
from eos_mirror.core.records import Position, RecordRun, TopicPartition
from eos_mirror.core.reported import Reported
from eos_mirror.core.topic_limits import RefusedRecords
from eos_mirror.errors import NotAuthorized, RecordRefused, RefusedByTarget, RestartTask, fields_of
from eos_mirror.ports import GroupOffset, PlainProducer, SourceOffsets, TaskContext
from eos_mirror.replication.acquisition import Acquisition
from eos_mirror.replication.adapters import Adapters, OffsetSyncs
from eos_mirror.replication.config import COMMIT_BUDGET, FLUSH_BUDGET, WATCH_MARGIN
from eos_mirror.replication.dropped import DropNotes, Dropped
from eos_mirror.replication.group_positions import GroupPositions
from eos_mirror.replication.partition import OwnedPartition
from eos_mirror.replication.portions import Portions
from eos_mirror.replication.provenance import Provenance
from eos_mirror.replication.quarantine import Quarantine

T = TypeVar("T")

PAIRS_AGAIN_S = 30.0
"""Pause in offset syncs after they could not be written."""


class AtLeastOnce:
    """Implements `Mode`. Nothing is fenced: a late writer only repeats its last batch."""

    advises = False
    reopens = False
    fences = 0

    def __init__(
        self,
        config: MirrorConfig,
        adapters: Adapters,
        context: TaskContext,
        *,
        offset_syncs: OffsetSyncs | None,
        reached: Callable[[str], None] = lambda _: None,
    ) -> None:
        """
        Args:
            offset_syncs: None: no offset syncs are written.
            reached: Called at named points of a batch; tests stop tasks there.
        """
        self._flow = config.flow
        self._lane = adapters.lane
        self._context = context
        self._notes = DropNotes(context, adapters.ledger, quarantine=config.quarantine)
        self._quarantine = (
            None
            if config.quarantine is None
            else Quarantine(config.quarantine, config, adapters.target, adapters.now)
        )
        self._offset_syncs = offset_syncs
        self._now = adapters.now
        self._reached = reached
        self._reported = Reported()
        self._pairs_from = adapters.now()
        self._before_commit = adapters.suspension.check if config.assigned else _nothing
        self._onward = Provenance(config.flow).onward if config.provenance else _whole
        self.drops = self._quarantine is not None or not config.abort_on_send_failure
        self.acquisition = Acquisition(
            config,
            adapters,
            context,
            claims=_NoClaims(),
            positions=GroupPositions(config, adapters),
        )

    @property
    def dropped(self) -> int:
        """See `Mode`."""
        return 0 if self._quarantine is not None else self._notes.records

    @property
    def quarantined(self) -> int:
        """See `Mode`."""
        return 0 if self._quarantine is None else self._notes.records

    def open(self) -> "Batch":
        """See `Mode`."""
        self._producer = self._lane.open_plain_producer()
        self._batch = Batch(
            self._producer,
            self._lane.offsets,
            self._context,
            hooks=_Hooks(
                self._onward, self._notes, self._pairs, self._committed, self._before_commit
            ),
            now=self._now,
            reached=self._reached,
        )
        return self._batch

    def drop(self, owned: OwnedPartition, run: RecordRun, refused: RefusedRecords) -> None:
        """See `Mode`; the ledger entry is written before the position is committed."""
        if self._quarantine is not None:
            records = self._quarantine.accepted(owned, run, refused)
            self._producer.send_to(self._quarantine.topic, records)
            refused = replace(refused, stop=refused.start + len(records))
        elif refused.code == FAILED:  # a fault of the user's code, not of the record
            place = refused.place(run.decoded())
            raise RecordRefused(f"{self._flow} {owned.source} {place}")
        self._batch.drop(Dropped.of(owned, run, refused))

    def _pairs(self, touched: Iterable[OwnedPartition]) -> Sequence[OffsetSync]:
        """
        Pair positions with the ends of their copies, after all earlier records arrived.

        Publish the pairs only after the positions are committed. Before that, a successor
        may already have appended records, so a target end may be too high for its position.
        """
        if self._offset_syncs is None or self._now() < self._pairs_from:
            return []
        positions = {owned.remote: (owned.source, owned.position.next_offset) for owned in touched}
        return self._trying(partial(self._offset_syncs.pairs, positions)) or []

    def _committed(self, pairs: Sequence[OffsetSync]) -> None:
        if self._offset_syncs is None or not pairs:
            return
        if self._trying(partial(self._offset_syncs.write, pairs)) and self._reported.over():
            self._context.event("failure.over", {"what": "offset-syncs.failed"})

    def _trying(self, step: Callable[[], T]) -> T | None:
        """
        Run a step of the offset syncs, best effort.

        After a failure, groups wait for the next sync. No batch waits for a second failure:
        nothing is tried for `PAIRS_AGAIN_S`.
        """
        try:
            with self._context.watch("offset syncs", FLUSH_BUDGET + WATCH_MARGIN):
                return step()
        except (NotAuthorized, RestartTask) as exc:
            self._pairs_from = self._now() + PAIRS_AGAIN_S
            if self._reported.is_new():
                self._context.event("offset-syncs.failed", fields_of(exc))
            return None

    def reopen(self) -> "Batch":
        """See `Mode`; a batch is never suspicious, and a refused one does not spoil others."""
        return self.open()

    def release(self, remotes: Iterable[TopicPartition]) -> None:
        """See `Mode`; nothing to do, as positions are committed."""


def _nothing() -> None:
    """Let the source group refuse the commit of a task that is no member any more."""


def _whole(run: RecordRun) -> RecordRun:
    return run


class _NoClaims:
    def claim(self, remotes: Sequence[TopicPartition]) -> None:
        """Do nothing: several tasks may write."""

    def release(self, remotes: Iterable[TopicPartition]) -> None:
        """Do nothing."""


class _Hooks(NamedTuple):
    """
    Callbacks of a batch.

    Attributes:
        onward: Returns the part of a run that is copied.
        notes: Notes records that are dropped.
        acknowledged: Called with the partitions of a batch after all of it has arrived and before
            anything else is sent. Its result counts only if the offsets are committed then.
        committed: Called with that result after the commit.
        before_commit: Called just before it; raises RestartTask if nothing may be committed.
    """

    onward: Callable[[RecordRun], RecordRun | None]
    notes: DropNotes
    acknowledged: Callable[[Iterable[OwnedPartition]], Sequence[OffsetSync]]
    committed: Callable[[Sequence[OffsetSync]], None]
    before_commit: Callable[[], None]


class Batch:
    """
    Implements `Writer`.

    Invariant A: an offset is committed only after every record below it was acknowledged, or
    dropped and noted in the ledger.
    """

    def __init__(
        self,
        producer: PlainProducer,
        offsets: SourceOffsets,
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
        self._offsets = offsets
        self._context = context
        self._hooks = hooks
        self._now = now
        self._reached = reached
        self._portions = Portions(producer)
        self._touched: dict[TopicPartition, OwnedPartition] = {}
        self._dropped: list[Dropped] = []
        self._is_over = False
        self.is_open = False
        self.opened_at = 0.0
        self.size_bytes = 0
        self.records = self._sent = 0

    def _open(self) -> None:
        if self._is_over:
            raise RestartTask("records were added after a failed commit")
        if not self.is_open:
            self.is_open = True
            self.opened_at = self._now()
            self._reached("begun")

    def add(self, owned: OwnedPartition, run: RecordRun) -> RecordRun | None:
        """See `Writer`."""
        self._open()
        self._touched[owned.remote] = owned
        onward = self._hooks.onward(run)
        sent = None
        if onward is not None:
            sent = self._portions.send(owned, onward)
            if sent is None:
                return None
            self.size_bytes += sent.size_bytes
            self._sent += sent.count
            if sent.next_offset < onward.next_offset:  # the transaction has no room for the others
                run = sent
        owned.position = Position(run.next_offset, run.leader_epoch)
        self.records += run.count
        return sent

    def drop(self, dropped: Dropped) -> None:
        """Drop records; no other record lies between the position and the first of them."""
        self._open()
        self._touched[dropped.owned.remote] = dropped.owned
        self._dropped.append(dropped)
        dropped.owned.position = Position(dropped.end)
        self.records += dropped.records

    def start(self, starts: Mapping[TopicPartition, StartRecord]) -> None:
        """See `Writer`; nothing to do, as the next commit stores it."""

    def commit(self, also: Iterable[OwnedPartition] = (), *, spill: bool = False) -> int:  # noqa: ARG002 (part of the protocol; nothing is in memory only)
        """See `Writer`."""
        self._touched.update({owned.remote: owned for owned in also})
        self._is_over = True  # until the commit has succeeded
        refused: RefusedByTarget | None = None
        try:
            with self._context.watch("flush", FLUSH_BUDGET + WATCH_MARGIN):
                self._producer.flush(within=FLUSH_BUDGET)
        except RefusedByTarget as exc:
            self._take_back(exc)
            refused = exc
        if self._sent:
            self._reached("flushed")
        self._hooks.notes.note(
            [one for one in self._dropped if one.end <= one.owned.position.next_offset]
        )
        pairs = self._hooks.acknowledged(self._touched.values())
        self._hooks.before_commit()
        with self._context.watch("commit", COMMIT_BUDGET + WATCH_MARGIN):
            self._offsets.commit(
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
        self._hooks.notes.committed()
        self._hooks.committed(pairs)
        sent = self._settle()
        if refused is not None:
            raise refused
        return sent

    def _take_back(self, exc: RefusedByTarget) -> None:
        """
        Move positions back to before the refused records.

        With numbered batches, the first offset of the refused one is known, and nothing after it
        was sent. Otherwise the refused batch may hold any record since the last commit.
        """
        for remote, refusal in exc.refused.items():
            owned = self._touched.get(remote)
            if owned is not None:
                owned.position = Position(
                    (owned.committed or 0) if refusal.first is None else refusal.first
                )

    def _settle(self) -> int:
        now, sent = self._now(), self._sent
        for owned in self._touched.values():
            owned.committed = owned.position.next_offset
            owned.committed_at = now
        self._touched.clear()
        self._portions.clear()
        self._dropped.clear()
        self.is_open = self._is_over = False
        self.size_bytes = self.records = self._sent = 0
        self._reached("committed")
        return sent
