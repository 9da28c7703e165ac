"""Reads a copy as an application does, and measures the age of records on arrival."""

import time
from collections.abc import Iterator
from typing import Any

from confluent_kafka import Consumer, Message, TopicPartition

from benchmarks.peers import PeerFailedError
from eos_mirror.testing import KafkaCluster

FIRST_WITHIN_S = 90.0
LOOK_EVERY_S = 0.02


class Reader:
    """Reads the copy from its start."""

    def __init__(self, target: KafkaCluster, remote: str, *, partitions: int) -> None:
        self._target = target
        self._remote = remote
        self._partitions = partitions
        self._complaint = ""
        self._consumer = Consumer(
            {
                **target.client_config(),
                "group.id": "eos-mirror-benchmark",  # never joined, never committed
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 500,
                "fetch.queue.backoff.ms": 5,
            }
        )

    def wait_for_the_first(self, process: Any) -> None:
        """Wait until the copy exists and its first record has arrived."""
        deadline = time.monotonic() + FIRST_WITHIN_S
        while self._remote not in self._target.admin().list_topics(timeout=10).topics:
            self._go_on(process, deadline)
            time.sleep(LOOK_EVERY_S)
        self._consumer.assign([TopicPartition(self._remote, p, 0) for p in range(self._partitions)])
        while not self._records(1, 0.02):
            self._go_on(process, deadline)

    def wait_for_more(self, process: Any) -> None:
        """Wait until another record arrives."""
        deadline = time.monotonic() + FIRST_WITHIN_S
        while not self._records(1, 0.02):
            self._go_on(process, deadline)

    def _go_on(self, process: Any, deadline: float) -> None:
        if process.poll() is not None or time.monotonic() > deadline:
            raise PeerFailedError(f"{self._remote}: nothing arrived{self._complaint}")

    def latencies(self, seconds: float) -> Iterator[float]:
        """Yield the latency in ms of each record that arrives in the next `seconds`."""
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            first = self._records(1, 0.05)
            if not first:
                continue
            messages = [*first, *self._records(1_000, 0)]
            now_ms = time.time() * 1_000
            for message in messages:
                yield now_ms - message.timestamp()[1]

    def _records(self, most: int, wait_s: float) -> list[Message]:
        """Return up to `most` records; the client's own error events are not records."""
        messages = self._consumer.consume(most, wait_s)
        for message in messages:
            if (error := message.error()) is not None:
                self._complaint = f" ({error.name()}: {error.str()})"
        return [message for message in messages if message.error() is None]

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()
