"""
Measures a flow on the user's clusters, with a scratch topic and the flow's configuration.

Every trial is a separate flow with its own positions and internal topics, so a running mirror is
not affected. Only its tasks compete for the machine.
"""

import math
import re
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from eos_mirror.core.flow import Flow
from eos_mirror.core.records import TopicPartition
from eos_mirror.driver.driver import Driver, Report
from eos_mirror.driver.flow_clusters import open_clusters
from eos_mirror.driver.topic_sync import TopicSync
from eos_mirror.errors import ConfigError, MirrorError
from eos_mirror.kafka.bench_topics import ScratchTopic, ages_ms, remove
from eos_mirror.kafka.topics import TopicSpec
from eos_mirror.settings import clients
from eos_mirror.settings.filters import NO_TRANSFORMS
from eos_mirror.settings.model import FlowSettings, Settings
from eos_mirror.settings.plugins import policy_of
from eos_mirror.settings.refusals import Tolerance

WARM_UP = 0.2
"""Share of the records that is not measured: processes start, caches and compilers warm up."""

LEAST_WINDOW_S = 0.5
LOOK_EVERY_S = 0.05
RATE_LOOK_S = 10.0
SETTLE_S, LAG_S = 5.0, 15.0
MARGIN_S = 5.0
HEADROOM = 1.5
"""Required throughput relative to the rate: a task must be able to catch up after an outage."""

