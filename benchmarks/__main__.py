"""
Exactly once against at least once against MirrorMaker 2, in one run on one machine.

    python -m benchmarks run --quick
    python -m benchmarks run --cells 100B 1000B --peers eos mm2-eos --rounds 5 --json result.json
    python -m benchmarks run --cells 100B --peers eos alo --intervals 10 100 1000 --tasks 1 2
    python -m benchmarks lane --rounds 5 --json result.json
    python -m benchmarks distance --ms 50 --peers eos eos-client
    python -m benchmarks start --peers eos mm2-eos
    python -m benchmarks latency --rates 1000 10000 --peers eos mm2-eos
    python -m benchmarks partitions --partitions 10 100 1000 --rate 10000 --peers eos mm2-eos
    python -m benchmarks kill --rate 20000 --peers eos mm2-eos
    python -m benchmarks draw result.json FOLDER
    python -m benchmarks compare old.json new.json

More verbs measure eos_mirror alone: throughput, scale, verify, verify-beside, recovery.
"""

import argparse
import json
import shlex
import signal
import sys
import tempfile
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TypeAlias

from benchmarks import cells, peers
from benchmarks.contest import Contest, NotExactError
from benchmarks.measures import (
    Measure,
    Results,
    copies,
    distances,
    kills,
    latencies,
    many_partitions,
    opened,
    starts,
)
from benchmarks.page import document
from benchmarks.pictures import draw
from benchmarks.report import comparison, machine
from eos_mirror.core.side import Side

Verbs: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001 - its only name
SIDES = tuple(side.value for side in Side)
FULL_ROUNDS = 5
QUICK_SHARE = 0.6
"""Share of each cell's records that `--quick` copies: it takes six minutes even on a slow day."""
INTERRUPTED = 130
INTERVALS_MS, TASKS = (100,), (2,)
LANE_ROUNDS, LANE_SHARE = 5, 0.4
"""With this share of the records, five rounds of the six cells take about 35 minutes."""

