"""The control thread of a task: renews the lease, receives orders, sees when it must end."""

import os
import threading
import time
from collections.abc import Callable
from datetime import timedelta

from eos_mirror.errors import fields_of
from eos_mirror.runtime.context import RunningContext
from eos_mirror.runtime.lifeline import Lifeline, last_words, main_thread_stack
from eos_mirror.runtime.link import Answer, Link, RejectedError, Told
from eos_mirror.runtime.outcome import Ending, ExitCode, Outcome

PERIOD = timedelta(milliseconds=250)
"""Time between two heartbeats, and so the longest delay of a STOP."""

ORPHAN_GRACE = timedelta(seconds=1)
"""Time for a task without a parent to finish its transaction; then the process exits."""

LOOP_HALT = timedelta(seconds=15)
"""A loop without a report for this long is logged, once."""

FIRST_TTL = timedelta(seconds=10)
"""Assumed duration of the lease, until the driver has sent the real one."""


class Pulse:
    """
    Sends heartbeats until the task has ended.

    Invariants:
        A. A task without an answer for half its lease is asked to return; without one for the
           whole lease the process exits.
        B. A task whose parent is gone exits within ORPHAN_GRACE, whatever it is doing.
        C. A task never continues without this thread.
    """

    def __init__(
        self,
        context: RunningContext,
        link: Link,
        lifeline: Lifeline,
        *,
        end: Callable[[int], object] = os._exit,
    ) -> None:
        self._context = context
        self._link = link
        self._lifeline = lifeline
        self._end = end
        self._ttl_s = FIRST_TTL.total_seconds()
        self._heard_s = time.monotonic()
        self._orphaned_s: float | None = None
        self._ready = threading.Event()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pulse", daemon=True)
        self._halt_told = False
        self.rejected = False

    def start(self) -> None:
        """Send HELLO and start the heartbeats."""
        self._thread.start()

    def wait_until_ready(self) -> None:
        """Wait until the lease is granted, or the task is halted before it began."""
        self._ready.wait()

    def stop(self, within: timedelta) -> None:
        """Stop the heartbeats."""
        self._done.set()
        self._lifeline.wake()
        self._thread.join(within.total_seconds())

    def _run(self) -> None:
        try:
            while not self._done.is_set():
                self._beat()
                self._check_parent()
                signal_name = self._lifeline.wait(PERIOD)
                if signal_name is not None:
                    self._halt(Outcome.RESTART, signal_name)
        except Exception as exc:  # noqa: BLE001 - top of a thread: it ends the task
            self._halt(Outcome.RESTART, f"control thread: {fields_of(exc)['reason']}")
            if not self._done.wait(ORPHAN_GRACE.total_seconds()):
                self._end_now("its control thread failed and the task does not return")

    def _beat(self) -> None:
        self._tell_of_a_halt()
        last_event, events = self._context.events.pending()
        last_report, reports = self._context.reports.pending()
        try:
            answer = self._link.heartbeat(
                Told(reports=reports, events=events),
                loop_age_s=self._context.loop_age_s,
                events_dropped=self._context.events.dropped_count,
            )
        except RejectedError as exc:
            self.rejected = True
            self._halt(Outcome.RESTART, f"rejected: {exc}")
        except OSError as exc:
            self._judge_silence(exc)
        else:
            self._heard_s = time.monotonic()
            self._context.events.confirm(last_event)
            self._context.reports.confirm(last_report)
            self._obey(answer)

    def _tell_of_a_halt(self) -> None:
        """Log where the loop is blocked; the driver, which will kill the task, cannot see that."""
        age_s = self._context.loop_age_s
        if age_s < LOOP_HALT.total_seconds():
            self._halt_told = False
        elif not self._halt_told:
            self._halt_told = True
            last_words(
                f"task {self._context.slot} has waited for {age_s:.0f} s; the run "
                f"replaces it if that does not end. It waits in {main_thread_stack()}"
            )

    def _obey(self, answer: Answer) -> None:
        if answer.ttl_s is not None:
            self._ttl_s = answer.ttl_s
        if answer.orders is not None:
            self._context.take_orders(answer.orders)
        if answer.command == "STOP":
            self._halt(Outcome.STOPPED, "")
        elif answer.command == "RESTART":
            self._halt(Outcome.RESTART, "")
        self._ready.set()

    def _judge_silence(self, exc: OSError) -> None:
        silent_s = time.monotonic() - self._heard_s
        if silent_s > self._ttl_s:
            self._end_now(f"no answer from the driver for {silent_s:.1f} s: {exc}")
        elif silent_s > self._ttl_s / 2:
            self._halt(Outcome.RESTART, f"no answer from the driver for {silent_s:.1f} s: {exc}")

    def _check_parent(self) -> None:
        if not self._lifeline.orphaned:
            return
        if self._orphaned_s is None:
            self._orphaned_s = time.monotonic()
            self._halt(Outcome.RESTART, "the parent process is gone")
        elif time.monotonic() - self._orphaned_s > ORPHAN_GRACE.total_seconds():
            self._end_now("the parent process is gone and the task does not return")

    def _halt(self, outcome: Outcome, reason: str) -> None:
        self._context.halt(Ending(outcome, reason))
        self._ready.set()

    def _end_now(self, why: str) -> None:
        last_words(f"task {self._context.slot}: {why}; the process exits")
        self._end(ExitCode.ORPHAN)
