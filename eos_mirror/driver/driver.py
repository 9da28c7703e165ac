"""
The driver: runs every flow of a configuration, from check to stop.

settings -> check (nothing written) -> prepare (topics) -> tasks -> chores, until a signal. With
`once`: until everything that existed at the start, or before a time, has been mirrored.
"""

import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime

from eos_mirror.core.plan import FlowPlan, cross_flow_conflicts
from eos_mirror.core.records import TopicPartition
from eos_mirror.driver.chores import Chores
from eos_mirror.driver.first_contact import named, reach_clusters
from eos_mirror.driver.flow import MIRROR_ENTRY, FlowRunner
from eos_mirror.driver.later_topics import heartbeats_refused
from eos_mirror.driver.leading import Leading, TakeOver
from eos_mirror.driver.logins import RefusedLogins
from eos_mirror.driver.readiness import Readiness
from eos_mirror.driver.run_metrics import RunMetrics, are_exported
from eos_mirror.driver.signs_of_faults import SignsOfFaults
from eos_mirror.driver.start_ends import StartEnds
from eos_mirror.driver.summary import Summary
from eos_mirror.errors import ConfigError
from eos_mirror.runtime.control import EventSink
from eos_mirror.runtime.launcher import Launcher
from eos_mirror.runtime.local import LocalLauncher
from eos_mirror.runtime.spark import APP, SparkRuntime, check_spark
from eos_mirror.runtime.spark_master import check_master
from eos_mirror.runtime.spark_settings import spark_settings
from eos_mirror.runtime.supervisor import Patience
from eos_mirror.settings.model import FlowSettings, Settings
from eos_mirror.settings.values import Runtime

POLL_S = 0.05
LOOK_S = 0.25
CAUGHT_UP_POLL_S = 0.25
EVERYWHERE = "0.0.0.0"  # noqa: S104 (executors on other hosts connect; every line is signed)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where tasks run: the launcher for a flow name, and the address of the control server."""

    launcher: Callable[[str], Launcher]
    bind: str = "127.0.0.1"
    advertise: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """
    The result of a run.

    Attributes:
        totals: Counters by flow.
        stopped: Stopped partitions, with the reason, by flow.
        refused: Source topics that are not mirrored, with the reason, by flow.
        failed: Tasks, and whole flows, that failed for good, with the reason.
        ready_s: Seconds from the start to `ready`; None if the run was never ready.
        superseded: True if another run of the configuration mirrors now.
    """

    totals: Mapping[str, Mapping[str, int]]
    stopped: Mapping[str, Mapping[str, str]]
    refused: Mapping[str, Mapping[str, str]]
    failed: Sequence[str]
    ready_s: float | None
    superseded: bool = False

    @property
    def is_good(self) -> bool:
        """True if nothing failed, stopped or was refused."""
        return not (self.failed or any(self.stopped.values()) or any(self.refused.values()))


def _nothing_to_take_over(settings: FlowSettings) -> None:
    """Leave the flow as it is; the check then refuses it."""


