"""The test setup: two clusters, a proxy before every target broker, topics, a configuration."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from eos_mirror.core.flow import Flow
from eos_mirror.core.records import TopicPartition
from eos_mirror.testing import FaultProxy, KafkaCluster, fault_proxies, start_clusters
from eos_mirror.testing.releases import chosen_release
from eos_mirror.wire.parts import PART_RECORDS
from tests.mirror.toolbox import FlowView, write_config

FLOW = Flow("A", "B")
PLAIN, LEDGER, COMPACTED, QUIET = "chaos-plain", "chaos-ledger", "chaos-compacted", "chaos-quiet"
PICKY, SMALL, LONELY = "chaos-picky", "chaos-small", "chaos-lonely"
"""
The copy of the first refuses records for a while; that of the second accepts only small batches;
that of the third has one replica.
"""

DOOMED = "chaos-doomed"
"""Its copy is deleted, so it is not compared."""

PARTITIONS: Mapping[str, int] = {
    PLAIN: 3, LEDGER: 2, COMPACTED: 2, QUIET: 1, PICKY: 2, SMALL: 1, LONELY: 1,
}  # fmt: skip
SOURCES = tuple(TopicPartition(t, p) for t, count in PARTITIONS.items() for p in range(count))
BUSY = tuple(one for one in SOURCES if one.topic in (PLAIN, LEDGER, COMPACTED))
"""Partitions that always have records to mirror, and whose records are never refused."""

SMALL_BYTES = 4_000
LONELY_NODE = 3
"""The broker of the target that has the only replica of the lonely copy."""

POINTS = ("begun", "flushed", "committed")
TASKS = 3
BATCH_RECORDS, POLL_RECORDS = 500, PART_RECORDS
"""
With at least once, a batch ends with the poll that fills it. Batches of the source are small here.
"""

AT_LEAST_ONCE = {"transaction_producer": "false", "transaction_boundary_records": BATCH_RECORDS}

SESSION_S = 6.0
SAFE_REPLICATION = 3

SOURCE_CONFIG = {
    "log.cleaner.backoff.ms": 1000,
    # A lone broker that is fenced because of a pause can forget to write markers (KAFKA-20734).
    "broker.session.timeout.ms": 60_000,
}
COMPACTION = {
    "cleanup.policy": "compact",
    "segment.ms": "3000",
    "min.cleanable.dirty.ratio": "0.01",
    "max.compaction.lag.ms": "3000",
    "delete.retention.ms": "1000",
}


SOURCE_TOPICS = {
    COMPACTED: COMPACTION,
    SMALL: {"max.message.bytes": str(SMALL_BYTES)},
}
"""Configuration of the source topics that differ from the defaults."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """
    Two running clusters and the configuration of the mirror.

    Attributes:
        exactly_once: Whether the mode is exactly once; otherwise it is at least once.
        proxies: Proxy by broker of the target; the mirror reaches the brokers only through them.
        folder: Holds the configuration and the flags of named points.
    """

    source: KafkaCluster
    target: KafkaCluster
    proxies: Mapping[int, FaultProxy]
    folder: Path
    config: Path
    replication: int
    exactly_once: bool = True

    @property
    def view(self) -> FlowView:
        """A view of the flow that bypasses the proxies."""
        return FlowView(FLOW, self.source, self.target)

    def flag(self, point: str) -> Path:
        """Return the path of the file that makes a task stop itself at this point."""
        return self.folder / f"stop-at-{point}"

    @property
    def pause_at(self) -> str:
        """The points at which tasks stop themselves; see `eos_mirror/testing/entry.py`."""
        return ",".join(f"{point}@{self.flag(point)}" for point in POINTS)


def remote(partition: TopicPartition) -> TopicPartition:
    """Return the remote partition of a source partition."""
    return TopicPartition(f"{FLOW.source}.{partition.topic}", partition.partition)


@contextmanager
def open_site(
    folder: Path,
    *,
    replication: int,
    runtime: str,
    transactions: int = 2,
    exactly_once: bool = True,
    more: Mapping[str, object] = MappingProxyType({}),
) -> Iterator[Site]:
    """
    Start everything except the mirror; stop it at the end of the block.

    Args:
        transactions: `transaction.version` of the target.
        more: Further lines of the configuration.
    """
    source = KafkaCluster(name="source", broker_config=SOURCE_CONFIG)
    target = KafkaCluster(
        replication,
        name="target",
        controllers="separate" if replication > 1 else "combined",
        proxied=True,
        features=chosen_release().features_for(transactions),
    )
    try:
        start_clusters(source, target)
        for topic, count in {**PARTITIONS, DOOMED: 1}.items():
            source.create_topic(topic, count, config=SOURCE_TOPICS.get(topic))
        if replication > 1:
            _create_lonely(target)
        config = _write(
            folder,
            source,
            target,
            replication=replication,
            runtime=runtime,
            more=more if exactly_once else {**AT_LEAST_ONCE, **more},
        )
        with fault_proxies(target.proxy_ports) as proxies:
            yield Site(
                source=source,
                target=target,
                proxies=proxies,
                folder=folder,
                config=config,
                replication=replication,
                exactly_once=exactly_once,
            )
    finally:
        source.stop()
        target.stop()


def _create_lonely(target: KafkaCluster) -> None:
    """Create a copy that has no leader while one broker is away."""
    target.tool(
        "TopicCommand", "--create", "--topic", remote(TopicPartition(LONELY, 0)).topic,
        "--replica-assignment", str(LONELY_NODE), "--config", "min.insync.replicas=1",
    )  # fmt: skip


def _write(
    folder: Path,
    source: KafkaCluster,
    target: KafkaCluster,
    *,
    replication: int,
    runtime: str,
    more: Mapping[str, object],
) -> Path:
    config = write_config(
        folder,
        flow=FLOW,
        source=source,
        target=target,
        topics="chaos-.*",
        replication_factor=replication,
        internal_topic_replication_factor=replication,
        runtime=runtime,
        spark_master=f"local[{TASKS}]",
        tasks_max=TASKS,
        session_timeout_ms=int(SESSION_S * 1000),
        transaction_boundary_interval_ms=100,
        summary_interval_seconds=1,
        **more,
    )
    config.write_text(config.read_text().replace(target.bootstrap, target.proxied_bootstrap))
    return config
