"""
Rate and memory of `verify`, between two real single-node clusters on this machine.

    python -m benchmarks verify                              2 million records of 1 KB
    python -m benchmarks verify --records 200000 4000000     memory by number of records

Spark local[2]. The rate counts the records of both sides. "side by side" is the pass over every
range. "one by one" is the pass over ranges that differ; here it reads every range again. "folded"
is `--folds`.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.mirror import running, write_config
from benchmarks.processes import tree_memory_mb
from benchmarks.records import PARTITIONS, fill
from eos_mirror.audit.digest import random_base
from eos_mirror.audit.extent import plan_extent
from eos_mirror.audit.plan import plan_topic
from eos_mirror.audit.ranges import Range, split_range
from eos_mirror.audit.spark import SparkPool
from eos_mirror.audit.worker import Unreadable, Work
from eos_mirror.core.flow import Flow
from eos_mirror.operate.verify import spark_for_audits
from eos_mirror.operate.verify_survey import Surveyor
from eos_mirror.runtime.spark import describe_failure, start_context
from eos_mirror.settings import clients
from eos_mirror.settings.load import load_settings
from eos_mirror.testing import KafkaCluster, start_clusters

LOOK_EVERY_S = 0.25
CHILD = "--of"


def main(argv: Sequence[str] | None = None) -> int:
    """Measure every pass, print the table, and return the exit code."""
    parser = argparse.ArgumentParser(prog="benchmarks verify", description=__doc__.split("\n\n")[0])
    parser.add_argument("--records", type=int, nargs="+", default=[2_000_000])
    parser.add_argument("--value-bytes", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=3, help="rounds of each row (default 3)")
    parser.add_argument(CHILD, dest="config", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.config:
        print(json.dumps(measure(args.config, args)))
        return 0
    print(shlex.join([Path(sys.executable).name, "-m", "benchmarks", *sys.argv[1:]]))
    print(
        f"{args.value_bytes} B values, {PARTITIONS} partitions, local[2]; "
        f"median (range) of {args.rounds} rounds; peak PSS of the whole tree, brokers not counted"
    )
    print(f"{'records':>10} {'pass':12} {'k rec/s':>18} {'MB':>8}")
    for count in args.records:
        with mirrored(count, args.value_bytes) as config:
            for name, one in _child(config, args).items():
                rates = [2 * count / seconds / 1_000 for seconds in one["seconds"]]
                shown = f"{median(rates):.0f} ({min(rates):.0f}-{max(rates):.0f})"
                print(f"{count:>10} {name:12} {shown:>18} {one['memory_mb']:>8.0f}", flush=True)
    return 0


@contextmanager
def mirrored(count: int, value_bytes: int) -> Iterator[Path]:
    """Mirror this many records; yield the configuration of the flow."""
    source, target = (
        KafkaCluster(name=name, fast_start=False, heap="1g") for name in ("source", "target")
    )
    start_clusters(source, target)
    try:
        with tempfile.TemporaryDirectory() as folder:
            source.create_topic("records", PARTITIONS)
            fill(source, "records", count=count, value_bytes=value_bytes)
            config = write_config(
                Path(folder),
                Flow("s", "t"),
                source=source,
                target=target,
                topic="records",
                settings={"runtime": "local", "tasks.max": 2, "verify.spark.master": "local[2]"},
            )
            with running(config, "--once") as mirror:
                if mirror.process.wait(600):
                    raise RuntimeError("the mirror failed")
            yield config
    finally:
        source.stop()
        target.stop()


def _child(config: Path, args: argparse.Namespace) -> dict[str, Any]:
    """Measure in a process of its own, whose memory is that of `verify` alone."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "benchmarks", "verify", CHILD, str(config)),
            *("--rounds", str(args.rounds)),
        ],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def measure(config: Path, args: argparse.Namespace) -> dict[str, Any]:
    """Return the seconds of each round and the peak memory, by pass."""
    settings = load_settings(config)
    (flow,) = settings.flows
    survey = Surveyor(flow).survey(lambda _: True)
    (standings,) = survey.copies.values()
    plan = plan_topic(standings, record_bytes=args.value_bytes)
    ranges = [
        part
        for one in standings
        for part in split_range(
            plan_extent(one).whole, one.offsets.translate, max_offsets=plan.max_offsets
        )
    ]
    work = Work(
        source=clients.source_admin(flow), target=clients.target_admin(flow), base=random_base()
    )
    context = start_context(spark_for_audits(settings.verify_spark or {}), app="benchmark")
    with closing(SparkPool(context, describe_failure=describe_failure)) as pool:
        passes: dict[str, Callable[[Range], object]] = {
            "side by side": work.match,
            "folded": work.fold,
            "one by one": work.examine,
        }
        return {name: _rounds(pool, act, ranges, args.rounds) for name, act in passes.items()}


def _rounds(
    pool: SparkPool, act: Callable[[Range], object], ranges: Sequence[Range], rounds: int
) -> dict[str, Any]:
    seconds = []
    with peak_memory() as peak:
        for _ in range(rounds):
            began = time.monotonic()
            for where, found in pool.map(act, ranges):
                if isinstance(found, Unreadable):
                    sys.exit(f"{where}: {found.reason}")
            seconds.append(time.monotonic() - began)
    return {"seconds": seconds, "memory_mb": max(peak)}


@contextmanager
def peak_memory() -> Iterator[list[float]]:
    """Sample the memory of this process and its descendants every quarter of a second."""
    seen = [0.0]
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(LOOK_EVERY_S):
            seen.append(tree_memory_mb(os.getpid(), ())["tree"].pss)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        ended.set()
        thread.join()
