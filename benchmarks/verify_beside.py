"""
How much `verify` slows a mirror that runs at the same time, between two single-node clusters.

    python -m benchmarks verify-beside           20,000 records of 1 KB a second, for two minutes

Four phases under the same load: the mirror alone, with `verify`, with `verify --watch`, and alone
again. `verify` runs on Spark local[2], the mirror with two local tasks. When the load has stopped
and everything is mirrored, `verify` must find every record.
"""

import argparse
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from benchmarks.load import Load
from benchmarks.mirror import running, write_config
from benchmarks.records import PARTITIONS
from benchmarks.steady import spread
from eos_mirror.core.flow import Flow
from eos_mirror.core.records import TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.kafka.groups import CommittedOffsets
from eos_mirror.testing import KafkaCluster, start_clusters, wait_until

FLOW, TOPIC = Flow("s", "t"), "records"
LOOK_EVERY_S = 0.5
ENDED_WITHIN_S = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """
    The mirror under load, with or without `verify`.

    Attributes:
        offered: Records a second that were produced.
        mirrored: Records a second that were mirrored.
        behind_s: Lag of the mirror in seconds of load, at each sample.
        said: The last line that `verify` printed.
    """

    name: str
    seconds: float
    offered: float
    mirrored: float
    behind_s: Sequence[float]
    said: str = ""

    def row(self) -> str:
        """Return the row of the table."""
        return (
            f"{self.name:18} {self.seconds:>4.0f} {self.offered:>9.0f} {self.mirrored:>9.0f}   "
            f"{spread(self.behind_s, '.2f'):<18} {self.said}"
        )


class Bench:
    """A mirror under load, and the measurements of it."""

    def __init__(self, config: Path, target: KafkaCluster, load: Load) -> None:
        self._config = config
        self._load = load
        self._shadow = CommittedOffsets(target.client_config(), FLOW.shadow_group, side=Side.TARGET)

    def mirrored(self) -> int:
        """Sum the next offsets; the source has no transactions, so they count records."""
        remotes = [TopicPartition(f"{FLOW.source}.{TOPIC}", p) for p in range(PARTITIONS)]
        return sum(one.position.next_offset for one in self._shadow.read(remotes).values())

    def phase(self, name: str, seconds: float, *arguments: str) -> Phase:
        """
        Sample for this long; with arguments, also until `verify` exits.

        `verify --watch` runs until it gets SIGTERM.

        Raises:
            RuntimeError: `verify` did not exit with 0.
        """
        began, offered, mirrored = time.monotonic(), self._load.count, self.mirrored()
        proof = self.verify(*arguments) if arguments else None
        is_endless, behind = "--watch" in arguments, []
        while (is_early := time.monotonic() - began < seconds) or (proof and proof.poll() is None):
            if proof and is_endless and not is_early:
                proof.send_signal(signal.SIGTERM)  # a second one would kill verify
                is_endless = False
            time.sleep(LOOK_EVERY_S)
            behind.append((self._load.count - self.mirrored()) / self._load.rate)
        lasted = time.monotonic() - began
        offered, mirrored = self._load.count - offered, self.mirrored() - mirrored
        return Phase(
            name=name,
            seconds=lasted,
            offered=offered / lasted,
            mirrored=mirrored / lasted,
            behind_s=behind,
            said=_last_line(proof) if proof else "",
        )

    def verify(self, *arguments: str) -> subprocess.Popen[str]:
        """Start `verify` in a process of its own, as a user does."""
        return subprocess.Popen(
            [sys.executable, "-m", "eos_mirror.cli.main", "verify", self._config, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )


def _last_line(proof: "subprocess.Popen[str]") -> str:
    said, _ = proof.communicate(timeout=ENDED_WITHIN_S)
    if proof.returncode:
        raise RuntimeError(f"verify exited with {proof.returncode}: {said}")
    return said.splitlines()[-1]


def main(argv: Sequence[str] | None = None) -> int:
    """Measure every phase, print the table, and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="benchmarks verify-beside", description=__doc__.split("\n\n")[0]
    )
    parser.add_argument("--rate", type=int, default=20_000, help="records a second")
    parser.add_argument("--value-bytes", type=int, default=1_000)
    parser.add_argument("--minutes", type=float, default=2.0, help="least duration of the load")
    args = parser.parse_args(argv)
    print(shlex.join([Path(sys.executable).name, "-m", "benchmarks", *sys.argv[1:]]))
    print(f"{'with':18} {'s':>4} {'offered':>9} {'mirrored':>9}   {'lag, s':<18} result")
    source, target = (
        KafkaCluster(name=name, fast_start=False, heap="1g") for name in ("source", "target")
    )
    start_clusters(source, target)
    try:
        with tempfile.TemporaryDirectory() as folder:
            _measure(source, target, Path(folder), args)
    finally:
        source.stop()
        target.stop()
    return 0


def _measure(
    source: KafkaCluster, target: KafkaCluster, folder: Path, args: argparse.Namespace
) -> None:
    source.create_topic(TOPIC, PARTITIONS)
    settings = {
        "runtime": "local",
        "tasks.max": 2,
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
    }
    config = write_config(
        folder, FLOW, source=source, target=target, topic=TOPIC, settings=settings
    )
    load = Load(source, TOPIC, partitions=PARTITIONS, rate=args.rate, value_bytes=args.value_bytes)
    bench = Bench(config, target, load)
    each_s = args.minutes * 60 / 4
    phases = (
        ("nothing", ()),
        ("verify", (str(FLOW),)),
        ("verify --watch", (str(FLOW), "--watch")),
        ("nothing", ()),
    )
    with running(config) as mirror:
        mirror.wait_for("ready")
        with load.running():
            for name, arguments in phases:
                print(bench.phase(name, each_s, *arguments).row(), flush=True)
        wait_until(
            lambda: bench.mirrored() == load.count,
            within=timedelta(seconds=60),
            what="everything to be mirrored",
        )
        print(f"{load.count} records in all: {_last_line(bench.verify(str(FLOW)))}")
        if not mirror.stop():
            raise RuntimeError(f"the mirror did not end well: {mirror.events[-5:]}")
