"""Takes what a fetcher returns, and checks that nothing is lost or repeated."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from eos_mirror.core.records import DecodedRun, Position, RecordRun, TopicPartition
from eos_mirror.errors import PartitionStopped
from eos_mirror.ports import Polled
from eos_mirror.testing.waiting import wait_until
from eos_mirror.wire.cluster import Cluster
from eos_mirror.wire.connection import wait_for
from eos_mirror.wire.fetcher import Fetcher, FetchSettings
from eos_mirror.wire.security import PLAINTEXT
from tests.wire.fetch_broker import FetchBroker, Log

WITHIN = timedelta(seconds=20)
ORDERS = TopicPartition("orders", 0)
SETTINGS = FetchSettings(wait_ms=10, answered_within_s=0.3, partition_bytes=200)


def fetcher_of(*brokers: FetchBroker) -> Fetcher:
    """Return a fetcher that knows these brokers."""
    bootstrap = ",".join(one.broker.bootstrap for one in brokers)
    return Fetcher(Cluster(bootstrap, PLAINTEXT, client_id="test"), SETTINGS)


@contextmanager
def reading(partitions: int = 1, **more: Any) -> Iterator[tuple[Fetcher, FetchBroker]]:
    """Yield a fetcher, and a broker with the topic `orders`."""
    source = FetchBroker(**more)
    source.add_topic("orders", partitions)
    with source.broker:
        fetcher = fetcher_of(source)
        try:
            yield fetcher, source
        finally:
            fetcher.close()


class Reader:
    """
    Takes what a fetcher returns, and checks that each partition is dense from its start on.

    Attributes:
        at: Next offset expected, by partition.
        ends: What was reported since the start, by partition.
    """

    def __init__(self, fetcher: Fetcher) -> None:
        self._fetcher = fetcher
        self.at: dict[TopicPartition, int] = {}
        self.ends: dict[TopicPartition, list[int]] = {}
        self.faults: dict[TopicPartition, PartitionStopped] = {}
        self.polls = 0

    def start(self, positions: Mapping[TopicPartition, int], epoch: int | None = None) -> None:
        """Start partitions."""
        self._fetcher.start({p: Position(at, epoch) for p, at in positions.items()})
        self.at.update(positions)
        self.ends.update({p: [] for p in positions})

    def stop(self, partitions: Sequence[TopicPartition]) -> None:
        """Stop partitions."""
        self._fetcher.stop(partitions)
        for partition in partitions:
            self.at.pop(partition, None)

    def poll(self) -> Polled | None:
        """Take one answer, and wait a moment if there is none."""
        self.polls += 1
        polled = self._fetcher.take()
        if polled is None:
            wait_for(self._fetcher.connections, until=time.monotonic() + 0.005)
            return None
        for run in polled.runs:
            for first, count in [(one[0], one[1]) for one in offsets_of(run)]:
                assert first == self.at[run.partition], f"{run.partition}: lost or repeated"
                self.at[run.partition] += count
        for partition, end in polled.ends.items():
            assert end == self.at[partition], f"{partition}: an end elsewhere"
            self.ends[partition].append(end)
        self.faults.update(polled.faults)
        return polled

    def read_to(self, ends: Mapping[TopicPartition, int]) -> None:
        """Read until partitions are read to these offsets, and their ends were reported."""

        def done() -> bool:
            self.poll()
            return all(self.at[p] == end and end in self.ends.get(p, ()) for p, end in ends.items())

        wait_until(done, within=WITHIN, what=f"{ends} to be read, not {self.at}")

    def read_to_fault(self, partition: TopicPartition) -> str:
        """Read until a partition has a fault."""

        def done() -> bool:
            self.poll()
            return partition in self.faults

        wait_until(done, within=WITHIN, what=f"a fault of {partition}")
        return str(self.faults[partition])


def offsets_of(run: RecordRun) -> list[tuple[int, int]]:
    """Return the first offset and the number of records, of each stretch."""
    if isinstance(run, DecodedRun):
        return [(offset, 1) for offset in run.offsets]
    return [(int(one[0]), int(one[1])) for one in run.stretches()]


def filled(source: FetchBroker, partition: TopicPartition, *, batches: int = 5) -> Log:
    """Append batches to a partition's log, and return it."""
    log = source.logs[source.broker.topics[partition.topic][0], partition.partition]
    for _ in range(batches):
        log.append(3)
    return log
