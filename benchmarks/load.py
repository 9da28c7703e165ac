"""A steady load, produced by a thread of its own."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

from confluent_kafka import Producer

from benchmarks.records import SEED
from eos_mirror.testing import KafkaCluster

TICK_S = 0.01
POOL_VALUES = 1_000
ERRORS = 3
"""librdkafka's log level: at lower severity it warns of every partition of a new topic."""


class Load:
    """Produces `rate` records a second, round robin over the partitions."""

    def __init__(
        self,
        cluster: KafkaCluster,
        topic: str,
        *,
        partitions: int,
        rate: int,
        value_bytes: int,
        linger_ms: int = 5,
    ) -> None:
        self._producer = Producer(
            {**cluster.client_config(), "linger.ms": linger_ms, "log_level": ERRORS}
        )
        self._topic = topic
        self._partitions = partitions
        self.rate = rate
        chooser = Random(SEED)
        self._values = [chooser.randbytes(value_bytes) for _ in range(POOL_VALUES)]
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.count = 0

    def _run(self) -> None:
        began = time.monotonic()
        tick_s = min(TICK_S, 1 / self.rate)
        while not self._ended.wait(tick_s):
            due = int((time.monotonic() - began) * self.rate)
            for number in range(self.count, due):
                value = self._values[number % POOL_VALUES]
                key, partition = b"%d" % number, number % self._partitions
                self._producer.produce(self._topic, value, key, partition)
            self.count = due
            self._producer.poll(0)
        if left := self._producer.flush(60):
            raise RuntimeError(f"{left} records were not acknowledged in 60 s")

    @contextmanager
    def running(self) -> Iterator[None]:
        """Produce until the block ends; all records are then acknowledged."""
        self._thread.start()
        try:
            yield
        finally:
            self.end()

    def end(self) -> None:
        """Stop producing; all records are then acknowledged. A second call does nothing."""
        self._ended.set()
        self._thread.join()
