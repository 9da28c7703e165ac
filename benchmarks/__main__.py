"""
Exactly once against at least once against MirrorMaker 2, in one run on one machine.

    python -m benchmarks run --quick
    python -m benchmarks run --cells 100B 1000B --peers eos mm2-eos --rounds 5 --json result.json
    python -m benchmarks run --cells 100B --peers eos alo --intervals 10 100 1000 --tasks 1 2
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
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks import cells, peers
from benchmarks.contest import Contest, NotExactError, take_turns, tried
from benchmarks.killed import measure_kill
from benchmarks.labels import Copied, Many
from benchmarks.latency import measure_latency
from benchmarks.partitions import measure_partitions
from benchmarks.peers import Peer
from benchmarks.pictures import draw
from benchmarks.report import comparison, document, machine
from benchmarks.throughput import two_clusters

FULL_ROUNDS = 5
QUICK_SHARE = 0.6
"""Share of each cell's records that `--quick` copies: it takes six minutes even on a slow day."""
INTERRUPTED = 130
INTERVALS_MS, TASKS = (100,), (2,)
WARM_UP_INTERVAL_MS = 1
"""
Commits that follow each other fast: the JVM of a new broker needs thousands of transactions to
compile what a broker in service compiled long ago.
"""
WARM_UP_SHARE = 0.3
"""
Share of the first cell's records that a warm-up copies: with so many commits, a record takes far
longer than in a round.
"""

Results = dict[str, dict[str, list[dict[str, Any]]]]
"""Figures of each round, by cell or load and then by peer."""


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
    measure: Callable[[Contest, argparse.Namespace], Results] = args.measure
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # clean up, as after Ctrl-C
    with tempfile.TemporaryDirectory() as folder, two_clusters() as (source, target):
        contest = Contest(source=source, target=target, folder=Path(folder))
        try:
            results = measure(contest, args)
        except (NotExactError, RuntimeError, ValueError) as exc:
            sys.stderr.write(f"{exc}\n{contest.last_words()}")
            return 1
        except KeyboardInterrupt:
            return INTERRUPTED
    page = "\n".join(document(command, results, args.rounds)) + "\n"
    sys.stdout.write(page)
    if args.markdown:
        args.markdown.write_text(page)
    if args.json:
        found = {"command": command, "machine": machine(), "results": results}
        args.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


def _draw(args: argparse.Namespace) -> int:
    args.folder.mkdir(parents=True, exist_ok=True)
    try:
        written = draw(args.folder, json.loads(args.result.read_text()))
    except RuntimeError as exc:
        sys.stderr.write(f"{exc}\n")
        return 1
    print("\n".join(map(str, written)))
    return 0


def _copies(contest: Contest, args: argparse.Namespace) -> Results:
    first, *others = _peers(args)
    if others and args.rounds > 1:
        # The JVM of a new broker compiles during the first copies; no round must include that.
        cell = cells.CELLS[args.cells[0]].shortened(args.share * WARM_UP_SHARE)
        with contest.topic(cell):
            for peer in others:
                _warm_up(contest, peer, cell)
    results: Results = {}
    for name in args.cells:
        cell = cells.CELLS[name].shortened(args.share)
        with contest.topic(cell):
            # The first copy of a size pays for fresh memory; no round must include that.
            _warm_up(contest, first, cell)
            ways = {
                str(Copied(name, interval_ms, tasks)): partial(
                    contest.copy, cell=cell, interval_ms=interval_ms, tasks=tasks
                )
                for interval_ms, tasks in product(args.intervals, args.tasks)
            }
            results |= take_turns(ways, _peers(args), args.rounds)
    return results


def _warm_up(contest: Contest, peer: Peer, cell: cells.Cell) -> None:
    warm_up = partial(contest.warm_up, cell=cell, interval_ms=WARM_UP_INTERVAL_MS)
    tried(peer, warm_up, "warm-up")


def _latencies(contest: Contest, args: argparse.Namespace) -> Results:
    warming = _peers(args) if args.rounds > 1 else _peers(args)[:1]
    warm_up = partial(measure_latency, contest, rate=args.rates[0], tasks=args.tasks[0])
    for peer in warming:  # the JVM of a new broker compiles during the first copies
        tried(peer, warm_up, "warm-up")
    ways = {
        f"{rate} records a second, tasks: {tasks}": partial(
            measure_latency, contest, rate=rate, tasks=tasks
        )
        for rate, tasks in product(args.rates, args.tasks)
    }
    return take_turns(ways, _peers(args), args.rounds)


def _partitions(contest: Contest, args: argparse.Namespace) -> Results:
    ways = {
        str(Many(count, args.rate)): partial(
            measure_partitions, contest, partitions=count, rate=args.rate
        )
        for count in args.partitions
    }
    return take_turns(ways, _peers(args), args.rounds)


def _kills(contest: Contest, args: argparse.Namespace) -> Results:
    label = f"killed under {args.rate} records a second"
    ways = {label: partial(measure_kill, contest, rate=args.rate)}
    return take_turns(ways, _peers(args), args.rounds)


def _peers(args: argparse.Namespace) -> list[Peer]:
    return [peers.PEERS[name] for name in args.peers]


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__.split("\n\n")[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    run = verbs.add_parser("run", help="let peers copy the same topics, one after another")
    size = run.add_mutually_exclusive_group()
    size.add_argument(
        "--quick", action="store_true", help="two cells, four peers, one round, fewer records"
    )
    size.add_argument("--full", action="store_true", help="four cells, six peers, five rounds")
    size.add_argument("--cells", nargs="+", choices=cells.CELLS, default=cells.QUICK)
    run.add_argument(
        "--intervals", nargs="+", type=int, default=INTERVALS_MS, help="commit intervals in ms"
    )
    run.set_defaults(measure=_copies)
    latency = verbs.add_parser("latency", help="end-to-end latency of records")
    latency.add_argument("--rates", nargs="+", type=int, default=[1_000], help="records a second")
    for verb in (run, latency):
        verb.add_argument("--tasks", nargs="+", type=int, default=TASKS, help="tasks of each peer")
    latency.set_defaults(measure=_latencies)
    many = verbs.add_parser("partitions", help="start and cost of many partitions")
    many.add_argument("--partitions", nargs="+", type=int, default=[10, 1_000])
    many.add_argument("--rate", type=int, default=0, help="records a second; 0 is idle")
    many.set_defaults(measure=_partitions)
    kill = verbs.add_parser("kill", help="time to resume after SIGKILL of every mirror process")
    kill.add_argument("--rate", type=int, default=20_000, help="records a second")
    kill.set_defaults(measure=_kills)
    for verb in (run, latency, many, kill):
        verb.add_argument("--peers", nargs="+", choices=peers.PEERS, default=peers.QUICK)
        verb.add_argument("--rounds", type=int, default=1)
        verb.add_argument("--json", type=Path, metavar="F", help="write every round")
        verb.add_argument("--markdown", type=Path, metavar="F", help="also write the printed page")
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
    args.share = QUICK_SHARE if getattr(args, "quick", False) else 1
    return args


if __name__ == "__main__":
    sys.exit(main())
