"""Two fake clusters and real mirror tasks between them, stepped one request at a time."""

import itertools
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from unittest import mock

from eos_mirror.core import offset_map
from eos_mirror.core.boundary import Boundary
from eos_mirror.core.flow import Flow
from eos_mirror.core.handlers import HandlerSpec
from eos_mirror.core.ledger import Kind
from eos_mirror.core.messages import MirrorConfig, Orders, TaskReport
from eos_mirror.core.records import TopicPartition
from eos_mirror.core.topic_limits import SenderLimits
from eos_mirror.ports import GroupOffset
from eos_mirror.replication import ownership
from eos_mirror.replication.adapters import Adapters
from eos_mirror.replication.at_least_once import AtLeastOnce
from eos_mirror.replication.config import Fencing
from eos_mirror.replication.exactly_once import ExactlyOnce
from eos_mirror.replication.mode import Mode
from eos_mirror.replication.suspension import Suspension
from eos_mirror.replication.task import MirrorTask
from tests.engine.baton import Actor
from tests.engine.fake_lane import FakeLane
from tests.engine.fake_plain import FakePlainProducer, FakeSourceGroup
from tests.engine.fake_source import FakeSource, FakeSourceMetadata
from tests.engine.fake_target import FakeClaims, FakeTarget
from tests.engine.gate import Clock, Gate
from tests.engine.outbox import BATCH_RECORDS
from tests.engine.requests import Requests
from tests.engine.source_cluster import SourceCluster, SourceLog
from tests.engine.source_group import GroupCoordinator
from tests.engine.target_cluster import TargetCluster
from tests.engine.target_log import Record

FLOW = Flow("A", "B")
TOPICS = {"orders": 2, "audit": 1}
CLAIMS_TOPIC_ID = "claims".ljust(22, "0")
KEEPALIVE = timedelta(seconds=60)
SPILL_AFTER_COMMITS = 3
"""Instead of 64, so that short runs have segments, too."""

SENDER = SenderLimits(batch_records=BATCH_RECORDS)
"""Limits of the fake producer."""

BOUNDARY = Boundary(
    interval_s=0.1, timeout_s=60.0, max_bytes=10_000, max_records=8, every_poll=False
)
"""Few records, so that short runs have many transactions."""


def remote_of(source: TopicPartition) -> TopicPartition:
    """Return the target partition of a source partition."""
    return TopicPartition(f"{FLOW.source}.{source.topic}", source.partition)


@dataclass(slots=True, eq=False)
class FakeContext:
    """`ports.TaskContext` of one task. `watch` has no effect here: tests kill tasks themselves."""

    slot: int
    newest_orders: Orders = field(default_factory=Orders)
    stop: threading.Event = field(default_factory=threading.Event)
    reports: list[TaskReport] = field(default_factory=list)
    events: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)

    def orders(self) -> Orders:
        """See the port."""
        return self.newest_orders

    def report(self, report: TaskReport) -> None:
        """See the port."""
        self.reports.append(report)

    def event(self, name: str, fields: Mapping[str, Any]) -> None:
        """See the port."""
        self.events.append((name, fields))

    def watch(self, what: str, budget: timedelta) -> AbstractContextManager[None]:  # noqa: ARG002
        """See the port."""
        return nullcontext()


@dataclass(slots=True, eq=False)
class Process:
    """One task from start to exit. A slot has one current process, and maybe older ones."""

    slot: int
    context: FakeContext
    actor: Actor
    target: FakeTarget

    @property
    def is_over(self) -> bool:
        """Whether it returned, failed or was killed."""
        return self.actor.is_over

    def events(self, name: str) -> list[Mapping[str, Any]]:
        """Return the fields of its events with this name."""
        return [fields for found, fields in self.context.events if found == name]


