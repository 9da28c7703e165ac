"""
The cost of many topics and many groups, when nothing has changed and when everything has.

    python -m benchmarks scale groups --groups 1000 --partitions 20
    python -m benchmarks scale topics --topics 2000
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from benchmarks.mirror import running, write_config
from benchmarks.throughput import two_clusters
from eos_mirror.core.flow import Flow
from eos_mirror.core.records import Position, TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.driver.flow import FlowRunner
from eos_mirror.kafka.group_offsets import GroupOffsets
from eos_mirror.ports import GroupOffset
from eos_mirror.settings import load_settings
from eos_mirror.testing import KafkaCluster

FLOW = Flow("a", "b")
RECORDS = 1_000
"""Records in each partition."""

CREATED_AT_ONCE = 500


def main(argv: Sequence[str] | None = None) -> int:
    """Measure what the verb names, and return the exit code."""
    parser = argparse.ArgumentParser(prog="benchmarks scale", description=__doc__)
    verbs = parser.add_subparsers(required=True)
    groups = verbs.add_parser("groups", help="rounds over the groups of the source")
    groups.add_argument("--groups", type=int, default=1_000)
    groups.add_argument("--partitions", type=int, default=20, help="offsets of each group")
    groups.add_argument("--rounds", type=int, default=5)
    groups.set_defaults(measure=measure_groups)
    topics = verbs.add_parser("topics", help="checks of the topics of the source")
    topics.add_argument("--topics", type=int, default=2_000)
    topics.add_argument("--rounds", type=int, default=5)
    topics.set_defaults(measure=measure_topics)
    args = parser.parse_args(argv)
    measure: Callable[..., None] = args.measure
    with tempfile.TemporaryDirectory() as folder, two_clusters() as (source, target):
        measure(args, Path(folder), source, target)
    return 0


def measure_groups(
    args: argparse.Namespace, folder: Path, source: KafkaCluster, target: KafkaCluster
) -> None:
    """
    Measure rounds over the groups: the first, some without changes, and some after new commits.

    Every group has an offset in every partition.
    """
    source.create_topic("orders", args.partitions)
    producer = Producer(source.client_config())
    for number in range(args.partitions * RECORDS):
        producer.produce("orders", b"x", partition=number % args.partitions)
    producer.flush(60)
    names = [f"group-{number}" for number in range(args.groups)]
    offsets = GroupOffsets(source.client_config(), side=Side.SOURCE)
    _commit(offsets, names, args.partitions, 100)
    settings: dict[str, object] = {
        "runtime": "local",
        "emit.checkpoints.enabled": "true",
        "emit.checkpoints.interval.seconds": 1,
        "checkpoints.topic.replication.factor": 1,
        "sync.group.offsets.enabled": "true",
        "sync.group.offsets.interval.seconds": 1,
    }
    config = write_config(
        folder, FLOW, source=source, target=target, topic="orders", settings=settings
    )
    with running(config) as mirror:
        _show(mirror.wait_for("checkpoints.emitted", count=args.rounds)[0].fields, "first")
        for event in mirror.found("checkpoints.emitted")[1:]:
            _show(event.fields, "unchanged")
        heard = len(mirror.found("checkpoints.emitted"))
        _commit(offsets, names, args.partitions, 500)
        for event in mirror.wait_for("checkpoints.emitted", count=heard + 2)[heard:]:
            _show(event.fields, "while all groups commit")
        mirror.stop()


def _commit(offsets: GroupOffsets, names: Sequence[str], partitions: int, offset: int) -> None:
    theirs = {
        TopicPartition("orders", number): GroupOffset(position=Position(offset, None), metadata="")
        for number in range(partitions)
    }
    if offsets.write(dict.fromkeys(names, theirs)) != set(names):
        raise RuntimeError(f"not committed: {offsets.refused}")


def _show(fields: object, what: str) -> None:
    print(f"{what}: {fields}", flush=True)


def measure_topics(
    args: argparse.Namespace, folder: Path, source: KafkaCluster, target: KafkaCluster
) -> None:
    """Measure a check of the topics and one of their configuration when nothing has changed."""
    names = [f"topic-{number}" for number in range(args.topics)]
    for start in range(0, len(names), CREATED_AT_ONCE):
        some = [NewTopic(name, 1, 1) for name in names[start : start + CREATED_AT_ONCE]]
        for answer in source.admin().create_topics(some).values():
            answer.result(120)
    config = write_config(folder, FLOW, source=source, target=target, topic=".*", settings={})
    runner = FlowRunner(load_settings(config).flows[0], on_event=lambda _name, _fields: None)
    _timed("check", runner.check)
    _timed("create on the target", runner.prepare)
    for _ in range(args.rounds):
        _timed("check the topics", runner.topics.follow)
    for _ in range(args.rounds):
        _timed("check their configuration", runner.topics.follow_configs)


def _timed(what: str, act: Callable[[], object]) -> None:
    began = time.monotonic()
    act()
    print(f"{what}: {time.monotonic() - began:.2f} s", flush=True)
