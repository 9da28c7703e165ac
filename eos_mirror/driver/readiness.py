"""Reports when everything is mirrored, when something is not, and when it is again."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, Final

from eos_mirror.core.desired import Wanted
from eos_mirror.core.states import FlowFacts
from eos_mirror.driver.flow import FlowRunner
from eos_mirror.driver.partition_states import outages_of
from eos_mirror.runtime.control import EventSink

STARTING_FOR_S: Final = 30.0
"""A partition may be without a task for this long, after a start or while a task restarts."""

AGAIN_AFTER_S: Final = 60.0
"""While something is not mirrored, a changed list is logged at most this often."""

ALIVE_WITHIN_S: Final = 60.0
"""A driver looks at its flows four times a second; it is stuck if it has not for this long."""

REASONS: Final = 10
"""Reasons in one event, for each flow."""


class Readiness:
    """
    Logs `ready` and `degraded`. One thread calls `look`, any reads the attributes.

    Attributes:
        ready_s: Seconds from its creation to the first `ready`; None before.
        is_settled: True once it has logged one of them: the state of every partition is known, or
            did not become known in time.
        is_on_standby: True while the run waits to lead, and was checked.
    """

    def __init__(
        self,
        flows: Sequence[FlowRunner],
        *,
        on_event: EventSink,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """
        Args:
            on_event: Receives log events.
            now: Monotonic seconds.
        """
        self._flows = flows
        self._on_event = on_event
        self._now = now
        self._created_s = self._complete_s = self._told_s = now()
        self._told: frozenset[tuple[str, str]] | None = None  # what is not mirrored: none if ready
        self._degraded_s: float | None = None
        self.ready_s: float | None = None
        self.is_settled = self.is_on_standby = False
        self._looked_s: float | None = None

    @property
    def is_degraded(self) -> bool:
        """True if something was not mirrored when it was logged last."""
        return bool(self._told)

    @property
    def state(self) -> str:
        """Return where the run stands, in a word or two."""
        if self.is_on_standby:
            return "on standby"
        if not self.is_settled:
            return "starting"
        return "degraded" if self.is_degraded else "ready"

    def is_alive(self) -> bool:
        """Return False if nothing has looked at the flows for a while, although it should."""
        return self._looked_s is None or self._now() - self._looked_s < ALIVE_WITHIN_S

    def look(self) -> bool:
        """Look at the flows, and log what has changed. Return `is_settled`."""
        if self.is_on_standby:
            self._complete_s = self._now()  # only now do its tasks start
        self._looked_s, self.is_on_standby = self._now(), False
        now, facts = self._now(), {str(runner.flow): facts_of(runner) for runner in self._flows}
        if not any(one.is_starting for one in facts.values()):
            self._complete_s = now
        elif now - self._complete_s < STARTING_FOR_S:
            return self.is_settled  # a task that restarts is not worth a warning
        if all(one.is_ready for one in facts.values()):
            self._ready(now)
        else:
            self._degraded(now, facts)
        self.is_settled = True
        return True

    def _ready(self, now: float) -> None:
        if self._told == frozenset():
            return
        self._told = frozenset()
        fields: dict[str, Any] = {"after_s": round(now - self._created_s, 3)}
        if self._degraded_s is not None:
            fields["degraded_s"] = round(now - self._degraded_s, 3)
            self._degraded_s = None
        if self.ready_s is None:
            self.ready_s = now - self._created_s
        self._on_event("ready", {**fields, "flows": [_described(one) for one in self._flows]})

    def _degraded(self, now: float, facts: dict[str, FlowFacts]) -> None:
        names = frozenset((flow, name) for flow, one in facts.items() for name in _names(one))
        if self._told and (names == self._told or now - self._told_s < AGAIN_AFTER_S):
            return
        self._told, self._told_s = names, now
        if self._degraded_s is None:
            self._degraded_s = now
        flows = [
            {
                "flow": flow,
                **one.counts(),
                "reasons": dict(islice(one.obstacles().items(), REASONS)),
            }
            for flow, one in facts.items()
            if not one.is_ready
        ]
        self._on_event("degraded", {"flows": flows})


def facts_of(runner: FlowRunner) -> FlowFacts:
    """Return what of a flow is mirrored now, and what is not."""
    tasks, planned, ordered = runner.statuses(), runner.topics.partitions, runner.ordered()
    failed = {p: why for p, why in runner.stopped.items() if p in planned and p not in ordered}
    not_waiting = failed.keys() | ordered.keys()
    ended = {f"task {n}": task.slot.reason for n, task in tasks.items() if task.has_failed}
    return FlowFacts(
        planned=planned,
        owned=runner.owned_count,
        paused=sum(one.wanted is Wanted.PAUSED for one in ordered.values()),
        stopped=sum(one.wanted is Wanted.STOPPED for one in ordered.values()),
        failed=failed,
        waiting={
            p: why for p, why in runner.waiting.items() if p in planned and p not in not_waiting
        },
        refused=runner.topics.refused,
        outages=outages_of(runner),
        ended={"flow": runner.ended_for, **ended} if runner.ended_for else ended,
        silent_tasks=sum(not one.has_failed and one.report is None for one in tasks.values()),
    )


def _names(one: FlowFacts) -> list[str]:
    return [*one.obstacles(), *(["starting"] if one.starting or one.silent_tasks else [])]


def _described(runner: FlowRunner) -> dict[str, Any]:
    """Return the size of a flow, and how many of its partitions operators keep from mirroring."""
    ordered = Counter(one.wanted.value for one in runner.ordered().values())
    return {
        "flow": str(runner.flow),
        "topics": len(runner.topics.routes),
        "partitions": len(runner.topics.partitions),
        **ordered,
        "tasks": runner.tasks_count,
    }
