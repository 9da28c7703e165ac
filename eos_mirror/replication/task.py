"""
The mirror task: poll, send, commit, until told to stop.

One thread runs all of it. Rebalance callbacks arrive inside `Source.poll` on that thread; what
they raise is kept and raised after the poll, because the client loses records otherwise.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import timedelta

from eos_mirror.core.boundary import Pace
from eos_mirror.core.records import Position, RecordRun, TopicPartition
from eos_mirror.errors import (
    NewIncarnation,
    PartitionStopped,
    RecordRefused,
    RefusedByTarget,
    RestartTask,
)
from eos_mirror.ports import Polled, TaskContext
from eos_mirror.replication.at_least_once import AtLeastOnce
from eos_mirror.replication.config import TaskConfig
from eos_mirror.replication.exactly_once import ExactlyOnce
from eos_mirror.replication.measures import Measures
from eos_mirror.replication.mode import Mode, Writer
from eos_mirror.replication.partition import OwnedPartition
from eos_mirror.replication.positions import Claimed, Resolved
from eos_mirror.replication.source_faults import explain, recreated, replaced_topics, went_back
from eos_mirror.replication.world import World

IDLE_WAIT = timedelta(milliseconds=200)
SHORT_WAIT = timedelta(milliseconds=20)
NO_WAIT = timedelta(0)
TEND_EVERY_S = 0.25
CHECK_TOPICS_EVERY_S = 5.0
ADVISE_EVERY_S = 5.0
KEEP_ALIVE_SOON_S = 30.0
"""After an acquire: when the last commit was is unknown, and restarts must not put it off."""
ADVANCE_AFTER_S = 0.5
"""An idle partition's end, past control records, is committed after this pause."""


@dataclass(slots=True)
class Counters:
    """What the task did since its process started."""

    records: int = 0
    bytes: int = 0
    transactions: int = 0
    commit_ms: float = 0.0
    incarnations: int = 0