class Stage:
    """
    Two fake clusters, and the tasks between them.

    Args:
        fencing: How ownership is made exclusive.
        start_position: Where partitions begin that were never mirrored.
        boundary: What ends a transaction.
        exactly_once: False: at least once, which uses `abort_on_send_failure`.
        abort_on_send_failure: As in the configuration.
        quarantine: Topic for refused records.
        handler: Message handler.
        engine: Makes the task; tests of broken engines pass their own.
    """

    def __init__(
        self,
        *,
        fencing: Fencing = Fencing.CLAIMS,
        start_position: str = "earliest",
        boundary: Boundary = BOUNDARY,
        exactly_once: bool = True,
        abort_on_send_failure: bool = True,
        quarantine: str | None = None,
        handler: HandlerSpec | None = None,
        engine: Callable[..., MirrorTask] = MirrorTask,
    ) -> None:
        self.clock = Clock()
        self.source = SourceCluster()
        self.target = TargetCluster(FLOW)
        for topic, partitions in TOPICS.items():
            self.source.create_topic(topic, partitions)
            self.target.create_topic(f"{FLOW.source}.{topic}", partitions)
        self.partitions = sorted(self.source.logs)
        self.group = GroupCoordinator(self.partitions)
        self.orders = Orders(topics={topic: f"{FLOW.source}.{topic}" for topic in TOPICS})
        self.processes: list[Process] = []
        self._engine = engine
        self._values = itertools.count()
        self._incarnations = itertools.count(1)
        self._fencing = fencing
        self._config = MirrorConfig(
            flow=FLOW,
            boundary=boundary,
            start_position=start_position,
            claims_topic_id=CLAIMS_TOPIC_ID,
            keepalive=KEEPALIVE,
            sender=SENDER,
            exactly_once=exactly_once,
            abort_on_send_failure=abort_on_send_failure,
            quarantine=quarantine,
            handler=handler,
        )
        self.handler = None if handler is None else handler.make()
        self.quarantine = quarantine
        if quarantine is not None:
            self.target.create_topic(quarantine, 1)
        self.source_offsets: dict[TopicPartition, GroupOffset] = {}
        self.ledger: list[Mapping[str, Any]] = []
        self._patches = ExitStack()
        ids = SimpleNamespace(uuid4=self._uuid4)
        self._patches.enter_context(mock.patch.object(ownership, "uuid", ids))
        self._patches.enter_context(
            mock.patch.object(offset_map, "MAX_COMMITS", SPILL_AFTER_COMMITS)
        )

    def _uuid4(self) -> SimpleNamespace:
        """Return the same ids in every run of the same schedule."""
        return SimpleNamespace(hex=f"{next(self._incarnations):032x}")

    def close(self) -> None:
        """End every thread."""
        for process in self.processes:
            process.actor.kill()
        self._patches.close()

    # ------------------------------------------------------------------ tasks

    def start(self, slot: int) -> Process:
        """Start a new process for a slot; the old one, if it is alive, becomes a zombie."""
        context = FakeContext(slot=slot, newest_orders=self.orders)
        made: list[FakeTarget] = []
        actor = Actor(lambda gate: self._run(context, gate, made))
        actor.step()
        process = Process(slot=slot, context=context, actor=actor, target=made[0])
        self.processes.append(process)
        return process

    def _run(self, context: FakeContext, gate: Gate, made: list[FakeTarget]) -> None:
        stable = self._fencing is not Fencing.NAIVE
        target = FakeTarget(self.target, gate, self.clock, require_stable=stable)
        made.append(target)
        metadata = FakeSourceMetadata(self.source, gate, self.clock)

        lane = FakeLane(
            target,
            offsets=FakeSourceGroup(self.source_offsets),
            open_source=lambda listener: FakeSource(
                self.source, self.group, listener, slot=context.slot, gate=gate, clock=self.clock
            ),
            open_plain_producer=lambda: FakePlainProducer(self.target, Requests(gate, self.clock)),
        )
        adapters = Adapters(
            lane=lane,
            metadata=metadata,
            target=target,
            ledger=SimpleNamespace(append_all=self._note),
            now=self.clock,
            wall_ms=lambda: 0,
            suspension=Suspension(self.clock),
            identities=metadata,
        )
        mode = self._mode(adapters, context, FakeClaims(self.target, gate, self.clock))
        self._engine(self._config, adapters, context, mode=mode).run()

    def _mode(self, adapters: Adapters, context: FakeContext, claims: FakeClaims) -> Mode:
        if self._config.exactly_once:
            return ExactlyOnce(
                self._config, adapters, context, claims=claims, fencing=self._fencing
            )
        return AtLeastOnce(self._config, adapters, context, offset_syncs=None)

    def _note(self, _: Kind, some: Sequence[Mapping[str, Any]]) -> None:
        self.ledger += some

    def current(self, slot: int) -> Process | None:
        """Return the newest process of a slot, if it is alive."""
        for process in reversed(self.processes):
            if process.slot == slot:
                return None if process.is_over else process
        return None

    def newest(self, slot: int) -> Process | None:
        """Return the process of a slot that has the lease, or had it last."""
        return next((one for one in reversed(self.processes) if one.slot == slot), None)

    def alive(self) -> list[Process]:
        """Return every living process, zombies too."""
        return [process for process in self.processes if not process.is_over]

    def order(self, orders: Orders) -> None:
        """Send these orders to every task, as the driver does."""
        self.orders = orders
        for process in self.processes:
            process.context.newest_orders = orders

    # ------------------------------------------------------------------ source

    def produce(
        self,
        partition: TopicPartition,
        *,
        transaction: int | None = None,
        timestamp_ms: int | None = None,
    ) -> None:
        """Produce one record that differs from every other."""
        n = next(self._values)
        record = Record(
            key=None if n % 3 == 0 else b"key-%d" % n,
            value=b"value-%d" % n,
            headers=(("n", b"%d" % n), ("none", None)) if n % 4 == 0 else None,
            timestamp_ms=1_700_000_000_000 + n if timestamp_ms is None else timestamp_ms,
        )
        self.source.logs[partition].append(record, transaction=transaction)

    def log(self, partition: TopicPartition) -> SourceLog:
        """Return the log of a source partition."""
        return self.source.logs[partition]