class Driver:
    """
    Runs the flows of one configuration. One thread calls `run`; any may set `stop`.

    Attributes:
        readiness: Whether everything is mirrored.
        metrics: What is exported.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        on_event: EventSink,
        stop: threading.Event,
        entry: str = MIRROR_ENTRY,
        take_over: TakeOver = _nothing_to_take_over,
    ) -> None:
        """
        Args:
            on_event: Receives log events.
            stop: Set it to stop gracefully.
            entry: Entry point of a task process. Only tests and the demo pass another one; each
                flow then logs a warning at every start.
            take_over: See `Leading`.
        """
        self._entry = entry
        self._settings = settings
        self._on_event = on_event
        self._stop = stop
        measured = settings.metrics.partitions and are_exported(settings.metrics)
        self.flows = [
            FlowRunner(flow, on_event=SignsOfFaults(on_event), measured=measured, entry=entry)
            for flow in settings.flows
        ]
        for runner in self.flows:
            runner.topics.others = [other.topics for other in self.flows if other is not runner]
        self._summary = Summary(self.flows, on_event=on_event)
        self.readiness = Readiness(self.flows, on_event=on_event)
        self._chores: Chores | None = None
        self._logins = RefusedLogins()
        self.metrics = RunMetrics(settings.metrics, self.flows, self._summary, on_event=on_event)
        self._leading = Leading(
            settings,
            self.flows,
            metrics=self.metrics,
            readiness=self.readiness,
            take_over=take_over,
            on_event=on_event,
        )

    def check(self) -> list[FlowPlan]:
        """
        Check every flow; write nothing.

        Raises:
            ConfigError: The configuration or a right must be fixed.
            UnsafeError: The state of the clusters would break the guarantee.
        """
        self.metrics.check()
        reach_clusters(self._settings, self._settings.flows)
        plans = self._judge(creates_nothing=True)
        self._check_free_slots()
        for runner in self.flows:
            runner.warn_of_topics()
        for pair in self._settings.heartbeats:
            for text in heartbeats_refused(pair):
                self._on_event("flow.warning", {"flow": str(pair.flow), "reason": text})
        return plans

    def _check_free_slots(self) -> None:
        """Ask the master for free slots. A start waits for them: its predecessor may hold them."""
        if self._settings.runtime is not Runtime.SPARK:
            return
        warning = check_master(
            spark_settings(self._settings.spark, tasks_count=self._tasks_count),
            tasks_count=self._tasks_count,
            app=APP,
            within=self._settings.connect_timeout,
        )
        for runner in self.flows if warning else ():
            self._on_event("flow.warning", {"flow": str(runner.flow), "reason": warning})

    def _judge(self, *, on_standby: bool = False, creates_nothing: bool = False) -> list[FlowPlan]:
        plans = []
        for runner in self.flows:
            with named(self._settings, runner.flow):
                plans.append(runner.check(on_standby=on_standby, creates_nothing=creates_nothing))
        conflicts = cross_flow_conflicts(plans)
        if conflicts:
            raise ConfigError(*conflicts)
        if self._settings.runtime is Runtime.SPARK:
            check_spark(self._settings.spark, tasks_count=self._tasks_count)
        return plans

    def run(self, *, once: bool, until: datetime | None = None) -> Report:
        """
        Check, prepare, and mirror until the end of the run.

        Args:
            once: Stop when every partition has reached the end that it had at the start.
            until: With `once`: or its first record with this time or a later one, if it has one.

        Raises:
            ConfigError, UnsafeError: A check failed; nothing was mirrored.
        """
        for text in self._settings.notes:
            self._on_event("config.note", {"text": text})
        reach_clusters(self._settings, self._settings.flows)
        with ExitStack() as cleanup:
            self._leading.lead(cleanup, judge=self._judge, stop=self._stop)
            self.metrics.export(cleanup)
            if not self._stop.is_set():
                self._mirror(cleanup, once=once, until=until)
            failed = self._failures()
        self._summary.tell()
        self._on_event("stopped", {"flows": [str(runner.flow) for runner in self.flows]})
        return Report(
            totals=self._summary.totals(),
            stopped={
                str(runner.flow): {str(p): reason for p, reason in runner.stopped.items()}
                for runner in self.flows
            },
            refused={str(runner.flow): runner.topics.refused for runner in self.flows},
            failed=failed,
            ready_s=self.readiness.ready_s,
            superseded=self._is_superseded,
        )

    def _mirror(self, cleanup: ExitStack, *, once: bool, until: datetime | None) -> None:
        local = LocalLauncher()
        cleanup.callback(local.close)
        if self._settings.runtime is Runtime.LOCAL:
            local.warm_up(self._tasks_count, self._entry)
        place = self._open_place(local, cleanup)
        for runner in self.flows:
            runner.prepare()
        ends = {runner: runner.source_ends(until) for runner in self.flows} if once else {}
        self._start_tasks(place, cleanup)
        self._chores = Chores(
            self._settings, self.flows, on_event=self._on_event, logins=self._logins
        )
        self._chores.start(
            cleanup, once=once, summary=self._tell_summary, elections=self._leading.elections
        )
        self._wait_until(self.readiness.look, POLL_S)
        if not once and not self._ended:
            self._follow_groups(local)
        for runner, wanted in ends.items():
            self._catch_up(runner, wanted)
        while not (once or self._ended):
            self.readiness.look()
            self._stop.wait(LOOK_S)

    # ------------------------------------------------------------------ tasks

    @property
    def _tasks_count(self) -> int:
        return sum(runner.tasks_count for runner in self.flows)

    def _open_place(self, local: LocalLauncher, cleanup: ExitStack) -> "_Place":
        if self._settings.runtime is Runtime.LOCAL:
            return _Place(launcher=lambda _: local)
        spark = SparkRuntime.start(self._settings.spark, app=APP, tasks_count=self._tasks_count)
        cleanup.callback(spark.stop)
        if self._settings.spark.get("spark.master", "local").startswith("local"):
            return _Place(launcher=spark.launcher)
        host = self._settings.spark.get("spark.driver.host", socket.getfqdn())
        return _Place(launcher=spark.launcher, bind=EVERYWHERE, advertise=host)

    def _start_tasks(self, place: "_Place", cleanup: ExitStack) -> None:
        for runner in self.flows:
            cleanup.callback(self._stop_flow, runner)
            runner.start(
                place.launcher(str(runner.flow)),
                patience=self._patience(runner),
                bind=place.bind,
                advertise=place.advertise,
            )

    def _stop_flow(self, runner: FlowRunner) -> None:
        runner.stop()
        self._leading.look()
        if not self._is_superseded:  # the next run may have started its tasks already
            runner.note_stop()

    def _patience(self, runner: FlowRunner) -> Patience:
        return Patience(
            shutdown=self._settings.shutdown_timeout,
            may_restart=lambda: self._logins.may_log_in(runner.flow),
        )

    def _failures(self) -> list[str]:
        ended = [f"{runner.flow}: {runner.ended_for}" for runner in self.flows if runner.ended_for]
        ended += [
            f"{runner.flow}: {why}" for runner in self.flows for why in runner.waiting.values()
        ]
        ended += [
            f"{runner.flow} {partition} of {runner.flow.source}: {transaction}. Find its producer "
            f"with kafka-transactions.sh describe-producers"
            for runner in self.flows
            for partition, transaction in runner.hidden.items()
        ]
        return ended + [
            f"{runner.flow} task {slot}: {task.slot.reason}"
            for runner in self.flows
            for slot, task in runner.statuses().items()
            if task.has_failed
        ]

    @property
    def _ended(self) -> bool:
        """True after a signal, if another run leads, or if every flow has failed."""
        if self._stop.is_set() or self._is_superseded:
            return True
        return all(runner.has_failed for runner in self.flows)

    @property
    def _is_superseded(self) -> bool:
        return self._leading.is_superseded

    def _wait_until(self, condition: Callable[[], bool], every_s: float) -> None:
        while not self._ended and not condition():
            self._stop.wait(every_s)

    def _catch_up(self, runner: FlowRunner, ends: StartEnds) -> None:
        def has_reached(offsets: Mapping[TopicPartition, int]) -> bool:
            self._wait_until(
                lambda: runner.has_failed or runner.reached(offsets), every_s=CAUGHT_UP_POLL_S
            )
            return not (runner.has_failed or self._ended)

        if not has_reached(ends.stable):
            return
        runner.hidden = ends.open_transactions()
        if not has_reached(ends.ended(runner.hidden)):
            return
        left_out = {
            "stopped": len(runner.stopped),
            "waiting": len(runner.waiting),
            "refused": len(runner.topics.refused),
            "open_transactions": {str(p): str(one) for p, one in runner.hidden.items()},
        }
        if any(left_out.values()):
            self._on_event("flow.incomplete", {"flow": str(runner.flow), **left_out})
        else:
            self._on_event("flow.caught_up", {"flow": str(runner.flow)})

    def reload(self) -> None:
        """Read the configuration now, and apply what may change during a run. For any thread."""
        if self._chores is not None:
            self._chores.reload()

    def _follow_groups(self, launcher: Launcher) -> None:
        """Start the checkpoint tasks; not during start-up, to keep load off the clusters."""
        for runner in self.flows:
            if runner.checkpoints.is_wanted:
                runner.checkpoints.start(launcher, patience=self._patience(runner))

    def _tell_summary(self) -> None:
        if self.readiness.is_settled:
            self._summary.tell()
            self._leading.publish(
                {runner.flow: runner.paths.of_flow(runner.statuses()) for runner in self.flows}
            )
