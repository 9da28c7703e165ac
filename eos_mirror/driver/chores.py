"""What a driver does periodically while its tasks mirror."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import timedelta
from typing import NamedTuple

from eos_mirror.core.policy import HEARTBEATS_TOPIC
from eos_mirror.driver import cluster_watch
from eos_mirror.driver.cluster_watch import ClusterWatch
from eos_mirror.driver.config_reload import ConfigReload
from eos_mirror.driver.first_contact import admin_configs
from eos_mirror.driver.flow import DOUBTFUL, FlowRunner
from eos_mirror.driver.follow_desired import FollowDesired
from eos_mirror.driver.heartbeats import Heartbeats
from eos_mirror.driver.leader_election import LeaderElection
from eos_mirror.driver.logins import RefusedLogins
from eos_mirror.driver.partition_metrics import LOOK_EVERY
from eos_mirror.errors import fields_of
from eos_mirror.kafka.reconnecting import REFUSED as LOGIN_REFUSED
from eos_mirror.runtime.control import EventSink
from eos_mirror.runtime.scheduler import Scheduler
from eos_mirror.settings.model import Settings

SETTLED = timedelta(seconds=5)
"""Delay before periodic actions, to keep load off the clusters while tasks start."""

ASSIGNMENT_EVERY = timedelta(seconds=1)
LOOK_AT_TURN = timedelta(seconds=0.5)
ORDERS_EVERY = timedelta(seconds=1)
"""How soon a run sees what an operator wants of it."""

DOUBTFUL_EVERY = timedelta(seconds=1)
"""Refused topics are tried again after pauses that begin with this one."""

CHORE_ENDS = timedelta(seconds=5)
"""A stop waits this long for a chore that runs."""

NEVER = timedelta(days=36_500)
NO_TIME = timedelta(0)
"""A stop does not wait for what only asks a cluster."""


class Chore(NamedTuple):
    """
    A periodic action.

    Attributes:
        after: Delay of the first run, from the start of all chores.
    """

    name: str
    every: timedelta
    act: Callable[[], None]
    after: timedelta = timedelta(0)


def chores_of(runner: FlowRunner) -> Iterator[Chore]:
    """Yield the configured periodic actions of a flow that ask its clusters."""
    settings, flow = runner.settings, runner.flow
    if settings.refresh_topics:
        yield Chore(_topics_of(runner), settings.refresh_topics_interval, runner.follow_topics)
        name = f"{DOUBTFUL} of {flow}"
        yield Chore(name, DOUBTFUL_EVERY, runner.follow_doubtful, after=DOUBTFUL_EVERY)
    if settings.sync_configs:
        every, name = settings.sync_configs_interval, f"configuration of the topics of {flow}"
        yield Chore(name, every, runner.topics.follow_configs, after=SETTLED)
    if settings.sync_acls:
        every, name = settings.sync_acls_interval, f"access rights of the topics of {flow}"
        yield Chore(name, every, runner.acls.follow, after=SETTLED)


def _topics_of(runner: FlowRunner) -> str:
    """Return the name of the chore that creates and grows remote topics."""
    return f"topics of {runner.flow}"


class Chores:
    """
    The periodic actions of a run.

    Those that change something call clusters and may block for long, so they do not share a thread
    with those that watch the run. During an outage each question waits for its whole time, so the
    lag, the orders, and the watch of each cluster have threads of their own.
    """

    def __init__(
        self,
        settings: Settings,
        flows: Sequence[FlowRunner],
        *,
        on_event: EventSink,
        logins: RefusedLogins,
    ) -> None:
        """
        Args:
            on_event: Receives log events.
            logins: Filled by the watches of the clusters.
        """
        self._logins = logins
        self._settings, self._flows, self._on_event = settings, flows, on_event
        self._lists = ConfigReload(settings, flows, on_event=on_event)
        self._outages: dict[str, str] = {}
        for runner in flows:
            runner.outages = self._outages
        self._changes, self._watch, self._orders, self._lag = (
            Scheduler(on_error=self._failed) for _ in range(4)
        )

    def start(
        self,
        cleanup: ExitStack,
        *,
        once: bool,
        summary: Callable[[], None],
        elections: Sequence[LeaderElection],
    ) -> None:
        """
        Start every chore; the stack stops them.

        Args:
            once: The run ends by itself, so it writes no heartbeats.
            summary: Logs the summaries of the flows.
        """
        self._add_reload()
        for runner in self._flows:
            for chore in chores_of(runner):
                self._changes.add(chore.name, chore.every, chore.act, after=chore.after)
            follow = FollowDesired(runner, reloading=self, on_event=self._on_event)
            self._orders.add(f"orders to {runner.flow}", ORDERS_EVERY, follow.look)
            if runner.is_measured:
                self._lag.add(
                    f"lag of {runner.flow}", LOOK_EVERY, runner.metrics.look, after=SETTLED
                )
            self._watch.add(
                f"assignment of {runner.flow}", ASSIGNMENT_EVERY, runner.tend_assignment
            )
        for number, election in enumerate(elections):
            self._watch.add(f"leadership {number}", LOOK_AT_TURN, election.look)
        self._watch.add("summary", self._settings.summary_interval, summary)
        asking = [self._orders, self._lag, *self._cluster_watches()]
        for scheduler, within in (
            (self._changes, CHORE_ENDS),
            (self._watch, CHORE_ENDS),
            *((one, NO_TIME) for one in asking),
        ):
            scheduler.start()
            cleanup.callback(scheduler.stop, within)
        if not once:
            self._start_heartbeats(cleanup)

    def _start_heartbeats(self, cleanup: ExitStack) -> None:
        heartbeats = Heartbeats(
            self._settings.heartbeats,
            after=SETTLED,
            on_event=self._on_event,
            on_first=self._find_heartbeats,
        )
        heartbeats.start()
        cleanup.callback(heartbeats.stop, timedelta(seconds=5))

    def _cluster_watches(self) -> Iterator[Scheduler]:
        for alias, config in admin_configs(self._settings.flows).items():
            watch = Scheduler(on_error=self._failed)
            look = ClusterWatch(
                alias,
                config,
                outages=self._outages,
                logins=self._logins,
                on_event=self._on_event,
            ).look
            watch.add(f"watch of {alias}", cluster_watch.EVERY, look, after=SETTLED)
            yield watch

    def reload(self) -> None:
        """Read the configuration now, then compare the topics. Any thread may call this."""
        self._lists.ask()
        self._changes.hurry(self._reload, *(_topics_of(runner) for runner in self._flows))

    def _find_heartbeats(self) -> None:
        """Compare the topics of flows that mirror heartbeats, and have not found their topic."""
        self._changes.hurry(
            *(
                _topics_of(runner)
                for runner in self._flows
                if runner.settings.heartbeats_replicated
                and HEARTBEATS_TOPIC not in runner.topics.routes
            )
        )

    @property
    def is_reloading(self) -> bool:
        """True until the configuration has been read as often as it was asked for."""
        return self._lists.is_asked

    @property
    def _reload(self) -> str:
        return f"reload of {self._settings.path}"

    def _add_reload(self) -> None:
        """Add it before the others, which then see what it read."""
        looks = [
            flow.refresh_topics_interval for flow in self._settings.flows if flow.refresh_topics
        ]
        every = min(looks, default=NEVER)
        self._changes.add(self._reload, every, self._lists.look, after=NO_TIME if looks else NEVER)

    def _failed(self, name: str, exc: Exception) -> None:
        if str(exc) == LOGIN_REFUSED:
            return  # `cluster.unreachable` says it, and most chores fail every second meanwhile
        self._on_event("chore.failed", {"chore": name, **fields_of(exc)})
