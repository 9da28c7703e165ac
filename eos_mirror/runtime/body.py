"""
Runs a task in its process, the same way in a local child and in a Spark worker.

Every outcome but STOPPED exits the process with `os._exit` (outcome.py has the table of codes).
An exception keeps the clients alive that it interrupted, and librdkafka's destructors can block
indefinitely.
"""

import importlib
import os
from collections.abc import Callable
from datetime import timedelta

from eos_mirror.errors import FatalError, fields_of
from eos_mirror.ports import TaskEntry
from eos_mirror.runtime.context import RunningContext
from eos_mirror.runtime.lifeline import LAST_GASP, Lifeline, die_with_parent
from eos_mirror.runtime.link import Link, Told
from eos_mirror.runtime.outcome import Ending, ExitCode, Outcome
from eos_mirror.runtime.pulse import Pulse
from eos_mirror.runtime.spec import TaskSpec
from eos_mirror.runtime.watchdog import Watchdog

FAREWELL = timedelta(seconds=2)
"""Time for the control thread to finish its call, and the same time again for the BYE."""


def run_task(spec: TaskSpec, *, end: Callable[[int], object] = os._exit) -> Outcome:
    """
    Run the task of the spec until it ends. Call it in the main thread, once per process.

    Returns:
        STOPPED. Every other outcome exits the process with its exit code.
    """
    die_with_parent()
    lifeline = Lifeline()
    link = Link(spec)
    watchdog = Watchdog(
        farewell=lambda ending: link.bye(ending, Told(), within=LAST_GASP),
        end=end,
    )
    context = RunningContext(spec.slot, spec.submission, watchdog, wake=lifeline.wake)
    pulse = Pulse(context, link, lifeline, end=end)
    watchdog.start()
    pulse.start()
    pulse.wait_until_ready()

    ending, failure = _call_entry(spec, context)
    pulse.stop(FAREWELL)
    _, events = context.events.pending()
    _, reports = context.reports.pending()
    link.bye(ending, Told(reports=reports, events=events), within=FAREWELL)
    if ending.outcome is not Outcome.STOPPED:
        end(ExitCode.REJECTED if pulse.rejected else ending.exit_code)
    del failure  # held until here: freeing it may run a destructor that never returns
    watchdog.stop()
    link.close()
    return ending.outcome


def _call_entry(spec: TaskSpec, context: RunningContext) -> tuple[Ending, BaseException | None]:
    """Run the entry unless the task is halted already; return how it ended and what it raised."""
    try:
        if context.halted is None:
            _resolve(spec.entry)(spec.config, context)
    except FatalError as exc:
        return Ending(Outcome.FATAL, **fields_of(exc)), exc
    except BaseException as exc:  # noqa: BLE001 - top of the task: every error exits the process
        return Ending(Outcome.RESTART, **fields_of(exc)), exc
    return context.halted or Ending(Outcome.STOPPED), None


def _resolve(entry: str) -> TaskEntry:
    module, _, function = entry.partition(":")
    found: TaskEntry = getattr(importlib.import_module(module), function)
    return found
