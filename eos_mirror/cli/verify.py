"""`eos-mirror verify FILE [A->B]`: checks that the copy equals the source, record by record."""

import argparse
import re
import sys
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from eos_mirror.cli.flows import flow_named, settings_of
from eos_mirror.cli.signals import note_interrupts
from eos_mirror.cli.terminal import Bar, bar
from eos_mirror.cli.times import time_of
from eos_mirror.cli.verify_watch import Lines, Silence, watch
from eos_mirror.core.plural import counted
from eos_mirror.driver.first_contact import reach_clusters
from eos_mirror.errors import ConfigError
from eos_mirror.operate.proven_file import ProvenFile
from eos_mirror.operate.verify import Planned, Wanted, auditing
from eos_mirror.operate.verify_report import Report, write_reports
from eos_mirror.operate.verify_survey import Period
from eos_mirror.settings.model import FlowSettings, Settings

DIFFERENT = 3
SHOWN_EVERY_S, SAID_EVERY_S = 0.2, 10.0
"""How often progress is shown on a terminal, and elsewhere."""

INTERRUPTED = 130
THOUSAND = 1_000
"""The exit code that shells use after Ctrl-C (128 + SIGINT)."""


def register(subparsers: Any) -> None:
    """Add the verb to the command line."""
    parser = subparsers.add_parser(
        "verify", help="compare everything that was mirrored with its source"
    )
    parser.add_argument("file", metavar="FILE", help="an mm2.properties")
    parser.add_argument("flow", metavar="A->B", nargs="?", help="one flow (default: all)")
    parser.add_argument(
        "--topics", metavar="REGEX", action="append", help="only these source topics; repeatable"
    )
    parser.add_argument(
        "--from", dest="start", metavar="TIME", help="from the first record since this time (ISO)"
    )
    parser.add_argument(
        "--to", dest="end", metavar="TIME", help="before the first record at this time or later"
    )
    parser.add_argument(
        "--sample", metavar="PERCENT", help="only a part of each partition, such as 5%%"
    )
    parser.add_argument("--explain", action="store_true", help="show the first records that differ")
    parser.add_argument(
        "--folds",
        action="store_true",
        help="add digests of both logs to the --json report, for others to check; slower",
    )
    parser.add_argument(
        "--resume", metavar="F", type=Path, help="save verified ranges in F, and skip those in it"
    )
    parser.add_argument(
        "--watch", action="store_true", help="keep verifying new records, until Ctrl-C or SIGTERM"
    )
    parser.add_argument("--json", metavar="F", type=Path, help="also write the report as JSON")
    parser.add_argument("--html", metavar="F", type=Path, help="also write the report as HTML page")


def run(args: argparse.Namespace) -> int:
    """Verify, and return 0 without differences, 3 if one was found, 130 after Ctrl-C."""
    try:
        return _verify(args)
    except KeyboardInterrupt:
        kept = f"verified ranges are in {args.resume}" if args.resume else "nothing is verified"
        sys.stderr.write(f"eos-mirror: interrupted: {kept}; no report was written\n")
        return INTERRUPTED


def _verify(args: argparse.Namespace) -> int:
    for path in (args.json, args.html, args.resume):
        if path is not None and not path.parent.is_dir():
            raise ConfigError(f"{path}: there is no folder {path.parent}; make it first")
    settings = settings_of(args.file)
    flows = settings.flows if args.flow is None else [flow_named(settings, args.flow)]
    patterns = _patterns(args.topics)
    wanted = Wanted(
        is_topic=lambda name: any(one.fullmatch(name) for one in patterns),
        period=Period(start=_time("--from", args.start), end=_time("--to", args.end)),
        sample=_sample(args.sample),
        explain=args.explain,
        folds=args.folds,
    )
    if args.watch and (len(flows) > 1 or wanted.sample < 1):
        raise ConfigError("--watch verifies all of one flow: name it, and remove --sample")
    if args.folds and (args.json is None or args.watch or args.resume or wanted.sample < 1):
        raise ConfigError(
            "--folds is for the report of a proof that reads everything: "
            "add --json F, and remove --resume, --sample and --watch"
        )
    reach_clusters(settings, flows)
    file = ProvenFile(args.resume)
    if args.watch:
        return _watch(args, settings, flows[0], wanted, file)
    reports = []
    look = note_interrupts()
    for flow in flows:
        proven = file.of(str(flow.flow))
        try:
            with bar() as shown:
                progress = ProgressLines(str(flow.flow), file, look, shown)
                with auditing(flow, settings.verify_spark, wanted, progress, proven) as compare:
                    reports.append(compare())
        finally:
            file.save()
        for line in reports[-1].lines():
            sys.stdout.write(f"{line}\n")
    write_reports(reports, json_file=args.json, html_file=args.html)
    return 0 if all(report.holds for report in reports) else DIFFERENT


