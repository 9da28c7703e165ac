"""A steady load into the source, and a reader of the target that notes when records arrive."""

import threading
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from time import monotonic

from confluent_kafka import Consumer, Producer, TopicPartition

from eos_mirror.core.flow import Flow
from eos_mirror.testing import KafkaCluster

FLOW = Flow("A", "B")
TOPIC, PARTITIONS = "orders", 4
REMOTE = f"{FLOW.source}.{TOPIC}"
ALL = frozenset(range(PARTITIONS))
LOAD_EVERY_S, LOAD_RECORDS, VALUE = 0.02, 40, b"x" * 100
EAGER = {
    "fetch.wait.max.ms": 10,
    "fetch.error.backoff.ms": 10,
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 100,
    "retry.backoff.max.ms": 100,
    "topic.metadata.refresh.fast.interval.ms": 50,
}
"""Makes a reader find a new leader fast: its own pauses must not count as the mirror's."""


@contextmanager
def load(cluster: KafkaCluster) -> Iterator[None]:
    """Produce two thousand records a second to the source, round robin over the partitions."""
    producer = Producer({**cluster.client_config(), "linger.ms": 1})
    done = threading.Event()

    def run() -> None:
        while not done.wait(LOAD_EVERY_S):
            for i in range(LOAD_RECORDS):
                producer.produce(TOPIC, VALUE, partition=i % PARTITIONS)
            producer.poll(0)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        producer.flush(10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """A period, in monotonic seconds, in which no new record of a partition became visible."""

    began: float
    ended: float

    @property
    def length_s(self) -> float:
        """The length in seconds."""
        return self.ended - self.began


class Witness:
    """Reads the target as a read_committed consumer, and remembers when records arrived."""

    def __init__(self, cluster: KafkaCluster) -> None:
        self._arrivals: dict[int, list[float]] = {p: [] for p in ALL}
        self._done = threading.Event()
        self._consumer = Consumer(
            {
                **cluster.client_config(),
                **EAGER,
                "group.id": "witness",  # never joined
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "log_level": 0,  # a broker is killed on purpose
            }
        )
        self._consumer.assign([TopicPartition(REMOTE, p, 0) for p in ALL])
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop reading."""
        self._done.set()
        self._thread.join()
        self._consumer.close()

    def saw_since(self, since: float, partitions: Iterable[int] = ALL) -> bool:
        """Whether each of these partitions got a record since then."""
        return all(seen and seen[-1] > since for seen in map(self._arrivals.get, partitions))

    def first_since(self, since: float) -> float:
        """Return when every partition had received at least one record, in monotonic seconds."""
        return max(seen[bisect_right(seen, since)] for seen in self._arrivals.values())

    def longest_silence(
        self, partitions: Iterable[int], *, since: float, until: float
    ) -> Silence | None:
        """Return the longest silence of any partition, counted from `since` and up to `until`."""
        silences: list[Silence] = []
        for partition in partitions:
            seen = self._arrivals[partition]
            inside = seen[bisect_left(seen, since) : bisect_right(seen, until)]
            for began, ended in pairwise([since, *inside, until]):
                silences.append(Silence(began=began, ended=ended))
        return max(silences, key=lambda silence: silence.length_s, default=None)

    def _run(self) -> None:
        while not self._done.is_set():
            for message in self._consumer.consume(500, 0.01):
                partition = message.partition()
                if message.error() is None and partition is not None:
                    self._arrivals[partition].append(monotonic())