ALONE = {
    "throughput": ("benchmarks.throughput", "rate, cost, start and memory of eos_mirror alone"),
    "scale": ("benchmarks.scale", "rounds over many groups, checks of many topics"),
    "verify": ("benchmarks.verify", "records per second that verify reads, and its memory"),
    "verify-beside": ("benchmarks.verify_beside", "how much verify slows a mirror under load"),
    "recovery": ("benchmarks.recovery", "how long partitions get no records after a fault"),
}
"""Module and help of the verbs that measure eos_mirror without peers, by name."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a verb and return the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words and words[0] in ALONE:
        module, _ = ALONE[words[0]]
        return int(import_module(module).main(words[1:]))
    args = _parse(argv)
    if args.verb == "draw":
        return _draw(args)
    if args.verb == "compare":
        old, new = (json.loads(path.read_text())["results"] for path in (args.old, args.new))
        print("\n".join(comparison(old, new)))
        return 0
    command = shlex.join([Path(sys.executable).name, "-m", "benchmarks", *sys.argv[1:]])
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # clean up, as after Ctrl-C
    with tempfile.TemporaryDirectory() as folder, opened(args, Path(folder)) as contest:
        results: Results = {}
        code = measured(contest, args, results)
    if code == 0 or results:
        _write(command, results, args)
    return code


def measured(contest: Contest, args: argparse.Namespace, results: Results) -> int:
    """Fill in the results, and return the exit code; what was complete before a failure stays."""
    measure: Measure = args.measure
    try:
        for some in measure(contest, args):
            results |= some
    except (NotExactError, RuntimeError, ValueError) as exc:
        sys.stderr.write(f"{exc}\n{contest.last_words()}")
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def _write(command: str, results: Results, args: argparse.Namespace) -> None:
    page = "\n".join(document(command, results, args.rounds)) + "\n"
    sys.stdout.write(page)
    if args.markdown:
        args.markdown.write_text(page)
    if args.json:
        found = {"command": command, "machine": machine(), "results": results}
        args.json.write_text(json.dumps(found, indent=1) + "\n")


def _draw(args: argparse.Namespace) -> int:
    args.folder.mkdir(parents=True, exist_ok=True)
    try:
        written = draw(args.folder, json.loads(args.result.read_text()))
    except RuntimeError as exc:
        sys.stderr.write(f"{exc}\n")
        return 1
    print("\n".join(map(str, written)))
    return 0


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__.split("\n\n")[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    _add_copies(verbs)
    _add_loads(verbs)
    pictures = verbs.add_parser("draw", help="draw pictures of a result")
    pictures.add_argument("result", type=Path, help="a file that --json wrote")
    pictures.add_argument("folder", type=Path)
    compare = verbs.add_parser("compare", help="divide a result by an older one")
    compare.add_argument("old", type=Path, help="a file that --json wrote")
    compare.add_argument("new", type=Path, help="a file that --json wrote")
    for name, (_, text) in ALONE.items():
        verbs.add_parser(name, help=text, add_help=False)
    args = parser.parse_args(argv)
    if getattr(args, "full", False):
        args.cells, args.peers, args.rounds = cells.FULL, peers.FULL, FULL_ROUNDS
    if getattr(args, "quick", False):
        args.share = QUICK_SHARE
    return args


def _add_copies(verbs: Verbs) -> None:
    """Add the verbs whose peers copy topics that were filled before."""
    run = verbs.add_parser("run", help="let peers copy the same topics, one after another")
    size = run.add_mutually_exclusive_group()
    size.add_argument(
        "--quick", action="store_true", help="two cells, four peers, one round, fewer records"
    )
    size.add_argument("--full", action="store_true", help="four cells, seven peers, five rounds")
    size.add_argument("--cells", nargs="+", choices=cells.CELLS, default=cells.QUICK)
    lane = verbs.add_parser("lane", help="our own lane, the client library, and MirrorMaker 2")
    lane.add_argument("--cells", nargs="+", choices=cells.CELLS, default=cells.LANE)
    for verb in (run, lane):
        verb.add_argument(
            "--intervals", nargs="+", type=int, default=INTERVALS_MS, help="commit intervals in ms"
        )
        verb.add_argument("--tasks", nargs="+", type=int, default=TASKS, help="tasks of each peer")
        verb.add_argument("--tls", action="store_true", help="all clients connect with TLS")
        verb.set_defaults(measure=copies)
    distance = verbs.add_parser("distance", help="one partition, with a cluster far away")
    distance.add_argument("--ms", type=int, default=50, help="time of a round trip (default 50)")
    distance.add_argument("--far", nargs="+", choices=SIDES, default=SIDES, help="the far cluster")
    distance.set_defaults(measure=distances)
    for verb in (run, lane, distance):
        verb.add_argument("--share", type=float, default=1, help="share of the records of a cell")
    _add_results(run)
    _add_results(lane, peers.LANE, LANE_ROUNDS)
    _add_results(distance, peers.LANE[:2], LANE_ROUNDS)
    lane.set_defaults(share=LANE_SHARE)


def _add_loads(verbs: Verbs) -> None:
    """Add the verbs that measure peers under a load of their own."""
    latency = verbs.add_parser("latency", help="end-to-end latency of records")
    latency.add_argument("--rates", nargs="+", type=int, default=[1_000], help="records a second")
    latency.add_argument("--tasks", nargs="+", type=int, default=TASKS, help="tasks of each peer")
    latency.set_defaults(measure=latencies)
    many = verbs.add_parser("partitions", help="start and cost of many partitions")
    many.add_argument("--partitions", nargs="+", type=int, default=[10, 1_000])
    many.add_argument("--rate", type=int, default=0, help="records a second; 0 is idle")
    many.set_defaults(measure=many_partitions)
    start = verbs.add_parser("start", help="time from a start to the first record")
    start.set_defaults(measure=starts)
    kill = verbs.add_parser("kill", help="time to resume after SIGKILL of every mirror process")
    kill.add_argument("--rate", type=int, default=20_000, help="records a second")
    kill.set_defaults(measure=kills)
    for verb in (latency, many, start, kill):
        _add_results(verb)


def _add_results(
    verb: argparse.ArgumentParser, some: Sequence[str] = peers.QUICK, rounds: int = 1
) -> None:
    verb.add_argument("--peers", nargs="+", choices=peers.PEERS, default=some)
    verb.add_argument("--rounds", type=int, default=rounds)
    verb.add_argument("--json", type=Path, metavar="F", help="write every round")
    verb.add_argument("--markdown", type=Path, metavar="F", help="also write the printed page")


if __name__ == "__main__":
    sys.exit(main())