def _watch(
    args: argparse.Namespace,
    settings: Settings,
    flow: FlowSettings,
    wanted: Wanted,
    file: ProvenFile,
) -> int:
    proven = file.of(str(flow.flow))
    silence = Silence(file.save_now_and_then)
    lines = Lines()

    def on_report(report: Report) -> None:
        lines.tell(report)
        write_reports([report], json_file=args.json, html_file=args.html)

    try:
        last = watch(
            lambda: auditing(flow, settings.verify_spark, wanted, silence, proven),
            on_report=on_report,
        )
    finally:
        file.save()
    if last is None:
        return 1
    return 0 if last.holds else DIFFERENT


class ProgressLines:
    """Shows plan and progress on stderr: one line that is updated, or several on no terminal."""

    def __init__(
        self, flow: str, file: ProvenFile, look: Callable[[], None], shown: Bar | None
    ) -> None:
        """
        Args:
            file: Saved every few seconds.
            look: See `operate.verify.Watcher`.
            shown: The bar that takes the place of the lines; None prints lines.
        """
        self.look = look
        self._bar = shown
        self._flow = flow
        self._file = file
        self._tasks_count = 0
        self._done_count = 0
        self._began = self._said_at = time.monotonic()

    def planned(self, planned: Planned) -> None:
        """Print the plan. See `operate.verify.Watcher`."""
        self._tasks_count = planned.tasks_count
        topics = counted(planned.topics_count, "topic")
        offsets = counted(planned.offsets_count, "offset")
        tasks, slots = counted(planned.tasks_count, "task"), counted(planned.slots, "slot")
        sys.stderr.write(
            f"{self._flow}: {topics}, {offsets}, about {_size(planned.size_bytes)} on both sides "
            f"together: {tasks} on {slots}, {_duration(planned.minutes)}\n"
        )
        self._began = time.monotonic()
        if self._bar is not None:
            self._bar.show(self._flow, done=0, total=self._tasks_count, unit="tasks")

    def done(self) -> None:
        """Save what is proven, and show progress. See `operate.verify.Watcher`."""
        self._file.save_now_and_then()
        self._done_count += 1
        done, total = self._done_count, self._tasks_count
        if self._bar is not None:
            self._bar.show(self._flow, done=done, total=total, unit="tasks")
            return
        now, is_last = time.monotonic(), done == total
        on_terminal = sys.stderr.isatty()
        if not is_last and now - self._said_at < (SHOWN_EVERY_S if on_terminal else SAID_EVERY_S):
            return
        self._said_at = now
        left_s = (now - self._began) / done * (total - done)
        line = f"{self._flow}: {done} of {total} tasks, {left_s:.0f} s left"
        end = "\n" if is_last or not on_terminal else ""
        sys.stderr.write(f"\r{line}\033[K{end}" if on_terminal else f"{line}{end}")
        sys.stderr.flush()


def _size(size: float) -> str:
    """Return a size with three digits and the unit that makes it shortest."""
    for unit in ("bytes", "kB", "MB"):
        if size < THOUSAND:
            return f"{size:.3g} {unit}"
        size /= THOUSAND
    return f"{size:,.3g} GB" if size < THOUSAND else f"{size:,.0f} GB"


def _duration(minutes: float) -> str:
    return f"about {minutes:.0f} min" if minutes >= 1 else "less than a minute"


def _sample(text: str | None) -> float:
    if text is None:
        return 1.0
    number = re.fullmatch(r"(\d+(?:\.\d+)?)%", text)
    if number is None or not 0 < float(number[1]) <= 100:  # noqa: PLR2004 (percent)
        raise ConfigError(f"--sample {text!r}: expected a part of 100%, such as 5%")
    return float(number[1]) / 100


def _time(flag: str, text: str | None) -> datetime | None:
    return None if text is None else time_of(flag, text)


def _patterns(texts: list[str] | None) -> list[re.Pattern[str]]:
    try:
        return [re.compile(text) for text in texts or [".*"]]
    except re.error as exc:
        raise ConfigError(f"--topics {exc.pattern!r}: not a regular expression: {exc}") from exc
