"""`eos-mirror run FILE`: mirrors, as MirrorMaker 2's dedicated mode does."""

import argparse
import os
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from eos_mirror.cli.flows import settings_of
from eos_mirror.cli.plans import plan_json, plan_text
from eos_mirror.cli.signals import on_signals, reload_signals, stop_signals
from eos_mirror.cli.terminal import painter
from eos_mirror.cli.times import past_time_of
from eos_mirror.cli.views import Tone
from eos_mirror.driver.warm_up import warm_up
from eos_mirror.telemetry.events import Level
from eos_mirror.telemetry.log import EventLog

if TYPE_CHECKING:
    from eos_mirror.driver.driver import Driver, Report

TASK_ENTRY = "EOS_MIRROR_TASK_ENTRY"
"""Names the function that task processes run instead of the mirror: for tests and the demo."""

TONES = {Level.DETAIL: Tone.QUIET, Level.WARNING: Tone.WARNING, Level.ERROR: Tone.BAD}


def register(subparsers: Any) -> None:
    """Add the verb to the command line."""
    parser = subparsers.add_parser("run", help="mirror every enabled flow of an mm2.properties")
    parser.add_argument("file", metavar="FILE", help="an mm2.properties")
    parser.add_argument(
        "--clusters", nargs="+", metavar="ALIAS", help="only flows into these clusters"
    )
    end = parser.add_mutually_exclusive_group()
    end.add_argument(
        "--once", action="store_true", help="exit when all records of the start are mirrored"
    )
    end.add_argument(
        "--until",
        metavar="TIME",
        help="exit when all records before this time (ISO, or milliseconds) are mirrored",
    )
    parser.add_argument(
        "--check", action="store_true", help="check and print the plan; write nothing"
    )
    parser.add_argument("--verbose", action="store_true", help="also log details")
    parser.add_argument("--json", action="store_true", help="print JSON on a terminal, too")


def run(args: argparse.Namespace) -> int:
    """Run the verb and return the exit code; `main` prints errors."""
    until = None
    if args.until is not None:
        until = past_time_of("--until", args.until, now=datetime.now(UTC))
    settings = settings_of(args.file, clusters=args.clusters)
    if not args.check:  # a check creates no topic, not even the coordinators' own
        warm_up(settings)
    # imported while the clusters find their coordinators
    from eos_mirror.cli.run_progress import first_catch_up_shown  # noqa: PLC0415
    from eos_mirror.driver.driver import Driver  # noqa: PLC0415
    from eos_mirror.driver.flow import MIRROR_ENTRY  # noqa: PLC0415
    from eos_mirror.operate.source_takeover import take_over_source  # noqa: PLC0415
    from eos_mirror.rest.server import served  # noqa: PLC0415

    entry = os.environ.get(TASK_ENTRY, MIRROR_ENTRY)
    stop = threading.Event()
    log = _log(args)
    take_over = partial(take_over_source, on_event=log)
    new_driver = partial(
        Driver, settings, on_event=log, stop=stop, entry=entry, take_over=take_over
    )
    driver = new_driver()
    if args.check:
        for note in settings.notes:
            sys.stderr.write(f"eos-mirror: note: {note}\n")
        return _check(driver, as_json=args.json)

    _obey_signals(lambda: driver, stop, log)
    with served(settings.rest, lambda: driver, on_event=log), first_catch_up_shown(driver, stop):
        mirror = partial(Driver.run, once=args.once or until is not None, until=until)
        report = mirror(driver)
        while report.superseded and not stop.is_set():
            driver = new_driver()
            report = mirror(driver)
    _explain(report)
    return 0 if report.is_good else 1


def _obey_signals(driver: Callable[[], "Driver"], stop: threading.Event, log: EventLog) -> None:
    """Reload, or set `stop`, when a signal asks for it."""
    reloading = reload_signals()

    def on_signal(name: str) -> None:
        if name in {number.name for number in reloading}:
            driver().reload()
        elif not stop.is_set():
            stop.set()
            log("stopping", {"signal": name})

    on_signals(on_signal, *stop_signals(), *reloading)


def _log(args: argparse.Namespace) -> EventLog:
    paint = painter(sys.stdout)
    return EventLog(
        verbose=args.verbose,
        as_json=args.json,
        paint=lambda text, level: paint(text, TONES.get(level)),
    )


def _check(driver: "Driver", *, as_json: bool) -> int:
    is_for_a_person = sys.stdout.isatty() and not as_json
    for plan in driver.check():
        sys.stdout.write(plan_text(plan) if is_for_a_person else plan_json(plan))
    return 0


def _explain(report: "Report") -> None:
    for flow, partitions in report.stopped.items():
        for partition, reason in partitions.items():
            sys.stderr.write(f"eos-mirror: {flow} {partition} stopped: {reason}\n")
    for topics in report.refused.values():
        for reason in dict.fromkeys(topics.values()):  # once for several topics with one name
            sys.stderr.write(f"eos-mirror: not mirrored: {reason}\n")
    for reason in report.failed:
        sys.stderr.write(f"eos-mirror: {reason}\n")
