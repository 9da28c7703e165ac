"""The driver's side of a flow's checkpoint task, which is a child process of the driver."""

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from eos_mirror.core.messages import CheckpointOrders, CheckpointReport, GroupSelection
from eos_mirror.core.spread import Window
from eos_mirror.driver.partition_metrics import metric_rows
from eos_mirror.runtime.control import ControlServer, EventSink
from eos_mirror.runtime.herd import Herd
from eos_mirror.runtime.launcher import Launcher
from eos_mirror.runtime.leases import Leases
from eos_mirror.runtime.spec import TaskSpec
from eos_mirror.runtime.supervisor import DEFAULT_PATIENCE, Patience
from eos_mirror.settings.clients import checkpoint_config
from eos_mirror.settings.filters import GROUP_FILTER
from eos_mirror.settings.model import FlowSettings
from eos_mirror.settings.plugins import plugin_config
from eos_mirror.tasks.messages import decode, encode

CHECKPOINT_ENTRY = "eos_mirror.tasks.checkpoint:emit_checkpoints"
HERE = "127.0.0.1"
ENDED = frozenset({"task.restarting", "task.failed"})
TOLD = frozenset(
    {
        "checkpoints.emitted",
        "checkpoints.failed",
        "group-commits.unreadable",
        "groups.untranslated",
        "group.skipped",
        "group.waiting",
        "checkpoints.unreadable",
    }
)


class CheckpointTasks:
    """Starts and restarts the task, sends it orders, and forwards its events."""

    def __init__(
        self,
        settings: FlowSettings,
        routes: Callable[[], Mapping[str, str]],
        *,
        on_event: EventSink,
    ) -> None:
        """
        Args:
            routes: Returns the current remote topic of each source topic.
            on_event: Receives log events.
        """
        self._settings = settings
        self._routes = routes
        self._on_event = on_event
        self._server: ControlServer | None = None
        self._herd: Herd | None = None
        self._lock = threading.Lock()
        self._groups = self._checkpoints = self._moved = 0
        self._latency = Window(time.monotonic())
        self._round_at: float | None = None

    @property
    def is_wanted(self) -> bool:
        """True if checkpoints are configured and the mode can translate offsets."""
        groups = self._settings.groups
        return groups.emit_checkpoints and (self._settings.exactly_once or groups.emit_syncs)

    def start(self, launcher: Launcher, *, patience: Patience = DEFAULT_PATIENCE) -> None:
        """Start the task. Returns immediately."""
        self._server = ControlServer(
            Leases(),
            on_event=self._hear,
            on_report=self._take_report,
            bind=HERE,
            advertise=HERE,
        )
        self.give_orders()
        self._server.start()
        self._herd = Herd(
            1,
            launcher,
            server=self._server,
            make_spec=self._spec,
            on_event=self._hear,
            patience=patience,
        )
        self._herd.start()

    def take(self, settings: FlowSettings) -> None:
        """Apply new settings: emit checkpoints for the groups that they select."""
        self._settings = settings
        self.give_orders()

    def give_orders(self) -> None:
        """Send the task the mirrored topics and the selected groups."""
        if self._server is not None:
            orders = CheckpointOrders(topics=dict(self._routes()), groups=self._selection())
            self._server.set_orders(encode(orders))

    def _selection(self) -> GroupSelection:
        groups, filter_class = self._settings.groups, self._settings.filters.group_class
        return GroupSelection(
            include=tuple(pattern.pattern for pattern in groups.include),
            exclude=tuple(pattern.pattern for pattern in groups.exclude),
            filter_class=None if filter_class == GROUP_FILTER else filter_class,
            filter_config=plugin_config(self._settings),
        )

    def stop(self) -> None:
        """Stop the task over the control channel, and wait."""
        if self._herd is not None:
            self._herd.stop_all()
        if self._server is not None:
            self._server.stop()

    def counts(self) -> dict[str, float]:
        """Return values for metrics; empty before the first round."""
        with self._lock:
            if self._round_at is None:
                return {}
            now = time.monotonic()
            latency = dict(metric_rows("checkpoint-latency-ms", self._latency, now))
            return {
                "groups": self._groups,
                "checkpoints": self._checkpoints,
                "moved": self._moved,
                **latency,
                "groups.age": now - self._round_at,
            }

    def _take_report(self, _slot: int, _submission: str, message: Mapping[str, Any]) -> None:
        report = decode(CheckpointReport, message)
        if report.groups is None:
            return
        with self._lock:
            self._round_at = time.monotonic()
            self._groups = report.groups
            self._checkpoints += report.checkpoints
            self._moved += report.moved
            if report.latency is not None:
                self._latency.add(self._round_at, spread=report.latency)

    def _hear(self, name: str, fields: Mapping[str, Any]) -> None:
        fields = {key: value for key, value in fields.items() if key != "task"}
        if name in ENDED:
            failure = {key: fields.get(key, "") for key in ("cause", "reason")}
            self._on_event("checkpoints.failed", failure)
        elif name in TOLD:
            self._on_event(name, fields)

    def _spec(self, slot: int, submission: str) -> TaskSpec:
        if self._server is None:
            raise RuntimeError("a task was submitted before its control server was started")
        return TaskSpec(
            slot=slot,
            submission=submission,
            control_host=self._server.host,
            control_port=self._server.port,
            key=self._server.key,
            entry=CHECKPOINT_ENTRY,
            config=encode(checkpoint_config(self._settings)),
        )
