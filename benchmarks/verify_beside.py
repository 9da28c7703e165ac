"""
What a proof takes from the mirror that it runs beside, between two real single-node clusters.

    python -m benchmarks verify-beside           20,000 records of 1 KB a second, for two minutes

Four phases of the same load: the mirror alone, beside `verify`, beside `verify --watch`, alone.
The proofs run on Spark local[2], the mirror with two local tasks. When the load has ended and
everything is mirrored, `verify` has to find every record.
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
    Attributes:
        offered: Records a second; `mirrored` likewise.
        behind_s: How old the load was that was just mirrored, at each look.
        said: The last line of the proof.
    """

    name: str
    seconds: float
    offered: float
    mirrored: float
    behind_s: Sequence[float]
    said: str = ""

    def row(self) -> str:
        """Of the table."""
        return (
            f"{self.name:18} {self.seconds:>4.0f} {self.offered:>9.0f} {self.mirrored:>9.0f}   "
            f"{spread(self.behind_s, '.2f'):<18} {self.said}"
        )


class Bench:
    """A mirror under load, and what is seen of it."""

    def __init__(self, config: Path, target: KafkaCluster, load: Load) -> None:
        self._config = config
        self._load = load
        self._shadow = CommittedOffsets(target.client_config(), FLOW.shadow_group, side=Side.TARGET)

    def mirrored(self) -> int:
        """The source has no transactions, so next offsets count records."""
        remotes = [TopicPartition(f"{FLOW.source}.{TOPIC}", p) for p in range(PARTITIONS)]
        return sum(one.position.next_offset for one in self._shadow.read(remotes).values())

    def phase(self, name: str, seconds: float, *arguments: str) -> Phase:
        """
        Look for so long, and, with arguments, until the proof has ended; `--watch` is told to.

        Raises:
            RuntimeError: The proof did not end with 0.
        """
        began, offered, mirrored = time.monotonic(), self._load.count, self.mirrored()
        proof = self.verify(*arguments) if arguments else None
        is_endless, behind = "--watch" in arguments, []
        while (is_early := time.monotonic() - began < seconds) or (proof and proof.poll() is None):
            if proof and is_endless and not is_early:
                proof.send_signal(signal.SIGTERM)  # a second one would end it at once
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
        """In a process of its own, as a user starts it."""
        return subprocess.Popen(
            [sys.executable, "-m", "eos_mirror.cli.main", "verify", self._config, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )


def _last_line(proof: "subprocess.Popen[str]") -> str:
    said, _ = proof.communicate(timeout=ENDED_WITHIN_S)
    if proof.returncode:
        raise RuntimeError(f"verify ended with {proof.returncode}: {said}")
    return said.splitlines()[-1]


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code."""
    parser = argparse.ArgumentParser(
        prog="benchmarks verify-beside", description=__doc__.split("\n\n")[0]
    )
    parser.add_argument("--rate", type=int, default=20_000, help="records a second")
    parser.add_argument("--value-bytes", type=int, default=1_000)
    parser.add_argument("--minutes", type=float, default=2.0, help="of load, at least")
    args = parser.parse_args(argv)
    print(shlex.join([Path(sys.executable).name, "-m", "benchmarks", *sys.argv[1:]]))
    print(f"{'beside':18} {'s':>4} {'offered':>9} {'mirrored':>9}   {'behind, s':<18} it says")
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
