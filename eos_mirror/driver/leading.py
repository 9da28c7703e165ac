"""Makes a run the leader of its flows, and notices when another run leads."""

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Protocol

from eos_mirror.core.flow import Flow
from eos_mirror.driver.first_contact import named
from eos_mirror.driver.flow import FlowRunner
from eos_mirror.driver.leader_election import LeaderElection
from eos_mirror.driver.paths import shares
from eos_mirror.driver.preflight import GRANT
from eos_mirror.driver.readiness import Readiness
from eos_mirror.driver.run_metrics import RunMetrics
from eos_mirror.errors import ConfigError, NotAuthorized
from eos_mirror.runtime.control import EventSink
from eos_mirror.settings.model import FlowSettings, Settings

TakeOver = Callable[[FlowSettings], None]
"""Takes over the positions of a flow that ran as a source connector; its run leads the flow."""


class Judge(Protocol):
    """Checks whether every flow may start."""

    def __call__(self, *, on_standby: bool = False) -> object:
        """Raise ConfigError or UnsafeError if one may not."""


class Leading:
    """
    The elections of a run.

    Attributes:
        elections: One for each flow that was led, or waited for.
    """

    def __init__(
        self,
        settings: Settings,
        flows: Sequence[FlowRunner],
        *,
        metrics: RunMetrics,
        readiness: Readiness,
        take_over: TakeOver,
        on_event: EventSink,
    ) -> None:
        """
        Args:
            take_over: Called for a flow with `mode.change = adopt`, after it is led.
            on_event: Receives log events.
        """
        self._settings = settings
        self._flows = flows
        self._metrics = metrics
        self._readiness = readiness
        self._take_over = take_over
        self._on_event = on_event
        self.elections: list[LeaderElection] = []

    def look(self) -> None:
        """Look again whether this run still leads."""
        for election in self.elections:
            election.look()

    def publish(self, written: Mapping[Flow, Mapping[str, int]]) -> None:
        """Let `status` read how many records each flow has written, by path."""
        for election in self.elections:
            if paths := written.get(election.flow):
                election.publish(**shares(paths))

    @property
    def is_superseded(self) -> bool:
        """True if another run leads a flow that this run led."""
        return any(election.is_over for election in self.elections)

    def lead(self, cleanup: ExitStack, *, judge: Judge, stop: threading.Event) -> None:
        """
        Wait until this run leads every flow, and check whether it may start.

        The flows are taken in the order of their names, so that two runs never wait for each other.
        A flow that never ran is checked and prepared first: its group assigns the partition of a
        topic that does not exist yet.
        """
        is_checked = not self._were_prepared()
        if is_checked:
            judge()
            if stop.is_set():
                return
            self._metrics.export(cleanup)  # a wrong address is found before anything is written
            for runner in self._flows:
                runner.prepare()
        has_waited, led = False, []
        for runner in sorted(self._flows, key=lambda runner: str(runner.flow)):
            try:
                has_waited |= self._lead_flow(runner, cleanup, judge=judge, stop=stop)
                led.append(runner)
            except NotAuthorized as exc:
                if runner.source_connector.needs_election:
                    raise ConfigError(_needed(runner.flow)) from exc
                fields = {"flow": str(runner.flow), "reason": _unnoticed(runner.flow)}
                self._on_event("flow.warning", fields)
        if stop.is_set():
            return
        if has_waited or not is_checked:
            judge()
        if self._take_over_from([runner for runner in led if runner.source_connector.takes_over()]):
            judge()

    def _take_over_from(self, flows: Sequence[FlowRunner]) -> bool:
        for runner in flows:
            self._take_over(runner.settings)
        return bool(flows)

    def _were_prepared(self) -> bool:
        """Return True if an earlier run has prepared every flow."""
        for runner in self._flows:
            with named(self._settings, runner.flow):
                if not runner.was_prepared():
                    return False
        return True

    def _lead_flow(
        self, runner: FlowRunner, cleanup: ExitStack, *, judge: Judge, stop: threading.Event
    ) -> bool:
        """Wait until this run leads a flow. Return True if it stood by."""
        election = runner.join_drivers(may_wait=self._settings.standby)
        cleanup.callback(election.end)
        has_waited = election.wait(stop, on_standby=lambda: self._stand_by(cleanup, judge))
        self.elections.append(election)
        return has_waited

    def _stand_by(self, cleanup: ExitStack, judge: Judge) -> None:
        """Find now what would refuse the start later, and report metrics while waiting."""
        judge(on_standby=True)
        self._metrics.export_on_standby(cleanup)
        self._readiness.is_on_standby = True


def _needed(flow: Flow) -> str:
    return (
        f"{flow}: not authorized: READ on group {flow.drivers_group} ({flow.target}). A source "
        f"connector needs it: nothing else keeps the tasks of two runs apart. {GRANT}"
    )


def _unnoticed(flow: Flow) -> str:
    return (
        f"not authorized: READ on group {flow.drivers_group} ({flow.target}). Without it, a second "
        f"run of the flow is not noticed: both would mirror, and restart each other's tasks. "
        f"{GRANT}"
    )
