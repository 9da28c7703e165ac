"""The group task of a flow, from the driver's side: a child process that is started anew."""

import threading
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from eos_mirror.core.spread import Spread, Window
from eos_mirror.driver.partition_metrics import metric_rows
from eos_mirror.replication.partition_metrics import CHECKPOINT_LATENCY
from eos_mirror.runtime.control import ControlServer, EventSink
from eos_mirror.runtime.herd import Herd
from eos_mirror.runtime.launcher import Launcher
from eos_mirror.runtime.leases import Leases
from eos_mirror.runtime.spec import TaskSpec
from eos_mirror.settings import clients
from eos_mirror.settings.clients import claims_producer
from eos_mirror.settings.filters import GROUP_FILTER
from eos_mirror.settings.model import FlowSettings
from eos_mirror.settings.plugins import plugin_config, policy_of

ENTRY = "eos_mirror.tasks.checkpoint:follow_groups"
HERE = "127.0.0.1"
FOR_THE_DRIVER = frozenset({"task", CHECKPOINT_LATENCY})
ENDED = frozenset({"task.restarting", "task.failed"})
TOLD = frozenset(
    {
        "groups.followed",
        "groups.failed",
        "groups.unheard",
        "groups.untranslated",
        "group.skipped",
        "group.waiting",
        "checkpoints.unreadable",
    }
)


class GroupFollower:
    """Starts the task, tells it which topics are mirrored, and passes on what it tells."""

    def __init__(
        self,
        settings: FlowSettings,
        routes: Callable[[], Mapping[str, str]],
        *,
        on_event: EventSink,
    ) -> None:
        """
        Args:
            routes: Remote topic by source topic, as of now.
            on_event: Takes log events.
        """
        self._settings = settings
        self._topic = policy_of(settings).internal_topics.checkpoints(settings.flow.source)
        self._routes = routes
        self._on_event = on_event
        self._server: ControlServer | None = None
        self._herd: Herd | None = None
        self._lock = threading.Lock()
        self._counts: dict[str, int] = {}
        self._latency = Window(time.monotonic())
        self._followed_at = 0.0

    @property
    def is_wanted(self) -> bool:
        """Whether the file asks for it, and the mode has what it takes."""
        groups = self._settings.groups
        return groups.emit_checkpoints and (self._settings.exactly_once or groups.emit_syncs)

    def start(self, launcher: Launcher) -> None:
        """Start the task. Returns at once."""
        self._server = ControlServer(Leases(), on_event=self._hear, bind=HERE, advertise=HERE)
        self.give_orders()
        self._server.start()
        self._herd = Herd(
            1, launcher, server=self._server, make_spec=self._spec, on_event=self._hear
        )
        self._herd.start()

    def take(self, settings: FlowSettings) -> None:
        """Follow from now on the groups that these let through."""
        self._settings = settings
        self.give_orders()

    def give_orders(self) -> None:
        """Tell the task which topics are mirrored, and which groups are wanted."""
        if self._server is not None:
            self._server.set_orders({"topics": dict(self._routes()), "groups": self._wanted()})

    def _wanted(self) -> dict[str, Any]:
        groups, filter_class = self._settings.groups, self._settings.filters.group_class
        return {
            "include": [pattern.pattern for pattern in groups.include],
            "exclude": [pattern.pattern for pattern in groups.exclude],
            "filter": None if filter_class == GROUP_FILTER else filter_class,
            "filter_config": plugin_config(self._settings),
        }

    def stop(self) -> None:
        """Stop the task in-band and wait."""
        if self._herd is not None:
            self._herd.stop_all()
        if self._server is not None:
            self._server.stop()

    def counts(self) -> dict[str, float]:
        """For metrics; nothing before the first round."""
        with self._lock:
            if not self._counts:
                return {}
            now = time.monotonic()
            latency = dict(metric_rows("checkpoint-latency-ms", self._latency.spread(now)))
            return {**self._counts, **latency, "groups.age": now - self._followed_at}

    def _count(self, fields: Mapping[str, Any]) -> None:
        with self._lock:
            self._followed_at = time.monotonic()
            for name in ("checkpoints", "moved"):
                self._counts[name] = self._counts.get(name, 0) + fields[name]
            self._counts["groups"] = fields["groups"]
            if fields[CHECKPOINT_LATENCY]:
                latency = Spread.decode(fields[CHECKPOINT_LATENCY])
                self._latency.add(self._followed_at, spread=latency)

    def _hear(self, name: str, fields: Mapping[str, Any]) -> None:
        if name == "groups.followed":
            self._count(fields)
        fields = {key: value for key, value in fields.items() if key not in FOR_THE_DRIVER}
        if name in ENDED:
            self._on_event("groups.failed", {"reason": fields.get("reason", "")})
        elif name in TOLD:
            self._on_event(name, fields)

    def _spec(self, slot: int, submission: str) -> TaskSpec:
        if self._server is None:
            raise RuntimeError("a task was submitted before the follower was started")
        return TaskSpec(
            slot=slot,
            submission=submission,
            control_host=self._server.host,
            control_port=self._server.port,
            key=self._server.key,
            entry=ENTRY,
            config=self._config(),
        )

    def _config(self) -> dict[str, Any]:
        flow, groups = self._settings.flow, self._settings.groups
        return {
            "flow": [flow.source, flow.target],
            "exactly_once": self._settings.exactly_once,
            "topic": self._topic,
            "syncs_topic": policy_of(self._settings).internal_topics.offset_syncs(flow.source),
            "replication_factor": groups.replication_factor,
            "refresh_s": _seconds(groups.refresh_interval) if groups.refresh else None,
            "emit_s": _seconds(groups.emit_interval),
            "sync_s": _seconds(groups.sync_interval) if groups.sync_offsets else None,
            "on_commit": groups.sync_offsets and groups.sync_on_commit,
            "clients": {
                "source_admin": dict(clients.source_admin(self._settings)),
                "target_admin": dict(clients.target_admin(self._settings)),
                "claims_producer": claims_producer(self._settings),
            },
        }


def _seconds(interval: timedelta) -> float:
    return interval.total_seconds()
