"""Time to `ready`, and the memory of the process tree at that time and under load, by runtime."""

import argparse
import time
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from benchmarks.mirror import Mirror, running, write_config
from benchmarks.processes import cpu_s, descendants, tree_memory_mb
from benchmarks.records import PARTITIONS, fill
from benchmarks.steady import spread
from eos_mirror.core.flow import Flow
from eos_mirror.core.records import TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.kafka.groups import CommittedOffsets
from eos_mirror.testing import KafkaCluster

VALUE_BYTES = 100
LOAD_RECORDS = 4_000_000
LOADED_WITHIN = timedelta(minutes=5)
LOOK_EVERY_S = 0.5
RUNTIMES: Mapping[str, Mapping[str, object]] = {
    "local": {"runtime": "local"},
    "spark": {"runtime": "spark", "spark.master": "local[2]"},
}
Results = dict[str, list[dict[str, Any]]]


def measure_startup(
    source: KafkaCluster, target: KafkaCluster, *, folder: Path, args: argparse.Namespace
) -> Results:
    """Measure every round of every runtime; the runtimes alternate."""
    results: Results = {name: [] for name in RUNTIMES}
    path = {"data.path": args.data_path} if args.data_path else {}
    for number in range(args.rounds):
        for name, settings in RUNTIMES.items():
            flow, topic = Flow(f"{name}{number}", "t"), f"{name}-{number}"
            source.create_topic(topic, PARTITIONS)
            config = write_config(
                folder,
                flow,
                source=source,
                target=target,
                topic=topic,
                settings={**settings, **path, "tasks.max": args.tasks},
            )
            with running(config) as mirror:
                result = _start(mirror, tasks_count=args.tasks)
                fill(source, topic, count=LOAD_RECORDS, value_bytes=VALUE_BYTES)
                result["under_load_mb"] = _peak(mirror, target, flow=flow, topic=topic)
                if not mirror.stop():
                    raise RuntimeError(f"{flow} did not end well: {mirror.events[-5:]}")
            results[name].append(result)
            for cluster, used in ((source, topic), (target, f"{flow.source}.{topic}")):
                cluster.admin().delete_topics([used])[used].result(30)
    return results


def _start(mirror: Mirror, *, tasks_count: int) -> dict[str, Any]:
    (ready,) = mirror.wait_for("ready")
    driver = mirror.process.pid
    mirror.wait_for("task.started", count=tasks_count)
    return {
        "ready_s": ready.at - mirror.started_at,
        "cpu_s": sum(map(cpu_s, [driver, *descendants(driver)])),
        "at_ready_mb": _memory_mb(mirror),
    }


def _peak(
    mirror: Mirror, target: KafkaCluster, *, flow: Flow, topic: str
) -> dict[str, dict[str, float]]:
    """Sample until everything is copied, and return the sample with the largest tree."""
    shadow = CommittedOffsets(target.client_config(), flow.shadow_group, side=Side.TARGET)
    remotes = [TopicPartition(f"{flow.source}.{topic}", p) for p in range(PARTITIONS)]
    looks = [_memory_mb(mirror)]
    deadline = time.monotonic() + LOADED_WITHIN.total_seconds()
    while True:
        found = shadow.read(remotes)
        if sum(one.position.next_offset for one in found.values()) >= LOAD_RECORDS:
            return max(looks, key=lambda look: look["tree"]["pss"])
        if time.monotonic() > deadline:
            raise TimeoutError(f"{flow} did not copy {LOAD_RECORDS} in {LOADED_WITHIN}")
        time.sleep(LOOK_EVERY_S)
        looks.append(_memory_mb(mirror))


def _memory_mb(mirror: Mirror) -> dict[str, dict[str, float]]:
    memory = tree_memory_mb(mirror.process.pid, mirror.task_pids)
    return {role: used._asdict() for role, used in memory.items()}


def startup_rows(results: Results, *, tasks_count: int) -> list[str]:
    """Return the lines of the table."""
    lines = [
        f"{tasks_count} tasks; median (range); ready: from exec to the event; CPU: of the whole "
        f"tree until then; memory in MB (10^6 bytes): PSS, and the RSS of the tree, which counts "
        f"shared pages more than once; load: {LOAD_RECORDS} records of {VALUE_BYTES} B, the "
        "largest sample"
    ]
    for name, rounds in results.items():
        lines.append(
            f"{name}: n={len(rounds)}, ready {spread([r['ready_s'] for r in rounds], '.2f')} s, "
            f"CPU {spread([r['cpu_s'] for r in rounds], '.2f')} s"
        )
        for when in ("at_ready_mb", "under_load_mb"):
            memory = [
                f"{role} {spread([r[when][role]['pss'] for r in rounds])}"
                for role in rounds[0][when]
            ]
            rss = spread([r[when]["tree"]["rss"] for r in rounds])
            words = when.removesuffix("_mb").replace("_", " ")
            lines.append(f"  {words}: {', '.join(memory)}; RSS of the tree {rss}")
    return lines
