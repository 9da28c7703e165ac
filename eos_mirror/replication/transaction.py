"""
One transaction around what a task mirrored since the last one.

This is the only module that begins or commits. Nothing here aborts: a failed transaction ends with
its incarnation, and the coordinator or the next claimer aborts it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from eos_mirror.core.connect_positions import position_records
from eos_mirror.core.map_records import StartRecord, records_of, segment_key, start_key
from eos_mirror.core.messages import MirrorConfig
from eos_mirror.core.records import Position, RecordRun, Stretch, TopicPartition, TopicRecord
from eos_mirror.errors import (
    ForeignWriter,
    NewIncarnation,
    PartitionStopped,
    RestartTask,
    TransactionVoid,
)
from eos_mirror.ports import Committed, Delivered, TaskContext, TransactionalProducer
from eos_mirror.replication.config import (
    COMMIT_BUDGET,
    FLUSH_BUDGET,
    WATCH_MARGIN,
)
from eos_mirror.replication.dropped import DropNotes, Dropped
from eos_mirror.replication.partition import OwnedPartition
from eos_mirror.replication.portions import Portions


class Hooks(NamedTuple):
    """
    What a transaction uses besides its producer.

    Attributes:
        now: Returns monotonic seconds.
        reached: Called at named points, so that tests can stop a task exactly there.
        notes: Notes records that go to the quarantine.
    """

    now: Callable[[], float]
    reached: Callable[[str], None]
    notes: DropNotes


class Transaction:
    """
    The open transaction of one incarnation, begun with its first record.

    Invariants:
        A: The data, the quarantine, the shadow offsets, the map, and the positions of a source
           connector are committed together.
        B: After any exception this object begins no other transaction: the process exits, or,
           after `NewIncarnation`, `RefusedByTarget` and `TransactionVoid`, another object takes
           over.
    """

    def __init__(
        self,
        producer: TransactionalProducer,
        context: TaskContext,
        config: MirrorConfig,
        *,
        incarnation: str,
        hooks: Hooks,
    ) -> None:
        self._producer = producer
        self._context = context
        self._config = config
        self._map_topic = config.flow.offset_map_topic
        self._incarnation = incarnation
        self._now, self._reached, self._notes = hooks
        self._portions = Portions(producer)
        self._touched: dict[TopicPartition, OwnedPartition] = {}
        self._stretches: dict[TopicPartition, list[Stretch | tuple[int, int]]] = {}
        self._last_delivered: dict[TopicPartition, int] = {}
        self._dropped: list[Dropped] = []
        self._is_open = False
        self._is_over = False
        self.opened_at = 0.0
        self.size_bytes = 0
        self.records = 0

    @property
    def is_open(self) -> bool:
        """True if records or offsets wait for a commit."""
        return self._is_open

    def add(self, owned: OwnedPartition, run: RecordRun) -> RecordRun | None:
        """See `Writer`; the first offset of the run is at or after the position."""
        if not self._is_open:
            self._open()
        sent = self._portions.send(owned, run)
        if sent is None:
            return None
        self._touched[owned.remote] = owned
        self._stretches.setdefault(owned.remote, []).extend(sent.stretches())
        owned.position = Position(owned.sent_to, sent.leader_epoch)
        self.size_bytes += sent.size_bytes
        self.records += sent.count
        return sent

    def drop(self, dropped: Dropped, records: Sequence[TopicRecord]) -> None:
        """Move records to the quarantine; none lies between the position and the first one."""
        self.touch(dropped.owned)
        self._producer.send_to(self._config.quarantine or "", records)
        self._dropped.append(dropped)
        dropped.owned.position = Position(dropped.end)
        self.size_bytes += sum(len(record.value or b"") for record in records)
        self.records += dropped.records

    def touch(self, owned: OwnedPartition) -> None:
        """Commit this position, too, although none of its records is in the transaction."""
        if not self._is_open:
            self._open()
        self._touched[owned.remote] = owned

    def start(self, starts: Mapping[TopicPartition, StartRecord]) -> None:
        """Store how partitions begin. This is committed before their first record."""
        if not self._is_open:
            self._open()
        entries = {start_key(p): record.encode() for p, record in starts.items()}
        self._producer.send_to(self._map_topic, records_of(entries))

    def _open(self) -> None:
        if self._is_over:
            raise RestartTask("a transaction was begun after a failed or suspicious one")
        self._producer.begin()
        self._portions.clear()
        self._is_open = True
        self.opened_at = self._now()
        self._reached("begun")

    def commit(self, also: Iterable[OwnedPartition] = (), *, spill: bool = False) -> int:
        """
        Commit everything, and the positions of `also`.

        Args:
            spill: Write the map tails out, as on release.

        Returns:
            Records committed.

        Raises:
            NewIncarnation: Committed, but a late duplicate of the commit may exist.
            RefusedByTarget, TransactionVoid: Nothing is committed, and this transaction never
                can be.
            RestartTask: The commit failed, or its outcome is unknown.
        """
        for owned in also:
            self.touch(owned)
        self._is_over = True  # until the commit has succeeded
        with self._context.watch("flush", FLUSH_BUDGET + WATCH_MARGIN):
            delivered = self._producer.flush(within=FLUSH_BUDGET)
        if delivered:
            self._reached("flushed")
        self._note(delivered)
        self._notes.note(self._dropped)
        segments: dict[str, bytes | None] = {}
        for owned in self._touched.values():
            owned.tail.advance(owned.position.next_offset)
            if owned.tail.runs and (spill or owned.tail.needs_spill()):
                segment, encoded = owned.tail.spill()
                segments[segment_key(owned.remote, segment)] = encoded
        if segments:
            self._producer.send_to(self._map_topic, records_of(segments))
        if self._config.positions is not None:
            positions = {o.source: o.position.next_offset for o in self._touched.values()}
            records = position_records(self._config.positions, positions)
            self._producer.send_to(self._config.positions.topic, records)
        with self._context.watch("commit", COMMIT_BUDGET + WATCH_MARGIN):
            committed = self._producer.commit(
                {
                    remote: owned.commit_of(
                        incarnation=self._incarnation,
                        claims_topic_id=self._config.claims_topic_id,
                    )
                    for remote, owned in self._touched.items()
                },
                within=COMMIT_BUDGET,
            )
        return self._settle(committed)

    def _note(self, delivered: Mapping[TopicPartition, Delivered]) -> None:
        faults: dict[TopicPartition, PartitionStopped] = {}
        for remote, where in delivered.items():
            owned = self._touched[remote]
            try:
                self._record(owned, where)
            except ForeignWriter as exc:
                faults[owned.source] = exc
        if faults:
            raise TransactionVoid(faults)

    def _record(self, owned: OwnedPartition, where: Delivered) -> None:
        """Check that the records are dense and after our last ones, and add them to the map."""
        first = where.first if where.first is not None else _other_end(where.last, where.count, -1)
        last = where.last if where.last is not None else _other_end(where.first, where.count, 1)
        if first is None or last is None:
            raise RestartTask(f"{owned.remote}: the target did not report where records landed")
        if last - first != where.count - 1:
            raise ForeignWriter(
                f"{owned.remote}: {where.count} records of one transaction landed at "
                f"{first}..{last}: someone else writes this partition"
            )
        if first < (owned.tail.downstream_end or 0):
            raise ForeignWriter(
                f"{owned.remote}: record landed at {first}, but everything below "
                f"{owned.tail.downstream_end} was committed before: the target lost its end"
            )
        if owned.expected_downstream not in (None, first):
            # mostly a commit marker that a new coordinator wrote again; `verify` can prove it
            fields = {"partition": str(owned.remote), "offsets": first - owned.expected_downstream}
            self._context.event("partition.gap", fields)
        owned.tail.add(self._stretches.pop(owned.remote), first)
        self._last_delivered[owned.remote] = last

    def _settle(self, committed: Committed) -> int:
        now, records = self._now(), self.records
        for remote, owned in self._touched.items():
            owned.committed = owned.position.next_offset
            owned.committed_at = now
            owned.sequence += 1
            if remote in self._last_delivered:
                # one commit marker lies between two transactions
                owned.expected_downstream = self._last_delivered.pop(remote) + 2
        self._touched.clear()
        self._dropped.clear()
        self._notes.committed()
        self._is_open = False
        self.size_bytes = self.records = 0
        self._reached("committed")
        if committed.doubt is not None:
            raise NewIncarnation(committed.doubt)
        self._is_over = False
        return records


def _other_end(known: int | None, count: int, direction: int) -> int | None:
    """Compute one end from the other: a repeated record is acknowledged without an offset."""
    return None if known is None else known + direction * (count - 1)