class MirrorTask:
    """
    Invariants:
        A: A partition is in acquisition, owned, or stopped; never in two of these.
        B: Only owned partitions are read, and reading starts at the owned position.
        C: What waits for a commit belongs to owned partitions only.
    """

    def __init__(
        self,
        config: TaskConfig,
        world: World,
        context: TaskContext,
        *,
        now: Callable[[], float],
        wall_ms: Callable[[], int] = lambda: 0,
        reached: Callable[[str], None] = lambda _: None,
    ) -> None:
        """
        Args:
            now: Monotonic seconds.
            wall_ms: Milliseconds since the epoch, for what is measured.
            reached: Called at named points of a transaction; tests stop tasks there.
        """
        self._config = config
        self._measures = Measures(context, wanted=config.measured, wall_ms=wall_ms, now=now)
        self._context = context
        self._now = now
        self._metadata = world.metadata
        self._routes: dict[str, str] = {}
        self._rejoin = context.orders().get("rejoin", 0)
        self._owned: dict[TopicPartition, OwnedPartition] = {}
        self._behind: dict[TopicPartition, OwnedPartition] = {}
        self._stopped: dict[TopicPartition, str] = {}
        self._pace = Pace(config.boundary)
        self._failure: Exception | None = None
        self._rebalanced = self._suspicious = self._more_waits = False
        self._tend_at = self._check_topics_at = self._advise_at = self._committed_at = now()
        self._counters = Counters()
        self._source = world.open_source(self)  # connects while the writer is opened
        self._mode: Mode = (
            ExactlyOnce(config, world, context, now=now, reached=reached)
            if config.exactly_once
            else AtLeastOnce(
                config, world, context, group=self._source.group, now=now, reached=reached
            )
        )
        self._acquisition = self._mode.acquisition
        self._report()
        self._writer = self._opened(self._mode.open())

    # ------------------------------------------------------------------ the loop

    def run(self) -> None:
        """
        Mirror until the context says stop, then release everything.

        Raises:
            RestartTask, FatalError: End the process; nothing was released.
        """
        while not self._context.stop.is_set():
            self._turn()
        self._finish()

    def _turn(self) -> None:
        if self._suspicious:
            self._renew()
        self._follow_orders()
        polled = self._source.poll(wait=self._patience())
        if self._failure is not None:
            raise self._failure
        if self._rebalanced:
            self._rebalanced = False
            self._reread(list(self._owned.values()))
        else:
            self._take(polled)
        self._more_waits = polled.more_waits
        if self._is_due(queue_empty=not polled.runs and not polled.more_waits):
            self._commit()
        if self._acquisition.is_due:
            self._acquire()
        if self._now() >= self._tend_at:
            self._tend()

    def _patience(self) -> timedelta:
        if self._writer.is_open:
            return SHORT_WAIT if self._more_waits else NO_WAIT
        # a grant arrives inside the poll, which sits out its time
        return IDLE_WAIT if self._owned and not self._acquisition.pending else SHORT_WAIT

    def _is_due(self, *, queue_empty: bool) -> bool:
        return self._writer.is_open and self._pace.due(
            self._writer.opened_at,
            self._now(),
            size_bytes=self._writer.size_bytes,
            records=self._writer.records,
            queue_empty=queue_empty,
        )

    def _follow_orders(self) -> None:
        orders = self._context.orders()
        routes, rejoin = orders.get("topics", {}), orders.get("rejoin", 0)
        if routes != self._routes or rejoin != self._rejoin:
            self._routes, self._rejoin = dict(routes), rejoin
            self._source.subscribe(sorted(self._routes))

    def _take(self, polled: Polled) -> None:
        faults: dict[TopicPartition, PartitionStopped] = {}
        for run in polled.runs:
            owned = self._owned.get(run.partition)
            if owned is not None and run.partition not in faults:
                self._mirror(owned, run, faults)
        for partition, fault in polled.faults.items():
            owned = self._owned.get(partition)
            if owned is not None:
                faults[partition] = explain(
                    self._config.flow, owned, fault, metadata=self._metadata
                )
        for partition, end in polled.ends.items():
            owned = self._owned.get(partition)
            if owned is None or partition in faults:
                continue  # the end lies behind the record that cannot be mirrored
            if end > owned.position.next_offset:
                # between lie control records, aborted or compacted ones: nothing to mirror, and
                # a later leader may have written them: with the epoch of our last record, this
                # would look like an end that the log has lost
                owned.position = Position(end)
                self._behind[partition] = owned
        self._stop(faults)

    def _mirror(
        self,
        owned: OwnedPartition,
        run: RecordRun,
        faults: dict[TopicPartition, PartitionStopped],
    ) -> None:
        fresh = run.from_offset(owned.position.next_offset)
        if fresh is None:
            return
        fault = went_back(self._config.flow, owned, fresh)
        if fault is not None:
            faults[owned.source] = fault
            return
        with self._leaving_out_refused():
            sent = self._writer.add(owned, fresh)
        if sent is not None:
            self._measures.took(owned.remote, sent)
            self._counters.bytes += sent.size_bytes

    # ------------------------------------------------------------------ transactions

    def _opened(self, writer: Writer) -> Writer:
        self._counters.incarnations += 1
        return writer

    def _commit(self, also: Iterable[OwnedPartition] = (), *, spill: bool = False) -> None:
        """Commit what is open, behind, and `also`. Nothing to commit is not a transaction."""
        riders = [*self._behind.values(), *also]
        if not riders and not self._writer.is_open:
            return
        self._check_identities()
        size_bytes, records, began = self._writer.size_bytes, self._writer.records, self._now()
        self._counters.records += records
        try:
            with self._leaving_out_refused():
                self._writer.commit(riders, spill=spill)
        except NewIncarnation as exc:
            self._suspicious = True
            self._context.event("commit.suspicious", {"reason": str(exc)})
        self._measures.committed()
        self._committed_at = self._now()
        took_s = self._committed_at - began
        self._pace.committed(took_s, size_bytes=size_bytes, records=records)
        self._counters.transactions += 1
        self._counters.commit_ms += took_s * 1e3
        self._behind.clear()

    def _check_identities(self) -> None:
        """After the last poll and before the commit, or it would prove nothing."""
        moved = [owned for owned in self._owned.values() if owned.is_behind]
        fault = recreated(self._config.flow, moved, metadata=self._metadata)
        if fault is not None:
            raise fault

    @contextmanager
    def _leaving_out_refused(self) -> Iterator[None]:
        try:
            yield
        except RefusedByTarget as exc:
            self._leave_out(TopicPartition(exc.topic, exc.partition), exc)
            raise

    def _leave_out(self, remote: TopicPartition, refused: RefusedByTarget) -> None:
        """Report a partition as stopped, so that the driver keeps our successor from it."""
        for owned in self._owned.values():
            if owned.remote == remote:
                reason = (
                    f"{self._config.flow} {owned.source} next_offset={owned.committed}: the "
                    f"target refuses a record from there on: {refused}. Raise the limit of "
                    f"{remote.topic}, or of the producer, then restart the run."
                )
                self._note_stopped(owned.source, RecordRefused(reason))

    def _renew(self) -> None:
        """A new incarnation, after a commit that may have been sent twice."""
        self._suspicious = False
        held = [
            Claimed(
                source=owned.source,
                remote=owned.remote,
                topic_id=owned.topic_id,
                partitions=0,
                since=self._now(),
            )
            for owned in self._owned.values()
        ]
        self._source.unassign([one.source for one in held])
        self._owned.clear()
        self._behind.clear()  # positions of a claim that ends here
        self._writer = self._opened(self._mode.renew())
        self._acquisition.reclaim(held)

    # ------------------------------------------------------------------ partitions

    def _acquire(self) -> None:
        self._commit()
        if self._suspicious:
            return
        progress = self._acquisition.step(self._routes)
        for partition, fault in progress.stopped.items():
            self._note_stopped(partition, fault)
        if progress.resolved:
            self._adopt(progress.resolved)

    def _adopt(self, resolved: Sequence[Resolved]) -> None:
        """Commit first positions before their first record, then start to read."""
        new = [one.owned for one in resolved]
        starts = {one.owned.remote: one.start for one in resolved if one.start is not None}
        if starts:
            self._writer.start(starts)
        self._commit([owned for owned in new if owned.is_behind])
        put_off_s = max(0.0, self._config.keepalive.total_seconds() - KEEP_ALIVE_SOON_S)
        for owned in new:
            owned.committed_at = self._now() - put_off_s
        self._owned.update({owned.source: owned for owned in new})
        self._source.assign({owned.source: owned.position for owned in new})
        self._report()
        self._context.event("partitions.acquired", {"partitions": len(new)})

    def _reread(self, owned: Sequence[OwnedPartition]) -> None:
        """Read again from the positions: what the last poll returned is dropped."""
        if not owned:
            return
        self._source.unassign([one.source for one in owned])
        self._source.assign({one.source: one.position for one in owned})

    def _stop(self, faults: Mapping[TopicPartition, PartitionStopped]) -> None:
        """Finish with these partitions; the others go on."""
        if not faults:
            return
        self._commit()
        self._source.unassign(list(faults))
        self._mode.release([self._owned.pop(partition).remote for partition in faults])
        for partition, fault in faults.items():
            self._note_stopped(partition, fault)

    def _note_stopped(self, partition: TopicPartition, fault: PartitionStopped) -> None:
        self._stopped[partition] = str(fault)
        self._context.event(
            "partition.stopped",
            {"partition": str(partition), "cause": type(fault).__name__, "reason": str(fault)},
        )

    # ------------------------------------------------------------------ rebalances

    def on_granted(self, partitions: Sequence[TopicPartition]) -> None:
        """See `ports.RebalanceListener`."""
        self._acquisition.grant(partitions)
        self._rebalanced = True

    def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        """See `ports.RebalanceListener`: commit, release, and only then let go."""
        self._rebalanced = True
        try:
            self._let_go(partitions)
        except Exception as exc:  # noqa: BLE001 (raised after the poll; nothing was released)
            self._failure = exc

    def _let_go(self, partitions: Sequence[TopicPartition]) -> None:
        gone = [self._owned[p] for p in partitions if p in self._owned]
        self._commit([owned for owned in gone if owned.tail.runs], spill=bool(gone))
        for owned in gone:
            del self._owned[owned.source]
        self._mode.release([owned.remote for owned in gone])
        self._acquisition.withdraw(partitions)
        for partition in partitions:
            self._stopped.pop(partition, None)

    def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
        """See `ports.RebalanceListener`: they may be somebody else's already."""
        names = ", ".join(map(str, partitions[:5]))
        self._failure = RestartTask(f"the source group gave {names} away: session ended")

    # ------------------------------------------------------------------ housekeeping

    def _tend(self) -> None:
        now = self._now()
        self._tend_at = now + TEND_EVERY_S
        if not self._writer.is_open and not self._suspicious:
            keepalive_s = self._config.keepalive.total_seconds()
            stale = [o for o in self._owned.values() if now - o.committed_at > keepalive_s]
            if stale or (self._behind and now - self._committed_at > ADVANCE_AFTER_S):
                self._commit(stale)
        if now >= self._check_topics_at:
            self._check_topics_at = now + CHECK_TOPICS_EVERY_S
            self._stop(
                replaced_topics(self._config.flow, self._owned.values(), metadata=self._metadata)
            )
        if self._mode.advises and now >= self._advise_at and self._owned:
            self._advise_at = now + ADVISE_EVERY_S
            self._source.commit({o.source: o.position for o in self._owned.values()})
        self._measures.tell()
        self._report()

    def _report(self) -> None:
        self._context.report(
            {
                **asdict(self._counters),
                "fences": self._mode.fences,
                "dropped": self._mode.dropped,
                "owned": len(self._owned),
                "pending": self._acquisition.pending_of(self._routes),
                "stopped": {str(p): why for p, why in self._stopped.items()},
            }
        )

    def _finish(self) -> None:
        if not self._suspicious:
            self._commit([o for o in self._owned.values() if o.tail.runs], spill=True)
        self._mode.release([owned.remote for owned in self._owned.values()])
        if self._mode.advises and self._owned:
            self._source.commit({o.source: o.position for o in self._owned.values()})
        self._owned.clear()
        self._report()
        self._source.close()
