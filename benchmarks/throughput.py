"""
Rate, cost, start and memory of a mirror between two real single-node clusters on this machine.

    python -m benchmarks throughput --quick             rate of one task at 100 B and 1 KB
    python -m benchmarks throughput --against FOLDER    the same for two alternating source trees
    python -m benchmarks throughput --startup           time to ready and memory

A copy that is not exact has no rate: the benchmark exits with code 1.
"""

import argparse
import json
import shlex
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.mirror import ROOT
from benchmarks.peers import DATA_PATHS
from benchmarks.rate import NotExactError, Plan, measure_rates, rate_rows
from benchmarks.startup import measure_startup, startup_rows
from eos_mirror.testing import KafkaCluster, Security, start_clusters

QUICK = {100: 4_000_000, 1_000: 1_200_000}
FULL = {100: 10_000_000, 1_000: 3_000_000}
"""Records by value size: enough for a few seconds of steady state at the measured rates."""

BROKERS = {"log.segment.delete.delay.ms": 1_000}
"""
Deleted copies free their memory soon, and the next copy uses it: on a virtual machine, fresh
memory is slow.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print the table, and return the exit code."""
    args = _parse(argv)
    command = shlex.join([Path(sys.executable).name, "-m", "benchmarks", *sys.argv[1:]])
    with tempfile.TemporaryDirectory() as folder, two_clusters() as (source, target):
        try:
            if args.startup:
                results = measure_startup(source, target, folder=Path(folder), args=args)
                lines = startup_rows(results, tasks_count=args.tasks)
            else:
                plan = Plan(
                    sizes=args.records or (QUICK if args.quick else FULL),
                    rounds=args.rounds,
                    trees=[ROOT, *([args.against.resolve()] if args.against else [])],
                    data_path=args.data_path,
                )
                results = measure_rates(source, target, folder=Path(folder), plan=plan)
                lines = rate_rows(results, plan)
        except NotExactError as exc:
            sys.stderr.write(f"{exc}\n")
            return 1
    print("\n".join([command, *lines]))
    if args.json:
        args.json.write_text(json.dumps({"command": command, "results": results}, indent=1) + "\n")
    return 0


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="benchmarks throughput", description=__doc__.split("\n\n")[0]
    )
    parser.add_argument("--quick", action="store_true", help="fewer records")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of each row (default 3)")
    parser.add_argument("--records", nargs="+", type=_size, action=_Sizes, metavar="BYTES=COUNT")
    parser.add_argument("--against", type=Path, metavar="FOLDER", help="another source tree")
    parser.add_argument("--data-path", choices=DATA_PATHS, help="data.path, if not the default")
    parser.add_argument("--startup", action="store_true", help="time to ready and memory")
    parser.add_argument("--tasks", type=int, default=1, help="with --startup (default 1)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every round")
    return parser.parse_args(argv)


def _size(text: str) -> tuple[int, int]:
    value_bytes, _, count = text.partition("=")
    return int(value_bytes), int(count)


class _Sizes(argparse.Action):
    """Collect BYTES=COUNT into a dictionary."""

    def __call__(  # type: ignore[override]  # the base class takes anything
        self,
        _parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: list[tuple[int, int]],
        _option: str | None = None,
    ) -> None:
        setattr(namespace, self.dest, dict(values))


@contextmanager
def two_clusters(
    *, security: Security = Security.PLAINTEXT, proxied: bool = False
) -> Iterator[tuple[KafkaCluster, KafkaCluster]]:
    """Start source and target, one node each, with the JVM settings of a server."""
    source, target = (
        KafkaCluster(
            name=name,
            fast_start=False,
            heap="1g",
            broker_config=BROKERS,
            security=security,
            proxied=proxied,
        )
        for name in ("source", "target")
    )
    start_clusters(source, target)
    try:
        yield source, target
    finally:
        source.stop()
        target.stop()