Tell = Callable[[str], None]
Progress = Callable[[str, int], None]
"""Takes what the bench is doing, and how many of its records are done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """
    The load of a bench.

    Attributes:
        records: Number of records in the scratch topic.
        value_bytes: Size of each record's value.
        rate: Records per second to size for.
    """

    records: int
    value_bytes: int
    partitions: int
    rate: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """Records per second that `tasks` tasks copy together, in the steady state."""

    tasks: int
    rate: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """
    The result of a bench.

    Attributes:
        trials: By number of tasks, ascending.
        wanted_tasks: Tasks that the rate needs, with headroom; None if no trial was fast enough
            and more tasks did not help.
        lag_ms: Median and 99th percentile of the age of records when a reader of the copy gets
            them, at that rate.
        left: Topics and groups that could not be removed from the clusters.
    """

    trials: Sequence[Trial]
    wanted_tasks: int | None
    lag_ms: tuple[float, float] | None
    left: Sequence[str]


class Bench:
    """Measures one flow of a configuration."""

    def __init__(
        self,
        settings: Settings,
        flow: FlowSettings,
        load: Load,
        *,
        tell: Tell,
        on_progress: Progress,
    ) -> None:
        """
        Args:
            tell: Takes progress messages, one line each.
            on_progress: Called several times a second, on any thread.
        """
        self._settings = settings
        self._flow = flow
        self._load = load
        self._tell = tell
        self._on_progress = on_progress
        self._name = uuid.uuid4().hex[:8]
        self.topic = f"eos-mirror-bench-{self._name}.replica"  # the default topics.exclude has it
        self._trials: list[FlowSettings] = []

    def run(self, tasks: Sequence[int]) -> Findings:
        """
        Create the topic, mirror it with each number of tasks, put it under load, and clean up.

        Raises:
            MirrorError: A step failed; what was created is removed.
        """
        load, source = self._load, clients.source_admin(self._flow)
        scratch = ScratchTopic(
            source, self.topic, partitions=load.partitions, size=load.value_bytes
        )
        topics = open_clusters(self._flow).source_topics
        spec = TopicSpec(
            name=self.topic,
            partitions=load.partitions,
            replication_factor=self._flow.replication_factor,
            config={},
        )
        left: list[str] = []
        try:
            topics.ensure(spec)
            self._tell(f"filling {self.topic} with {load.records:,} x {load.value_bytes:,} bytes")
            scratch.fill(load.records, on_progress=partial(self._on_progress, "filling"))
            trials = [self._copy(count) for count in sorted(tasks)]
            wanted = tasks_for(load.rate, trials)
            lag_ms = None if wanted is None else self._lag(scratch, wanted)
        finally:
            left = self._clean_up()
        return Findings(trials=trials, wanted_tasks=wanted, lag_ms=lag_ms, left=left)

    def _copy(self, tasks: int) -> Trial:
        flow = self._new_flow(tasks)
        ended = threading.Event()
        looks: list[tuple[float, int]] = []
        watcher = threading.Thread(target=self._watch, args=(flow, ended, looks), daemon=True)
        watcher.start()
        try:
            self._mirror(flow, threading.Event(), once=True)
        finally:
            ended.set()
            watcher.join()
        self._on_progress(f"tasks: {tasks}", self._load.records)
        rate = steady_rate(looks, self._load.records)
        if rate is None:
            raise ConfigError(
                f"{self._load.records} records are too few to measure a rate: raise --records"
            )
        self._tell(f"tasks: {tasks}: {rate:,.0f} records/s")
        return Trial(tasks=tasks, rate=rate)

    def _watch(
        self, flow: FlowSettings, ended: threading.Event, looks: list[tuple[float, int]]
    ) -> None:
        """Record how much is committed, again and again, until the run has ended."""
        clusters, remote = open_clusters(flow), _remote_of(flow, self.topic)
        offsets, topic = (
            (clusters.shadow_offsets, remote)
            if flow.exactly_once
            else (clusters.source_offsets, self.topic)
        )
        partitions = [TopicPartition(topic, p) for p in range(self._load.partitions)]
        while not ended.wait(LOOK_EVERY_S):
            try:
                found = offsets.read(partitions)
            except MirrorError:
                continue
            done = sum(one.position.next_offset for one in found.values())
            looks.append((time.monotonic(), done))
            self._on_progress(f"tasks: {flow.tasks_max}", done)

    def _lag(self, scratch: ScratchTopic, tasks: int) -> tuple[float, float] | None:
        """Return median and 99th percentile of the lag; None if no record arrived."""
        self._tell(f"tasks: {tasks}: {self._load.rate:,} records/s for {LAG_S:.0f} s")
        flow, stop = self._new_flow(tasks, start="latest"), threading.Event()
        found: list[float] = []

        def read() -> None:
            time.sleep(SETTLE_S)
            found.extend(
                ages_ms(
                    clients.target_admin(flow),
                    _remote_of(flow, self.topic),
                    partitions=self._load.partitions,
                    group=flow.flow.shadow_group,
                    seconds=LAG_S,
                )
            )
            stop.set()

        def on_event(name: str, _fields: object) -> None:
            if name == "ready":
                threading.Thread(target=read, daemon=True).start()

        with scratch.under_load(self._load.rate):
            self._mirror(flow, stop, once=False, on_event=on_event)
        found.sort()
        return (found[len(found) // 2], found[int(len(found) * 0.99)]) if found else None

    def _mirror(
        self,
        flow: FlowSettings,
        stop: threading.Event,
        *,
        once: bool,
        on_event: Callable[[str, object], None] = lambda _name, _fields: None,
    ) -> None:
        settings = replace(
            self._settings,
            flows=(flow,),
            heartbeats=(),
            standby=False,
            metrics=replace(self._settings.metrics, exporters=()),
        )
        report: Report = Driver(settings, on_event=on_event, stop=stop).run(once=once)
        if not report.is_good:
            apart = (*report.stopped.values(), *report.refused.values())
            reasons = [*report.failed, *(reason for one in apart for reason in one.values())]
            raise MirrorError("\n".join(reasons))

    def _new_flow(self, tasks: int, *, start: str = "earliest") -> FlowSettings:
        """Return the configured flow under its own alias, for the scratch topic only."""
        flow = self._flow
        alias = f"bench-{self._name}-{len(self._trials)}"
        trial = replace(
            flow,
            flow=Flow(alias, flow.flow.target),
            topics=(re.compile(re.escape(self.topic)),),
            topics_exclude=(),
            heartbeats_replicated=False,
            renames=(),
            transforms=NO_TRANSFORMS,
            refusals=replace(flow.refusals, tolerance=Tolerance.NONE, quarantine=""),
            groups=replace(flow.groups, emit_checkpoints=False, emit_syncs=False),
            start_position=start,
            tasks_max=tasks,
            sync_configs=False,
            sync_acls=False,
        )
        self._trials.append(trial)
        return trial

    def _clean_up(self) -> list[str]:
        self._tell("removing what was created")
        left = []
        for trial in self._trials:
            flow = trial.flow
            made = [
                _remote_of(trial, self.topic),
                flow.claims_topic,
                flow.offset_map_topic,
                flow.ledger_topic,
            ]
            within_s = trial.session_timeout.total_seconds() + MARGIN_S
            for config, topics, groups in (
                (clients.target_admin(trial), made, [flow.shadow_group, flow.drivers_group]),
                (clients.source_admin(trial), [self.topic], [flow.source_group]),
            ):
                left += remove(config, topics, groups, within_s=within_s)
        return left


def incoming_rate(flow: FlowSettings) -> int:
    """
    Measure the records per second that the flow's source topics get, for a few seconds.

    Raises:
        RestartTask: A cluster did not answer (SourceUnavailable or TargetUnavailable).
    """
    clusters = open_clusters(flow)
    plan = TopicSync(flow, clusters, on_event=lambda _name, _fields: None).plan(
        clusters.source_topics.list(), {}
    )
    partitions = [
        TopicPartition(r.source_topic, p) for r in plan.routes for p in range(r.partitions)
    ]
    if not partitions:
        return 0
    before, began = sum(clusters.source_metadata.ends(partitions).values()), time.monotonic()
    time.sleep(RATE_LOOK_S)
    after = sum(clusters.source_metadata.ends(partitions).values())
    return round((after - before) / (time.monotonic() - began))


def steady_rate(looks: Sequence[tuple[float, int]], total: int) -> float | None:
    """Return records per second between warm-up and end; None if that is too short to measure."""
    window = [look for look in looks if WARM_UP * total <= look[1] < total]
    if not window or window[-1][0] - window[0][0] < LEAST_WINDOW_S:
        return None
    (began, before), (ended, after) = window[0], window[-1]
    return (after - before) / (ended - began)


def tasks_for(rate: int, trials: Sequence[Trial]) -> int | None:
    """
    Return how many tasks a rate needs, with headroom.

    This is the smallest trial that is fast enough, or else extrapolated from the last trial.

    Returns:
        None if the trials show that more tasks do not help.
    """
    wanted = rate * HEADROOM
    for trial in trials:
        if trial.rate >= wanted:
            return trial.tasks
    last = trials[-1]
    if len(trials) > 1 and last.rate < 1.1 * trials[-2].rate:
        return None
    return math.ceil(wanted / (last.rate / last.tasks))


def _remote_of(flow: FlowSettings, topic: str) -> str:
    return policy_of(flow).format_remote_topic(flow.flow.source, topic)
