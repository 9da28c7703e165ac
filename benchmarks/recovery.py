"""
How long partitions get no records after a fault.

    python -m benchmarks recovery --runtime local --times 20
    python -m benchmarks recovery --runtime spark --faults task.kill,executor.kill --times 20

Two tasks, four partitions, about 2,000 records a second. A read_committed reader of the target
notes when records become visible. The next fault waits until the flow is healthy again. If that
takes more than a minute, the benchmark exits with code 1.
"""

import argparse
import json
import random
import shlex
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median

from benchmarks.peers import DATA_PATHS
from benchmarks.recovery_faults import KINDS, Kind
from benchmarks.recovery_stage import NotRecoveredError, Recovery, measure, open_stage
from eos_mirror import __version__

Results = Mapping[str, Sequence[Recovery]]
NONE = "-"


def main(argv: Sequence[str] | None = None) -> int:
    """Measure every fault, print the table, and return the exit code."""
    args = _parse(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # clean up, as after Ctrl-C
    results: dict[str, list[Recovery]] = {name: [] for name in args.faults}
    failure = ""
    try:
        for name in args.faults:
            if args.runtime in KINDS[name].runtimes:
                for recovery in _rounds(KINDS[name], args):
                    results[name].append(recovery)
                    _talk(f"{name} {len(results[name])}/{args.times}: {recovery.silence_s:.2f} s")
    except NotRecoveredError as exc:
        failure = str(exc)
    print("\n".join(rows(results, args)))
    if args.json:
        args.json.write_text(json.dumps(_document(results, args, failure), indent=1) + "\n")
    if failure:
        _talk(f"not recovered after {failure}")
    return 1 if failure else 0


def _rounds(kind: Kind, args: argparse.Namespace) -> Iterator[Recovery]:
    dice = random.Random(f"{args.seed} {kind.name}")
    with open_stage(kind, runtime=args.runtime, data_path=args.data_path, dice=dice) as stage:
        for _ in range(args.times):
            yield measure(stage, kind)


def rows(results: Results, args: argparse.Namespace) -> list[str]:
    """Return the lines of the table."""
    lines = [
        f"runtime={args.runtime} data.path={args.data_path} times={args.times} seed={args.seed} "
        f"version={__version__}",
        f"{'fault':14} {'n':>3} {'p50 s':>7} {'max s':>7} {'others max s':>13}"
        f" {'elected p50 s':>14} {'then p50 s':>11}",
    ]
    for name, recoveries in results.items():
        silences = [r.silence_s for r in recoveries]
        cells = [
            f"{len(silences) or NONE:>3}",
            f"{_shown(median, silences):>7}",
            f"{_shown(max, silences):>7}",
            f"{_shown(max, [r.others_s for r in recoveries]):>13}",
            f"{_shown(median, [r.elected_s for r in recoveries]):>14}",
            f"{_shown(median, [r.after_s for r in recoveries]):>11}",
        ]
        notes = [f"{key} = {value}" for key, value in KINDS[name].notes.items()]
        lines.append(" ".join([f"{name:14}", *cells, f"  {', '.join(notes)}"]).rstrip())
    return lines


def _shown(of: Callable[[list[float]], float], values: Iterable[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{of(known):.2f}" if known else NONE


def _document(results: Results, args: argparse.Namespace, failure: str) -> Mapping[str, object]:
    """Return every single value, and what is needed to repeat the run."""
    return {
        "command": shlex.join(["python", "-m", "benchmarks", *sys.argv[1:]]),
        "version": __version__,
        "runtime": args.runtime,
        "data_path": args.data_path,
        "seed": args.seed,
        "times": args.times,
        "failure": failure,
        "settings": {name: dict(KINDS[name].notes) for name in results},
        "faults": {name: [asdict(r) for r in recoveries] for name, recoveries in results.items()},
    }


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="benchmarks recovery", description=(__doc__ or "").split("\n\n", 1)[0]
    )
    parser.add_argument("--runtime", choices=("local", "spark"), default="local")
    parser.add_argument(
        "--data-path", choices=DATA_PATHS, default=DATA_PATHS[0], help="data.path of the flow"
    )
    parser.add_argument("--times", type=int, default=20, help="faults of each kind (default 20)")
    parser.add_argument(
        "--faults", type=_faults, default=list(KINDS), metavar="A,B", help=", ".join(KINDS)
    )
    parser.add_argument(
        "--seed", type=int, default=1, help="chooses moments and victims (default 1)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every single value")
    return parser.parse_args(argv)


def _faults(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in KINDS:
            raise argparse.ArgumentTypeError(f"{name!r}: use {', '.join(KINDS)}")
    return names


def _talk(text: str) -> None:
    sys.stderr.write(f"{text}\n")
