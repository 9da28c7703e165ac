"""Lets a flow do what operators want of it, and reports when it is done."""

import re
from collections.abc import Iterable, Set
from dataclasses import replace
from typing import Protocol

from eos_mirror.core.messages import Orders
from eos_mirror.core.reported import Reported
from eos_mirror.driver.flow import FlowRunner
from eos_mirror.driver.readiness import facts_of
from eos_mirror.errors import MirrorError, SourceUnavailable, TargetUnavailable, fields_of
from eos_mirror.runtime.control import EventSink


class Reloading(Protocol):
    """Reads the configuration file of the run on another thread."""

    @property
    def is_reloading(self) -> bool:
        """True until everything that was asked for has been read and applied."""

    def reload(self) -> None:
        """Ask for it."""


class FollowDesired:
    """Follows the orders about one flow. One thread calls it."""

    def __init__(self, runner: FlowRunner, *, reloading: Reloading, on_event: EventSink) -> None:
        """
        Args:
            on_event: Receives log events.
        """
        self._runner = runner
        self._reloading = reloading
        self._on_event = on_event
        self._reported = Reported()

    def look(self) -> None:
        """
        Send the tasks new orders, and report those that every task follows.

        An outage is reported for the whole cluster, not here.
        """
        runner = self._runner
        try:
            before = _held(runner.orders)
            if runner.desired.read():
                runner.give_orders()
                self._continue(before - _held(runner.orders))
                for request in runner.desired.taken_requests():
                    if request.retries is None:
                        self._reloading.reload()
                    else:
                        names = {one.topic for one in runner.stopped}
                        self._retry({n for n in names if re.fullmatch(request.retries, n)})
            self._divide()
            if not runner.desired.is_reported and self._is_done():
                runner.desired.report_done(len(runner.ordered()))
            if self._reported.over():
                self._on_event("failure.over", {"flow": str(runner.flow), "what": "orders.failed"})
        except (SourceUnavailable, TargetUnavailable):
            return
        except MirrorError as exc:
            if self._reported.is_new(str(exc)):
                self._on_event("orders.failed", {"flow": str(runner.flow), **fields_of(exc)})

    def _divide(self) -> None:
        """Divide the limits again, by what the tasks need now."""
        runner = self._runner
        if not runner.orders.throttles:
            return
        runner.throttles.look({slot: task.report for slot, task in runner.statuses().items()})
        runner.give_orders()

    def _continue(self, topics: Set[str]) -> None:
        """Try all partitions of topics that are not held any more, as if none had failed."""

        def change(orders: Orders) -> Orders:
            failed = {p: why for p, why in orders.stopped.items() if p.topic not in topics}
            return replace(_tried_again(orders, topics), stopped=failed)

        if topics:
            self._runner.give_orders(change)

    def _retry(self, topics: Set[str]) -> None:
        """Try failed partitions of these topics again, now."""
        if topics:
            self._runner.give_orders(lambda orders: _tried_again(orders, topics))

    def _is_done(self) -> bool:
        """Return True if every task reads what it is ordered to read, as fast as it may."""
        orders = self._runner.orders
        wanted = orders.paused, orders.stopped_topics
        reports = [task.report for task in self._runner.statuses().values()]
        if self._reloading.is_reloading or facts_of(self._runner).is_starting:
            return False
        known = [report for report in reports if report is not None]
        if not known or len(known) < len(reports):
            return False
        follow = all((one.paused, one.stopped_topics) == wanted for one in known)
        return follow and self._runner.throttles.are_applied(orders.topics, known)


def _tried_again(orders: Orders, topics: Iterable[str]) -> Orders:
    again = {name: orders.retries.get(name, 0) + 1 for name in topics}
    return replace(orders, retries={**orders.retries, **again})


def _held(orders: Orders) -> set[str]:
    """Return the topics that operators have paused or stopped."""
    return {*orders.paused, *orders.stopped_topics}
