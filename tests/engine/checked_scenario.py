"""What can happen to two clusters and the tasks between them, and what must hold afterwards."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from eos_mirror.core.handlers import HandlerSpec
from eos_mirror.core.records import TopicPartition
from eos_mirror.errors import RestartTask
from eos_mirror.replication.config import Fencing
from eos_mirror.replication.task import MirrorTask
from tests.engine.coordinator import DECIDED, Status
from tests.engine.gate import Fate
from tests.engine.oracle import Oracle, Violation
from tests.engine.stage import TOPICS, Process, Stage, remote_of

EXCUSES: Final = {
    "SourceDataLost": {"retention", "re-created"},
    "PositionLost": {"offset expired"},
    "MarkersLost": {"markers held back"},
    "RecordRefused": {"record refused", "record that cannot be carried"},
}
"""What must have happened to a partition before it may stop for a cause."""

EXCUSES["PartitionStopped"] = set().union(*EXCUSES.values())  # an earlier process reported it

DRAIN_ROUNDS: Final = 300
DRAIN_STEPS: Final = 12
DRAIN_TURN_S: Final = 0.05


class CheckedScenario:
    """
    A stage, an oracle that checks every step, and a note of what was done to each partition.

    Raises, from every method:
        Violation: The guarantee does not hold, or a process exited without a valid reason.
    """

    def __init__(
        self,
        *,
        slots: int = 2,
        fencing: Fencing = Fencing.CLAIMS,
        engine: Callable[..., MirrorTask] = MirrorTask,
        start_position: str = "earliest",
        quarantine: str | None = None,
        handler: HandlerSpec | None = None,
        own_lane: bool = False,
    ) -> None:
        self.stage = Stage(
            own_lane=own_lane,
            fencing=fencing,
            engine=engine,
            start_position=start_position,
            quarantine=quarantine,
            handler=handler,
        )
        self.oracle = Oracle(self.stage)
        self.slots = range(slots)
        self.endings: list[str] = []
        self._done_to: defaultdict[TopicPartition, set[str]] = defaultdict(set)
        self._reaped: set[int] = set()
        self._heard: defaultdict[int, int] = defaultdict(int)
        self._source_transactions = 0

    def close(self) -> None:
        """End every thread."""
        self.stage.close()

    # ------------------------------------------------------------------ tasks

    def start(self, slot: int) -> Process:
        """Start a new process, whether or not the old one is alive."""
        return self.stage.start(slot)

    def step(self, process: Process, count: int = 1, fate: Fate = Fate.GO) -> None:
        """Let it send this many requests; the fate is that of the first."""
        for _ in range(count):
            if process.is_over:
                break
            if fate is Fate.REFUSED and process.actor.at == "produce":
                for partition in self.stage.partitions:
                    self._done_to[partition].add("record refused")
            process.actor.step(fate)
            fate = Fate.GO
            self.hear(process)
            self.oracle.check()
        self.reap(process)

    def run_to(self, process: Process, point: str, *, limit: int = 80) -> bool:
        """Run it to just before a request; return False if it never sends one."""
        for _ in range(limit):
            if process.is_over or process.actor.at == point:
                break
            self.step(process)
        return not process.is_over and process.actor.at == point

    def crash(self, process: Process) -> None:
        """Kill the process, as kill -9 does."""
        process.actor.kill()

    def reap(self, process: Process) -> None:
        """Check how a process exited: only a return, a kill or a RestartTask is allowed."""
        error = process.actor.error
        if not process.is_over or error is None or id(process) in self._reaped:
            return
        self._reaped.add(id(process))
        self.endings.append(f"{type(error).__name__}: {error}")
        if not isinstance(error, RestartTask):
            raise Violation(f"slot {process.slot} exited with {error!r}") from error

    def hear(self, process: Process) -> None:
        """Send every task the orders that the driver would derive from the reports of this one."""
        heard = self._heard[id(process)]
        reports = process.context.reports[heard:]
        self._heard[id(process)] += len(reports)
        if process is not self.stage.newest(process.slot):
            return  # it has no lease any more
        orders = self.stage.orders
        for report in reports:
            orders = orders.after(report)
        if orders != self.stage.orders:
            self.stage.order(orders)

    # ------------------------------------------------------------------ source

    def open_source_transactions(self) -> list[tuple[TopicPartition, int]]:
        """Return the partition and number of each open transaction."""
        return [(p, n) for p in self.stage.partitions for n in self.stage.log(p).open]

    def produce_in_transaction(self, partition: TopicPartition) -> None:
        """Produce a record in a transaction that stays open."""
        self._source_transactions += 1
        self.stage.produce(partition, transaction=self._source_transactions)

    def produce_aborted(self, partition: TopicPartition) -> None:
        """Produce a transaction of one record and abort it."""
        self.produce_in_transaction(partition)
        self.stage.log(partition).finish(self._source_transactions, commit=False)

    def produce_uncarriable(self, partition: TopicPartition) -> None:
        """Produce a record that the client library would change."""
        self.stage.produce(partition, timestamp_ms=0)
        self._done_to[partition].add("record that cannot be carried")

    def retain(self, partition: TopicPartition, count: int) -> None:
        """Delete the oldest offsets, as retention does."""
        log = self.stage.log(partition)
        log.start = min(log.start + count, log.stable)
        self._done_to[partition].add("retention")

    def recreate(self, topic: str) -> None:
        """Delete a topic and create it again, with as many partitions."""
        for partition in self.stage.partitions:
            if partition.topic == topic:
                self.oracle.forget(partition)
                self._done_to[partition].add("re-created")
        self.stage.source.delete_topic(topic)
        self.stage.source.create_topic(topic, TOPICS[topic])

    # ------------------------------------------------------------------ target

    def hold_markers(self) -> None:
        """Hold commit markers back: from now on each needs a `write_marker`."""
        self.stage.target.coordinator.auto_markers = False
        for partition in self.stage.partitions:
            self._done_to[partition].add("markers held back")

    def release_markers(self) -> None:
        """Write all pending markers; from now on they are written immediately."""
        self.stage.target.coordinator.auto_markers = True
        self.stage.target.write_markers()
        self.oracle.check()

    def write_marker(self, choice: int) -> None:
        """Write one of the pending markers."""
        owed = self.stage.target.coordinator.owed()
        if owed:
            self.stage.target.coordinator.write_marker(*owed[choice % len(owed)])
            self.oracle.check()

    def deliver_late(self, choice: int) -> None:
        """Deliver a copy of a request, long after its sender has continued."""
        network = self.stage.target.network
        if network:
            network.pop(choice % len(network)).arrive()
            self.oracle.check()

    def time_out(self, choice: int) -> None:
        """Let the coordinator abort an open transaction."""
        coordinator = self.stage.target.coordinator
        ids = coordinator.with_status(Status.ONGOING)
        if ids:
            coordinator.time_out(ids[choice % len(ids)])

    def expire_id(self, choice: int) -> None:
        """Let the coordinator forget an idle transactional id."""
        coordinator = self.stage.target.coordinator
        ids = coordinator.with_status(*(s for s in Status if s not in (Status.ONGOING, *DECIDED)))
        if ids:
            coordinator.expire(ids[choice % len(ids)])

    def expire_offset(self, partition: TopicPartition) -> None:
        """Let the target forget a shadow offset."""
        self.stage.target.group.forget(remote_of(partition))
        self._done_to[partition].add("offset expired")
        self.oracle.check()

    # ------------------------------------------------------------------ the end

    def drain(self) -> None:
        """Repair everything; then every partition must catch up, or have a reason to be stopped."""
        stage = self.stage
        stage.order(replace(stage.orders, paused=(), stopped_topics=(), throttles=()))
        while stage.target.network:
            self.deliver_late(0)
        self.release_markers()
        for partition, number in self.open_source_transactions():
            stage.log(partition).finish(number, commit=True)
        for _ in range(DRAIN_ROUNDS):
            if self._is_quiet():
                return self._check_end()
            for slot in self.slots:
                if stage.current(slot) is None:
                    self.start(slot)
            for process in stage.alive():
                self.step(process, DRAIN_STEPS)
            stage.clock.advance(DRAIN_TURN_S)
        raise Violation(f"not drained: {self._unfinished()}; endings: {self.endings[-5:]}")

    def _stopped(self) -> dict[TopicPartition, tuple[str, str]]:
        """Return cause and reason of each partition that a living process reported as stopped."""
        found = {}
        names = {str(partition): partition for partition in self.stage.partitions}
        for process in self.stage.alive():
            for fields in process.events("partition.stopped"):
                partition = names[str(fields["partition"])]
                if partition in process.context.reports[-1].stopped:
                    found[partition] = str(fields["cause"]), str(fields["reason"])
        return found

    def _unfinished(self) -> list[TopicPartition]:
        stopped = self._stopped()
        return [p for p in self.stage.partitions if p not in stopped and not self.oracle.reached(p)]

    def _is_quiet(self) -> bool:
        stage = self.stage
        zombies = [p for p in stage.alive() if stage.current(p.slot) is not p]
        moving = stage.group.moving or any(slot is None for slot in stage.group.owners.values())
        return not zombies and not moving and bool(stage.alive()) and not self._unfinished()

    def _check_end(self) -> None:
        for partition, (cause, reason) in self._stopped().items():
            if not EXCUSES.get(cause, set()) & self._done_to[partition]:
                raise Violation(f"{partition} stopped without a reason: {cause}: {reason}")
        for remote in map(remote_of, self.stage.partitions):
            log = self.stage.target.logs[remote]
            if self.stage.target.decided_records(remote) != log.visible() and not self._writing():
                raise Violation(f"{remote}: committed records are not visible")

    def _writing(self) -> bool:
        return bool(self.stage.target.coordinator.with_status(Status.ONGOING))
