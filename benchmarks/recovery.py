"""
How long a partition is silent after its task was killed, and after a restart of the whole run.

    python -m benchmarks.recovery --runtime local --kills 10

Two tasks, four partitions, about 2,000 records a second. A committed reader of the target notes
when records become visible; a kill is SIGKILL of a task's process at a random moment.
"""

import argparse
import os
import random
import signal
import statistics
import sys
import tempfile
import threading
from collections.abc import Mapping
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from time import monotonic

from confluent_kafka import Consumer, Producer, TopicPartition

from benchmarks.mirror import Mirror, write_config
from eos_mirror.core.claims import parse_claim
from eos_mirror.core.flow import Flow
from eos_mirror.kafka.compacted import read_compacted
from eos_mirror.testing import KafkaCluster, wait_until

FLOW = Flow("A", "B")
TOPIC, PARTITIONS = "orders", 4
REMOTE = f"{FLOW.source}.{TOPIC}"
SETTLE = timedelta(seconds=4)
WATCHED = timedelta(seconds=12)


class Load(threading.Thread):
    """Records, round robin over the partitions, until the process ends."""

    def __init__(self, cluster: KafkaCluster) -> None:
        super().__init__(daemon=True)
        self._producer = Producer({**cluster.client_config(), "linger.ms": 1})

    def run(self) -> None:
        """Forty records every 20 ms."""
        pause = threading.Event()
        while not pause.wait(0.02):
            for i in range(40):
                self._producer.produce(TOPIC, b"x" * 100, partition=i % PARTITIONS)
            self._producer.poll(0)


class Witness(threading.Thread):
    """Reads the target as a consumer does, and remembers the latest arrivals."""

    def __init__(self, cluster: KafkaCluster) -> None:
        super().__init__(daemon=True)
        self.arrivals: dict[int, list[float]] = {p: [] for p in range(PARTITIONS)}
        self._consumer = Consumer(
            {
                **cluster.client_config(),
                "group.id": "witness",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 10,
            }
        )
        self._consumer.assign([TopicPartition(REMOTE, p, 0) for p in range(PARTITIONS)])

    def run(self) -> None:
        """Until the process ends."""
        while True:
            for message in self._consumer.consume(500, 0.01):
                partition = message.partition()
                if message.error() is None and partition is not None:
                    self.arrivals[partition].append(monotonic())

    def longest_silence(self, partition: int, since: float, until: float) -> float:
        """Seconds without a record, the time from `since` to the first one included."""
        seen = [since, *(t for t in self.arrivals[partition] if since <= t <= until), until]
        return max(after - before for before, after in pairwise(seen))


def owned_by(target: KafkaCluster, pid: int) -> set[int]:
    """Partitions on which a process has a live claim."""
    entries = read_compacted(target.client_config(), FLOW.claims_topic, group=FLOW.shadow_group)
    claims = [parse_claim(key, value.decode()) for key, value in entries.items()]
    return {c.remote.partition for c in claims if c.host.endswith(f":{pid}")}


def newest_pids(mirror: Mirror) -> dict[int, int]:
    """Process of every task, as of its last start."""
    return {int(e.fields["task"]): int(e.fields["pid"]) for e in mirror.found("task.started")}


def measure_kill(
    mirror: Mirror, witness: Witness, target: KafkaCluster, dice: random.Random
) -> Mapping[str, float]:
    """Kill one task and watch."""
    pause(SETTLE + timedelta(seconds=dice.random()))
    pids = newest_pids(mirror)
    victim = dice.choice(sorted(pids))
    orphaned = owned_by(target, pids[victim])
    others = set(range(PARTITIONS)) - orphaned
    killed_at = monotonic()
    os.kill(pids[victim], signal.SIGKILL)
    pause(WATCHED)
    until = monotonic()
    return {
        "orphaned": max(
            (witness.longest_silence(p, killed_at, until) for p in orphaned), default=0.0
        ),
        "others": max((witness.longest_silence(p, killed_at, until) for p in others), default=0.0),
    }


def measure_restart(config: Path, mirror: Mirror, witness: Witness) -> tuple[float, Mirror]:
    """SIGTERM, start again at once; seconds from the start to a record on every partition."""
    mirror.stop()
    started_at = monotonic()
    again = Mirror(config)
    wait_until(
        lambda: all(times and times[-1] > started_at for times in witness.arrivals.values()),
        within=timedelta(seconds=60),
        what="records on every partition",
    )
    first = max(min(t for t in ts if t > started_at) for ts in witness.arrivals.values())
    return first - started_at, again


def pause(duration: timedelta) -> None:
    """Let time pass: it is what is measured here."""
    threading.Event().wait(duration.total_seconds())


def main() -> int:
    """Print one line per kill and restart, and the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runtime", choices=("local", "spark"), default="local")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--restarts", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    dice = random.Random(args.seed)
    source, target = KafkaCluster(name="source"), KafkaCluster(name="target")
    with source, target, tempfile.TemporaryDirectory() as folder:
        source.create_topic(TOPIC, PARTITIONS)
        config = write_config(
            Path(folder),
            FLOW,
            source=source,
            target=target,
            topic=TOPIC,
            settings={"runtime": args.runtime, "spark.master": "local[2]", "tasks.max": 2},
        )
        mirror = Mirror(config)
        try:
            mirror.wait_for("ready")
            Load(source).start()
            witness = Witness(target)
            witness.start()
            kills = [measure_kill(mirror, witness, target, dice) for _ in range(args.kills)]
            restarts = []
            for _ in range(args.restarts):
                pause(SETTLE)
                seconds, mirror = measure_restart(config, mirror, witness)
                restarts.append(seconds)
        finally:
            mirror.stop()
    print(f"runtime={args.runtime} kills={len(kills)} restarts={len(restarts)} seed={args.seed}")
    for name in ("orphaned", "others"):
        print_line(f"silence of {name} partitions after a kill, s", [k[name] for k in kills])
    print_line("restart to first record on every partition, s", restarts)
    return 0


def print_line(what: str, values: list[float]) -> None:
    """Median, range and count."""
    if values:
        print(
            f"{what:55} p50 {statistics.median(values):.2f}  min {min(values):.2f}  "
            f"max {max(values):.2f}  n={len(values)}"
        )


if __name__ == "__main__":
    sys.exit(main())
