"""
The mirror task: poll, send, commit, until it is asked to stop.

One thread runs all of it. Rebalance callbacks arrive inside `Source.poll` on that thread. What
they raise is kept and raised after the poll, because the client loses records otherwise.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

from eos_mirror.core.boundary import Pace
from eos_mirror.core.messages import MirrorConfig, Orders
from eos_mirror.core.records import RecordRun, TopicPartition
from eos_mirror.errors import (
    NewIncarnation,
    PartitionStopped,
    RefusedByTarget,
    RestartTask,
    TransactionLost,
    TransactionVoid,
)
from eos_mirror.ports import Polled, TaskContext
from eos_mirror.replication import intervals
from eos_mirror.replication.adapters import Adapters
from eos_mirror.replication.counters import Counters
from eos_mirror.replication.holdings import Holdings
from eos_mirror.replication.incarnation import Incarnation
from eos_mirror.replication.intake import Intake
from eos_mirror.replication.mode import Mode, Writer
from eos_mirror.replication.operator_orders import OperatorOrders
from eos_mirror.replication.partition import OwnedPartition, Resolved
from eos_mirror.replication.partition_metrics import PartitionMeter
from eos_mirror.replication.refusals import Refusals
from eos_mirror.replication.reporter import Reporter
from eos_mirror.replication.source_faults import check_identities, check_topics
from eos_mirror.replication.stopped import Stopped
from eos_mirror.replication.throttled_source import ThrottledSource
from eos_mirror.replication.transformed import opener_of

IDLE_WAIT = timedelta(milliseconds=200)
SHORT_WAIT = timedelta(milliseconds=20)
NO_WAIT = timedelta(0)


class MirrorTask:
    """
    Mirrors the partitions that the source group assigns to it.

    Invariants:
        A: A partition is in acquisition, owned, or stopped; never in two of these. A stopped one
            that is tried again counts as being in acquisition, and then as owned.
        B: Only owned partitions are read, and reading starts at the owned position.
        C: Everything that waits for a commit belongs to owned partitions.
    """

    def __init__(
        self, config: MirrorConfig, adapters: Adapters, context: TaskContext, *, mode: Mode
    ) -> None:
        now = self._now = adapters.now
        self._config, self._pace = config, Pace(config.boundary)
        self._meter = PartitionMeter(wanted=config.measured, wall_ms=adapters.wall_ms, now=now)
        self._metadata, self._target = adapters.metadata, adapters.target
        self._sources = adapters.identities
        self._failure: Exception | None = None
        self._orders = Orders(rejoin=context.orders().rejoin)
        self._hold, self._counters = Holdings(), Counters(adapters.lane.written)
        self._stopped = Stopped(context, now=now)
        self._refusals = Refusals(config, adapters, context)
        self._rebalanced = self._more_pending = False
        self._tend_at = self._check_topics_at = self._advise_at = self._committed_at = now()
        self._limits_at = now() + intervals.LIMITS_EVERY_S
        self._mode, self._acquisition, self._context = mode, mode.acquisition, context
        opener = opener_of(adapters, config, context, lambda topic: self._orders.topics[topic])
        self._source = ThrottledSource(opener, self, slot=context.slot or 0, now=now)
        self._intake = Intake(
            config=config,
            holdings=self._hold,
            mode=self._mode,
            refusals=self._refusals,
            metadata=adapters.metadata,
            took=self._took,
        )
        self._operators = OperatorOrders(
            self._hold, self._source, mode, self._commit_all_of, config.keepalive, now
        )
        self._reporter = Reporter(
            context, self._counters, self._operators, self._stopped, self._refusals, self._meter
        )
        self._report()
        self._incarnation = Incarnation(mode, context, self._counters, now)

    # ------------------------------------------------------------------ the loop

    def run(self) -> None:
        """
        Mirror until `context.stop` is set, then release everything.

        Raises:
            RestartTask, FatalError: Exit the process; nothing was released.
        """
        while not self._context.stop.is_set():
            self._turn()
        self._finish()

    @property
    def _writer(self) -> Writer:
        return self._incarnation.writer

    def _turn(self) -> None:
        if self._incarnation.is_over and not self._renew():
            return
        if not self._writer.is_open:
            self._between_transactions()
        self._follow_orders()
        polled = self._polled()
        if self._rebalanced:
            self._rebalanced = False
            self._reread(list(self._hold.owned.values()))
        else:
            self._take(polled)
        self._more_pending = polled.more_pending
        if self._incarnation.is_over:
            return
        if self._is_due(queue_empty=not polled.runs and not polled.more_pending):
            self._commit()
        if self._acquisition.is_due:
            self._acquire()
        if self._now() >= self._tend_at:
            self._tend()

    def _patience(self) -> timedelta:
        if self._writer.is_open:
            return SHORT_WAIT if self._more_pending else NO_WAIT
        # an assignment arrives inside the poll, which still waits its full time
        return IDLE_WAIT if self._hold.owned and not self._acquisition.is_busy else SHORT_WAIT

    def _is_due(self, *, queue_empty: bool) -> bool:
        return self._writer.is_open and self._pace.due(
            self._writer.opened_at,
            self._now(),
            size_bytes=self._writer.size_bytes,
            records=self._writer.records,
            queue_empty=queue_empty,
        )

    def _follow_orders(self) -> None:
        orders, before = self._context.orders(), self._orders
        if orders is before:
            return
        self._orders = orders
        if orders.retries != before.retries:
            again = orders.retries.items() - before.retries.items()
            self._stopped.hurry({topic for topic, _ in again})
        if orders.throttles != before.throttles:
            self._operators.throttle(orders.throttles)
            self._report()
        if orders.topics != before.topics or orders.rejoin != before.rejoin:
            self._source.subscribe(sorted(orders.topics))

    def _take(self, polled: Polled) -> None:
        try:
            faults = self._intake.take(polled, self._writer)
        except RefusedByTarget as exc:
            self._meet(exc)
            self._hold.hold_back(self._hold.owned.values())
        except TransactionLost as exc:
            self._incarnation.lose(exc)
        else:
            self._stop(faults)

    def _polled(self) -> Polled:
        """Poll the source. A lane also writes then, so the transaction may be lost here."""
        polled = Polled()
        try:
            polled = self._source.poll(wait=self._patience())
        except TransactionLost as exc:
            self._incarnation.lose(exc)
        if self._failure is not None:
            raise self._failure
        return polled

    def _took(self, remote: TopicPartition, run: RecordRun) -> None:
        self._meter.took(remote, run)
        self._counters.bytes += run.size_bytes

    # ------------------------------------------------------------------ transactions

    def _commit(self, also: Iterable[OwnedPartition] = (), *, spill: bool = False) -> None:
        """Commit the open transaction, the idle ends and `also`. Do nothing if there are none."""
        also_commit = [*self._hold.at_end.values(), *also]
        if self._incarnation.is_over or not (also_commit or self._writer.is_open):
            return
        check_identities(self._config.flow, self._hold.owned.values(), self._sources)
        size_bytes, records, began = self._writer.size_bytes, self._writer.records, self._now()
        try:
            self._writer.commit(also_commit, spill=spill)
        except NewIncarnation as exc:
            self._incarnation.doubt(exc)
        except RefusedByTarget as exc:
            if self._meet(exc):
                return
        except TransactionVoid as exc:
            self._void(exc)
            return
        except TransactionLost as exc:
            self._incarnation.lose(exc)
            return
        self._meter.committed()
        self._committed_at = self._now()
        took_s = self._committed_at - began
        self._pace.committed(took_s, size_bytes=size_bytes, records=records)
        self._counters.committed(records, took_s)
        self._hold.at_end.clear()
        self._refusals.passed(self._hold.owned)
        self._stopped.committed(self._hold.owned)

    def _meet(self, exc: RefusedByTarget) -> bool:
        """
        Search for the records that the target refused, in smaller batches.

        Returns:
            True if the transaction cannot be committed any more.
        """
        met = self._refusals.met(self._hold.owned.values(), exc)
        self._report()  # a successor continues the search where it stopped
        self._hold.hold_back(met)
        return self._incarnation.refused()

    def _void(self, exc: TransactionVoid) -> None:
        """Stop the partitions because of which the transaction can never be committed."""
        self._incarnation.void(exc)
        for source, fault in exc.faults.items():
            self._stopped.note(source, fault, next_offset=self._hold.owned[source].committed)
        self._report()  # so a successor does not try again immediately

    def _between_transactions(self) -> None:
        """Resume where the last transaction had no room, or something was refused."""
        if self._hold.held_back:
            held = self._hold.taken_back()
            self._refusals.between_transactions(held)
            self._reread(held)
        if self._operators.have_changed(self._orders):
            self._operators.follow(self._orders)
            self._report()

    def _commit_all_of(self, owned: Sequence[OwnedPartition]) -> bool:
        self._commit(owned, spill=True)
        return not self._incarnation.is_over

    def _renew(self) -> bool:
        """Take a new incarnation; return False if the target does not answer now."""
        self._source.unassign(list(self._hold.owned))
        if not self._incarnation.replace():
            self._report()  # this task is alive, and a member of the group
            self._polled()
            return False
        held = self._incarnation.divided(self._hold.give_up(now=self._now()))
        self._mode.release([one.remote for one in (*held.foreign, *held.unwritten)])
        self._acquisition.reclaim(held.kept)
        self._acquisition.grant([one.source for one in held.unwritten])
        return True

    # ------------------------------------------------------------------ partitions

    def _acquire(self) -> None:
        self._commit()
        if self._incarnation.is_over:
            return
        progress = self._acquisition.step(self._orders.topics)
        for partition, fault in progress.stopped.items():
            self._stopped.note(partition, fault, next_offset=None)
        if progress.stopped:
            self._report()
        if progress.resolved:
            self._own(progress.resolved)

    def _own(self, resolved: Sequence[Resolved]) -> None:
        """Commit first positions before their first record is sent, then start to read."""
        new = [one.owned for one in resolved]
        self._hold.owned.update({owned.source: owned for owned in new})
        self._refusals.learn(new)
        starts = {one.owned.remote: one.start for one in resolved if one.start is not None}
        if starts:
            self._incarnation.start(starts)
        self._commit([owned for owned in new if owned.needs_commit])
        put_off_s = max(0.0, self._config.keepalive.total_seconds() - intervals.KEEP_ALIVE_SOON_S)
        for owned in new:
            owned.committed_at = self._now() - put_off_s
            self._stopped.adopted(owned.source)
        self._source.assign({one.source: one.position for one in self._operators.own(new)})
        self._report()
        self._context.event("partitions.acquired", {"partitions": len(new)})

    def _reread(self, owned: Sequence[OwnedPartition]) -> None:
        """Read again from the positions, and drop what the last poll returned."""
        reading = self._hold.pauses.to_read(owned)
        if not reading:
            return
        self._source.unassign([one.source for one in reading])
        self._source.assign({one.source: one.position for one in reading})

    def _stop(self, faults: Mapping[TopicPartition, PartitionStopped]) -> None:
        """Stop mirroring these partitions; the others continue."""
        if not faults:
            return
        self._commit()
        if self._incarnation.is_over:
            return  # the new incarnation meets the same faults again
        self._source.unassign(list(faults))
        gone = {partition: self._hold.owned.pop(partition) for partition in faults}
        self._mode.release([owned.remote for owned in gone.values()])
        for partition, fault in faults.items():
            at = gone[partition].position.next_offset
            self._stopped.note(partition, fault, next_offset=at)
        self._report()  # so a successor does not try again immediately

    def _try_stopped(self) -> None:
        """Try stopped partitions again: the cause of a stop may be gone."""
        due = self._stopped.due(held=self._operators.stopped_topics)
        for partition in due:
            self._refusals.try_again(partition)
        if due:
            self._acquisition.grant(due, again=True)

    # ------------------------------------------------------------------ rebalances

    def on_granted(self, partitions: Sequence[TopicPartition]) -> None:
        """See `ports.RebalanceListener`."""
        self._acquisition.grant(partitions)
        self._rebalanced = True

    def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        """See `ports.RebalanceListener`: commit and release before the group takes them back."""
        self._rebalanced = True
        try:
            self._let_go(partitions)
        except Exception as exc:  # noqa: BLE001 (raised after the poll; nothing was released)
            self._failure = exc

    def _let_go(self, partitions: Sequence[TopicPartition]) -> None:
        gone = [self._hold.owned[p] for p in partitions if p in self._hold.owned]
        self._commit([owned for owned in gone if owned.tail.runs], spill=bool(gone))
        self._incarnation.replace_spoilt()
        for owned in gone:
            del self._hold.owned[owned.source]
        self._mode.release([owned.remote for owned in gone])
        self._acquisition.withdraw(partitions)
        self._operators.forget(partitions)
        self._stopped.forget(partitions)

    def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
        """See `ports.RebalanceListener`: another task may own them already."""
        names = ", ".join(map(str, partitions[:5]))
        self._failure = RestartTask(f"the source group gave {names} away: session ended")

    # ------------------------------------------------------------------ housekeeping

    def _tend(self) -> None:
        now = self._now()
        self._tend_at = now + intervals.TEND_EVERY_S
        if not self._writer.is_open and not self._incarnation.is_over:
            keepalive_s = self._config.keepalive.total_seconds()
            stale = [o for o in self._hold.owned.values() if now - o.committed_at > keepalive_s]
            if stale or (
                self._hold.at_end and now - self._committed_at > intervals.ADVANCE_AFTER_S
            ):
                self._commit(stale)
            if now >= self._limits_at:
                self._limits_at = now + intervals.LIMITS_EVERY_S
                self._refusals.refresh(self._hold.owned.values())
        self._operators.keep_alive()
        self._try_stopped()
        if now >= self._check_topics_at:
            self._check_topics_at = now + intervals.CHECK_TOPICS_EVERY_S
            held = self._hold.owned.values()
            faults, waits = check_topics(self._config.flow, held, metadata=self._metadata)
            self._hold.leaderless = waits
            self._stop(faults)
            if now - self._committed_at > intervals.CHECK_TOPICS_EVERY_S:
                self._target.check_login()  # an idle task sends nothing that would be refused
        if self._mode.advises and now >= self._advise_at and self._hold.owned:
            self._advise_at = now + intervals.ADVISE_EVERY_S
            self._source.commit({o.source: o.position for o in self._hold.owned.values()})
        self._report()

    def _report(self) -> None:
        self._reporter.report(self._orders.topics)

    def _finish(self) -> None:
        if not self._incarnation.is_suspicious:
            self._commit([o for o in self._hold.owned.values() if o.tail.runs], spill=True)
        self._incarnation.replace_spoilt()
        self._mode.release([owned.remote for owned in self._hold.owned.values()])
        self._acquisition.withdraw_all()
        if self._mode.advises and self._hold.owned:
            self._source.commit({o.source: o.position for o in self._hold.owned.values()})
        self._hold.owned.clear()
        self._report()
        self._source.close()
