"""A scratch topic to be mirrored once and deleted: it is filled, put under load, read, removed."""

import random
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from confluent_kafka import OFFSET_END, KafkaError, KafkaException, Producer
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AdminClient

from eos_mirror.core.side import Side
from eos_mirror.errors import MirrorError
from eos_mirror.kafka.client import new_admin, new_consumer, new_producer
from eos_mirror.kafka.deadline import PATIENCE
from eos_mirror.kafka.errors import translated

FLUSHED_WITHIN_S = 120.0
TICK_S = 0.01
FORGET_LOOK_S = 0.5
POOL_VALUES = 1_000
REPORTED_EVERY = 10_000
SEED = 1
BULK = {"batch.size": "900000", "linger.ms": "50", "batch.num.messages": "100000"}
PROMPT = {"linger.ms": "1"}


class ScratchTopic:
    """A scratch topic on the source. Used by one thread."""

    def __init__(
        self, config: Mapping[str, Any], topic: str, *, partitions: int, size: int
    ) -> None:
        """
        Args:
            config: Client settings for connection and security.
            size: Bytes of a value; values do not compress.
        """
        self._config = dict(config)
        self._topic = topic
        self._partitions = partitions
        chooser = random.Random(SEED)  # noqa: S311 - the same in every run
        self._values = [chooser.randbytes(size) for _ in range(POOL_VALUES)]

    def fill(self, count: int, *, on_progress: Callable[[int], None]) -> None:
        """
        Append records to the partitions, round-robin.

        Args:
            on_progress: Called now and then with the number of records so far.

        Raises:
            MirrorError: The cluster did not acknowledge all of them.
        """
        producer = new_producer({**self._config, **BULK})
        for number in range(count):
            self._produce(producer, number)
            if number % REPORTED_EVERY == 0:
                on_progress(number)
        self._flush(producer)
        on_progress(count)

    @contextmanager
    def under_load(self, rate: int) -> Iterator[None]:
        """Produce `rate` records a second while the block runs."""
        ended = threading.Event()

        def run() -> None:
            producer, began, count = new_producer({**self._config, **PROMPT}), time.monotonic(), 0
            while not ended.wait(TICK_S):
                due = int((time.monotonic() - began) * rate)
                for number in range(count, due):
                    self._produce(producer, number)
                count = due
                producer.poll(0)
            self._flush(producer)

        thread = threading.Thread(target=run, name="load", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _produce(self, producer: Producer, number: int) -> None:
        value = self._values[number % POOL_VALUES]
        while True:
            try:
                producer.produce(self._topic, value, b"%d" % number, number % self._partitions)
            except BufferError:
                producer.poll(0.1)
            else:
                return

    def _flush(self, producer: Producer) -> None:
        with translated(f"fill {self._topic}", side=Side.SOURCE):
            left = producer.flush(FLUSHED_WITHIN_S)
        if left:
            raise MirrorError(f"fill {self._topic}: {left} records were not acknowledged")


def ages_ms(
    config: Mapping[str, Any], topic: str, *, partitions: int, group: str, seconds: float
) -> list[float]:
    """
    Return the age of each record that a read_committed reader gets from now on.

    Args:
        group: Never joined.
        seconds: How long to read.

    Returns:
        Milliseconds between the timestamp of the record and its arrival.
    """
    consumer = new_consumer(
        {
            **config,
            "group.id": group,
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "fetch.queue.backoff.ms": "5",
        }
    )
    consumer.assign([ClientPartition(topic, p, OFFSET_END) for p in range(partitions)])
    found, deadline = [], time.monotonic() + seconds
    while time.monotonic() < deadline:
        first = consumer.poll(0.05)
        messages = [] if first is None else [first, *consumer.consume(1_000, 0)]
        now_ms = time.time() * 1_000
        found += [now_ms - one.timestamp()[1] for one in messages if one.error() is None]
    consumer.close()
    return found


def remove(
    config: Mapping[str, Any], topics: Collection[str], groups: Collection[str], *, within_s: float
) -> list[str]:
    """
    Delete those topics and groups that exist.

    Args:
        within_s: How long to wait for a group that still lists members that have left.

    Returns:
        Topics and groups that may still exist.
    """
    admin, left = new_admin(config), []
    there = set(admin.list_topics(timeout=PATIENCE.total_seconds()).topics) & set(topics)
    for topic, done in (admin.delete_topics(sorted(there)) if there else {}).items():
        try:
            done.result(PATIENCE.total_seconds())
        except KafkaException:
            left.append(topic)
    deadline = time.monotonic() + within_s
    return left + [group for group in groups if not _forgotten(admin, group, deadline)]


def _forgotten(admin: AdminClient, group: str, deadline: float) -> bool:
    """Delete a group and return True if it is gone; wait while it has members."""
    while True:
        try:
            admin.delete_consumer_groups([group])[group].result(PATIENCE.total_seconds())
        except KafkaException as exc:
            code = exc.args[0].code()
            if code == KafkaError.GROUP_ID_NOT_FOUND:
                return True
            if code != KafkaError.NON_EMPTY_GROUP or time.monotonic() > deadline:
                return False
            time.sleep(FORGET_LOOK_S)
        else:
            return True
