"""
One flow in the driver: checks, prepares, runs its tasks, syncs its topics.

Nothing is written to a cluster before `check` has passed.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from eos_mirror.core.desired import NOT_RUNNING, Order, Wanted
from eos_mirror.core.messages import Orders, TaskReport
from eos_mirror.core.plan import FlowPlan
from eos_mirror.core.records import TopicPartition
from eos_mirror.core.retries import Retries
from eos_mirror.driver.acl_sync import AclSync
from eos_mirror.driver.check import check_flow
from eos_mirror.driver.checkpoint_tasks import CheckpointTasks
from eos_mirror.driver.desired_state import DesiredStateFollower
from eos_mirror.driver.flow_clusters import open_clusters
from eos_mirror.driver.flow_positions import FlowPositions
from eos_mirror.driver.later_topics import flow_topics_refused
from eos_mirror.driver.leader_election import LeaderElection
from eos_mirror.driver.ledger import LedgerKeeper
from eos_mirror.driver.partition_metrics import FlowPartitionMetrics
from eos_mirror.driver.paths import Paths
from eos_mirror.driver.quarantine import quarantine_faults
from eos_mirror.driver.source_connector import SourceConnector
from eos_mirror.driver.start_ends import StartEnds
from eos_mirror.driver.stop_causes import StopCauses
from eos_mirror.driver.task_reports import TaskReports, TaskStatus
from eos_mirror.driver.throttles import Throttles
from eos_mirror.driver.topic_sync import TopicSync
from eos_mirror.driver.unowned import Unowned
from eos_mirror.errors import ConfigError, UnsafeError
from eos_mirror.kafka.open_transactions import OpenTransaction
from eos_mirror.runtime.control import ControlServer, EventSink
from eos_mirror.runtime.herd import Herd
from eos_mirror.runtime.launcher import Launcher
from eos_mirror.runtime.leases import Leases
from eos_mirror.runtime.spec import TaskSpec
from eos_mirror.runtime.supervisor import Patience
from eos_mirror.settings import clients
from eos_mirror.settings.clients import mode_of, task_config
from eos_mirror.settings.model import FlowSettings
from eos_mirror.settings.values import WhenDeleted
from eos_mirror.tasks.messages import decode, encode

MIRROR_ENTRY = "eos_mirror.tasks.mirror:mirror"
DOUBTFUL = "doubtful topics"


class FlowRunner:
    """
    Runs one flow in the driver.

    Attributes:
        ended_for: Why the whole flow was ended; empty if it was not.
        outages: Why clusters do not answer now, by alias; also clusters of other flows.
        causes: Which errors stopped partitions.
        paths: How records were written.
        is_measured: True if `metrics` are filled.
        hidden: With `--once` or `--until`, transactions of the source that were open at the start
            and at the end, by source partition.
    """

    def __init__(
        self,
        settings: FlowSettings,
        *,
        on_event: EventSink,
        measured: bool = False,
        entry: str = MIRROR_ENTRY,
    ) -> None:
        """
        Args:
            on_event: Receives log events; the flow is added to each.
            measured: True to fill `metrics`.
            entry: Entry point of a task process; only tests and the demo pass another one.
        """
        self.settings = settings
        self.flow = settings.flow
        self._on_event = on_event
        self._entry = entry
        self._clusters = open_clusters(settings)
        self._positions = FlowPositions(settings, self._clusters)
        target = self._clusters.target_topics
        self.source_connector = SourceConnector(settings, self._clusters)
        self._ledger = LedgerKeeper(settings, target, on_event=self._tell)
        self.topics = TopicSync(settings, self._clusters, on_event=self._tell)
        self.acls = AclSync(settings, lambda: self.topics.routes, on_event=self._tell)
        self.checkpoints = CheckpointTasks(
            settings, lambda: self.topics.routes, on_event=self._tell
        )
        self.is_measured = measured
        self.metrics = FlowPartitionMetrics(
            settings, self._clusters.source_metadata, lambda: self.topics.partitions
        )
        self.desired = DesiredStateFollower(settings, self._clusters, on_event=self._tell)
        self.throttles = Throttles(self.desired)
        self._orders, self._orders_lock = Orders(), threading.Lock()
        self._is_ordered = False
        self._reports, self._again = TaskReports(), Retries()
        self.ended_for = ""
        self.outages: Mapping[str, str] = {}
        self.causes, self.paths = StopCauses(), Paths()
        self.hidden: Mapping[TopicPartition, OpenTransaction] = {}
        self._claims_topic_id = ""
        self._is_mode_noted = False
        self._unowned, self.tasks_count = Unowned(), 0
        self._server: ControlServer | None = None
        self._herd: Herd | None = None

    # ------------------------------------------------------------------ before the start

    def was_prepared(self) -> bool:
        """Return True if a run has prepared the flow before."""
        return bool(self._clusters.target_topics.existing([self.flow.claims_topic]))

    def join_drivers(self, *, may_wait: bool) -> LeaderElection:
        """Join the group that elects the run that mirrors; see `LeaderElection`."""
        topics = self._clusters.target_topics
        return LeaderElection(self.settings, topics, may_wait=may_wait, on_event=self._on_event)

    def check(self, *, on_standby: bool = False, creates_nothing: bool = False) -> FlowPlan:
        """
        Check whether the flow may start, as `driver/check.py` says.

        Args:
            on_standby: Tasks of another configuration may run: this run waits for their end.
            creates_nothing: See `check_flow`.
        """
        if not on_standby:
            self.source_connector.refuse_running_mm2()
        facts = check_flow(
            self.settings,
            self._clusters,
            topics=self.topics,
            on_event=self._tell,
            on_standby=on_standby,
            creates_nothing=creates_nothing,
        )
        self.tasks_count = max(1, min(self.settings.tasks_max, facts.planned_partitions))
        self._is_mode_noted = facts.noted_mode is not None
        return facts.plan

    def warn_of_topics(self) -> None:
        """Log which internal topics could not be created once they are needed."""
        for text in flow_topics_refused(self.settings, self._clusters.target_topics):
            self._tell("flow.warning", {"reason": text})

    def prepare(self) -> None:
        """
        Create the missing topics on the target, and wait until every broker knows them.

        Raises:
            ConfigError: A right on the quarantine is missing.
            UnsafeError: The flow was just started in another mode.
        """
        self.topics.begin()
        if faults := list(quarantine_faults(self.settings, self._clusters)):  # it is new
            raise ConfigError(*faults)
        if not self._is_mode_noted:
            counts = self._clusters.mode.note(mode_of(self.settings))
            if counts is not mode_of(self.settings):
                raise UnsafeError(f"{self.flow}: another run just started it {counts.value}.")
        if self.settings.drops_records:
            self._ledger.create()
        self.source_connector.begin()
        ids = self._clusters.target.topic_ids([self.flow.claims_topic])
        self._claims_topic_id = ids[self.flow.claims_topic]

    # ------------------------------------------------------------------ tasks

    def start(self, launcher: Launcher, *, patience: Patience, bind: str, advertise: str) -> None:
        """Start the tasks, which do what operators want from the start. Returns immediately."""
        self.desired.read_first()
        if self._entry != MIRROR_ENTRY:
            reason = f"its tasks run {self._entry}, which is for tests: unset EOS_MIRROR_TASK_ENTRY"
            self._tell("flow.warning", {"reason": reason})
        self._server = ControlServer(
            Leases(),
            on_event=self._tell,
            on_report=self._take_report,
            bind=bind,
            advertise=advertise,
        )
        self.give_orders()
        self._ledger.start()
        self._server.start()
        self._herd = Herd(
            self.tasks_count,
            launcher,
            server=self._server,
            make_spec=self._spec,
            on_event=self._tell,
            patience=patience,
        )
        self._herd.start()

    def stop(self) -> None:
        """Stop the tasks over the control channel, and wait."""
        self.stop_tasks()
        if self._server is not None:
            self._server.stop()
        self._ledger.stop()

    def note_stop(self) -> None:
        """Note that the tasks of a source connector have ended."""
        self.source_connector.note_stop(self.statuses().values())

    def stop_tasks(self) -> None:
        """Stop the tasks; each finishes its current work. A second call is harmless."""
        self.checkpoints.stop()
        if self._herd is not None:
            self._herd.stop_all()

    def take(self, settings: FlowSettings) -> None:
        """Apply the filters of these settings, from the next sync on. Nothing else is applied."""
        self.settings = settings
        self.topics.take(settings)
        self.checkpoints.take(settings)

    def follow_topics(self) -> None:
        """Create and grow remote topics, then send the tasks the new subscription."""
        if self.ended_for:
            return
        self.topics.follow()
        self.give_orders()
        if self.topics.deleted and self.settings.when_deleted is WhenDeleted.STOP:
            names = ", ".join(sorted(self.topics.deleted))
            self._end(
                f"{names} was deleted on {self.flow.source}, and source.topic.deleted = stop; "
                f"the next start continues without it"
            )

    def follow_doubtful(self) -> None:
        """Follow the topics soon while some are refused, or may be deleted; then less often."""
        doubtful = self._doubtful
        if not doubtful:
            self._again.reset()
        if not doubtful or self._again.waiting([DOUBTFUL], now_s=time.monotonic()):
            return
        self.follow_topics()
        if self._doubtful != doubtful:
            self._again.reset()  # others follow soon
        self._again.refused(DOUBTFUL, "", now_s=time.monotonic())

    @property
    def _doubtful(self) -> set[object]:
        return {*self.topics.refused.items(), *self.causes.of_lost_source(self.stopped)}

    @property
    def orders(self) -> Orders:
        """What every task has to do now."""
        return self._orders

    def ordered(self) -> Mapping[TopicPartition, Order]:
        """Return planned partitions that operators have paused or stopped, with their orders."""
        found = self.desired.not_running({*self._orders.paused, *self._orders.stopped_topics})
        if not found:
            return {}
        return {p: found[p.topic] for p in list(self.topics.partitions) if p.topic in found}

    def _end(self, reason: str) -> None:
        if not self.ended_for:
            self.ended_for = reason
            self._tell("flow.ended", {"reason": reason})
            self.stop_tasks()

    def tend_assignment(self) -> None:
        """Ask the tasks to rejoin the source group when partitions stay without an owner."""
        if self.settings.is_source_connector or self.ended_for or self.flow.source in self.outages:
            return
        planned = len(self.topics.partitions)
        released = sum(one.wanted is Wanted.STOPPED for one in self.ordered().values())
        expected = planned - released - len(self.stopped)
        if self._unowned.is_persistent(list(self.statuses().values()), expected=expected):
            self.give_orders(lambda orders: replace(orders, rejoin=orders.rejoin + 1))
            self._tell("flow.rejoining", {"owned": self._unowned.held, "planned": planned})

    def statuses(self) -> dict[int, TaskStatus]:
        """Return the status of every task by slot."""
        slots = {} if self._herd is None else self._herd.statuses()
        return {number: self._reports.status(slot) for number, slot in slots.items()}

    def reports(self) -> list[TaskReport]:
        """Return the newest report of each task that has reported."""
        return [task.report for task in self.statuses().values() if task.report is not None]

    @property
    def has_failed(self) -> bool:
        """True if the flow was ended, or a task failed for good: its partitions have no owner."""
        return bool(self.ended_for) or any(task.has_failed for task in self.statuses().values())

    @property
    def owned_count(self) -> int:
        """Number of partitions that the tasks mirror."""
        return sum(report.owned for report in self.reports())

    @property
    def stopped(self) -> Mapping[TopicPartition, str]:
        """Partitions that have failed, with the reason; none of a topic that is left out now."""
        return self._orders.stopped

    @property
    def waiting(self) -> Mapping[TopicPartition, str]:
        """Partitions that cannot be acquired now, with the reason."""
        reports = self.reports()
        return {p: reason for report in reports for p, reason in report.waiting.items()}

    def source_ends(self, until: datetime | None = None) -> StartEnds:
        """Return the ends of every planned source partition; see `StartEnds`."""
        config, planned = clients.source_admin(self.settings), list(self.topics.partitions)
        return StartEnds(self._clusters.source_metadata, config, planned, until=until)

    def reached(self, ends: Mapping[TopicPartition, int]) -> bool:
        """Return True if every partition is at its end; stopped and waiting ones are skipped."""
        left_out = self.stopped.keys() | self.waiting.keys()
        pairs = {p: remote for p, remote in self.topics.partitions.items() if p not in left_out}
        return self._positions.have_reached(ends, pairs)

    def _spec(self, slot: int, submission: str) -> TaskSpec:
        if self._server is None:
            raise RuntimeError("a task was submitted before the flow was started")
        config = task_config(
            self.settings,
            slot=slot,
            claims_topic_id=self._claims_topic_id,
            measured=self.is_measured,
        )
        return TaskSpec(
            slot=slot,
            submission=submission,
            control_host=self._server.host,
            control_port=self._server.port,
            key=self._server.key,
            entry=self._entry,
            config=encode(config),
        )

    # ------------------------------------------------------------------ reports and orders

    def _take_report(self, slot: int, submission: str, message: Mapping[str, Any]) -> None:
        report = decode(TaskReport, message)
        self._reports.put(slot, submission, report)
        self.metrics.add(report.measured, task=slot)
        if report.stopped or report.resumed or report.suspects:
            self.give_orders(lambda orders: orders.after(report))

    def _tell(self, name: str, fields: Mapping[str, Any]) -> None:
        if name == "partition.stopped":
            fields = self.causes.completed(fields)
        self._on_event(name, {"flow": str(self.flow), **fields})
        self._ledger.hear(name, fields)

    def give_orders(self, change: Callable[[Orders], Orders] = lambda orders: orders) -> None:
        """Change the orders, and send them with the current topics if anything changed."""
        self.checkpoints.give_orders()
        with self._orders_lock:
            before = self._orders
            topics = dict(self.topics.routes)
            paused, stopped = (self.desired.topics(one, topics) for one in NOT_RUNNING)
            changed = change(before)
            failed = {p: why for p, why in changed.stopped.items() if p.topic in topics}
            limits = self.throttles.divided(topics, tasks=self.tasks_count)
            changed = replace(changed, topics=topics, stopped=failed, throttles=limits)
            slots = self.source_connector.assigned(
                before.assigned, self.topics.partitions, slots=self.tasks_count
            )
            changed = replace(changed, assigned=slots)
            self._orders = replace(changed, paused=paused, stopped_topics=stopped)
            if self._server is not None and (self._orders != before or not self._is_ordered):
                self._server.set_orders(encode(self._orders))
                self._is_ordered = True
