"""`eos-mirror bench FILE A->B`: measures a flow's throughput, and the tasks that it needs."""

import argparse
import json
import signal
import sys
from collections.abc import Sequence
from typing import Any

from eos_mirror.cli.confirmation import is_confirmed
from eos_mirror.cli.flows import flow_named, settings_of
from eos_mirror.cli.terminal import bar
from eos_mirror.driver.first_contact import reach_clusters
from eos_mirror.errors import ConfigError
from eos_mirror.operate.bench import Bench, Findings, Load, incoming_rate
from eos_mirror.settings.model import FlowSettings, Settings

LEAST_RATE = 1_000
INTERRUPTED = 130
"""The exit code that shells use after Ctrl-C (128 + SIGINT)."""
RECORDS, VALUE_BYTES, PARTITIONS, TASKS = 1_000_000, 1_000, 8, (1, 2)


def register(subparsers: Any) -> None:
    """Add the verb to the command line."""
    parser = subparsers.add_parser("bench", help="measure a flow on a scratch topic, and size it")
    parser.add_argument("file", metavar="FILE", help="an mm2.properties")
    parser.add_argument("flow", metavar="A->B", help="an enabled flow of it")
    parser.add_argument(
        "--rate", type=int, metavar="N", help="records/s to size for (default: the current rate)"
    )
    for option, default, text in (
        ("records", RECORDS, "records in the scratch topic"),
        ("value-bytes", VALUE_BYTES, "bytes of each record's value"),
        ("partitions", PARTITIONS, "partitions of the scratch topic"),
    ):
        parser.add_argument(
            f"--{option}", type=int, default=default, metavar="N", help=f"{text} ({default:,})"
        )
    parser.add_argument(
        "--tasks", type=int, nargs="+", default=TASKS, metavar="N", help="task counts to try (1 2)"
    )
    parser.add_argument("--yes", action="store_true", help="write without asking")
    parser.add_argument("--json", action="store_true", help="print a JSON object")


def run(args: argparse.Namespace) -> int:
    """Run the verb and return the exit code; `main` prints errors."""
    numbers = {"--records": args.records, "--value-bytes": args.value_bytes}
    numbers |= {"--partitions": args.partitions, "--tasks": min(args.tasks)}
    for option, number in numbers.items():
        if number < 1:
            raise ConfigError(f"{option} {number}: at least 1")
    settings = settings_of(args.file)
    flow = flow_named(settings, args.flow)
    reach_clusters(settings, [flow])
    if not args.yes and not _is_allowed(flow, args):
        _tell("nothing was written")
        return 1
    rate = args.rate
    if rate is None:
        rate = max(LEAST_RATE, incoming_rate(flow))
        _tell(f"sizing for {rate:,} records/s: the current rate, at least {LEAST_RATE:,}")
    load = Load(
        records=args.records,
        value_bytes=args.value_bytes,
        partitions=args.partitions,
        rate=rate,
    )
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: clean up
    try:
        findings = _measured(settings, flow, load, args.tasks)
    except KeyboardInterrupt:
        _tell("interrupted; what was created is removed")
        return INTERRUPTED
    show = _as_json if args.json else _as_text
    sys.stdout.write(show(findings, load))
    for name in findings.left:
        _tell(f"could not be removed: {name}; delete it")
    return 0


def _measured(settings: Settings, flow: FlowSettings, load: Load, tasks: Sequence[int]) -> Findings:
    """Run the bench, with a progress bar where there is a terminal to show it on."""
    with bar() as shown:

        def on_progress(what: str, done: int) -> None:
            if shown is not None:
                shown.show(what, done=done, total=load.records, unit="records")

        return Bench(settings, flow, load, tell=_tell, on_progress=on_progress).run(tasks)


def _is_allowed(flow: FlowSettings, args: argparse.Namespace) -> bool:
    """
    Ask whether the load may be written.

    Raises:
        ConfigError: There is no terminal to ask on.
    """
    size_gb, trials = args.records * args.value_bytes / 1e9, len(set(args.tasks))
    return is_confirmed(
        f"bench writes at least {size_gb:.1f} GB to {flow.flow.source} and "
        f"{size_gb * trials:.1f} GB to {flow.flow.target}, into topics that it deletes at the end"
    )


def _as_text(findings: Findings, load: Load) -> str:
    lines = ["tasks  records/s   MB/s"]
    for trial in findings.trials:
        size = trial.rate * load.value_bytes / 1e6
        lines.append(f"{trial.tasks:>5}  {trial.rate:>9,.0f}  {size:>5,.0f}")
    wanted, what = findings.wanted_tasks, f"for {load.rate:,} records/s of {load.value_bytes:,} B"
    if wanted is None:
        lines.append(f"{what}: not on this machine: more tasks did not help")
    else:
        lines.append(f"{what}: tasks.max = {wanted}, and as many slots on Spark")
    if findings.lag_ms is not None:
        median, high = findings.lag_ms
        lines.append(f"expected lag: {median:,.0f} ms, 99 % below {high:,.0f} ms")
    return "".join(f"{line}\n" for line in lines)


def _as_json(findings: Findings, load: Load) -> str:
    median, high = findings.lag_ms or (None, None)
    document = {
        "trials": [{"tasks": one.tasks, "rate": round(one.rate)} for one in findings.trials],
        "rate": load.rate,
        "value_bytes": load.value_bytes,
        "tasks": findings.wanted_tasks,
        "lag_ms": {"p50": median, "p99": high},
        "left": list(findings.left),
    }
    return json.dumps(document) + "\n"


def _tell(text: str) -> None:
    sys.stderr.write(f"eos-mirror: {text}\n")
