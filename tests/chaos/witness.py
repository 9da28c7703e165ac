"""A read_committed consumer of the copy, from the start of the run to its end."""

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from time import monotonic
from typing import Any, cast

from confluent_kafka import Consumer, KafkaError, Message
from confluent_kafka import TopicPartition as ClientPartition

from eos_mirror.core.records import TopicPartition
from eos_mirror.testing import KafkaCluster, Record, wait_until
from tests.chaos.site import PARTITIONS, SOURCES, remote

WITHIN = timedelta(seconds=60)
STATE = ("fetch_state", "broker", "next_offset", "ls_offset", "hi_offset", "fetchq_cnt")
"""What the client says of a partition that it did not read to its end."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A record, and the monotonic time in seconds at which it was read."""

    at: float
    record: Record


class Witness:
    """Reads every remote partition once, from start to end."""

    def __init__(self, cluster: KafkaCluster) -> None:
        self.seen: dict[TopicPartition, list[Seen]] = {remote(one): [] for one in SOURCES}
        self.complaints: list[str] = []
        self._cluster = cluster
        self._stats: Mapping[str, Any] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="witness", daemon=True)

    def start(self) -> None:
        """Read from offset 0, once the remote topics exist."""
        self._thread.start()

    def finish(self, ends: Mapping[TopicPartition, Sequence[Record]]) -> None:
        """
        Keep reading until the last record of every partition was seen, then stop.

        Raises:
            TimeoutError: A last record was not seen in time.
        """
        wanted = {one: records[-1].offset for one, records in ends.items() if records}
        try:
            wait_until(
                lambda: all(self._last(one) >= offset for one, offset in wanted.items()),
                within=WITHIN,
                what=f"the concurrent reader to see {wanted}",
            )
        except TimeoutError:
            late = [one for one, offset in wanted.items() if self._last(one) < offset]
            self.complaints += [
                f"{one}: the client of the reader is at {self._at(one)}" for one in late
            ]
            raise
        finally:
            self.close()

    def close(self) -> None:
        """Stop reading."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(10)

    def _last(self, one: TopicPartition) -> int:
        seen = self.seen[one]
        return seen[-1].record.offset if seen else -1

    def _at(self, one: TopicPartition) -> dict[str, object]:
        """Return what the client itself last said of a partition."""
        topic = self._stats.get("topics", {}).get(one.topic, {})
        found = topic.get("partitions", {}).get(str(one.partition), {})
        return {name: found.get(name) for name in STATE}

    def _note(self, stats: str) -> None:
        self._stats = json.loads(stats)

    def _run(self) -> None:
        consumer = Consumer(
            {
                **self._cluster.client_config(),
                "group.id": "chaos-witness",  # never joined
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "fetch.wait.max.ms": 50,
                "log_level": 0,
                "statistics.interval.ms": 5_000,
                "stats_cb": self._note,
            }
        )
        try:
            self._wait_for_topics(consumer)
            consumer.assign([ClientPartition(*one, 0) for one in self.seen])
            while not self._stop.is_set():
                for message in consumer.consume(500, 0.05):
                    self._take(message)
        finally:
            consumer.close()

    def _wait_for_topics(self, consumer: Consumer) -> None:
        names = {remote(one).topic for one in SOURCES}

        def known() -> bool:
            topics = consumer.list_topics(timeout=10).topics
            return self._stop.is_set() or names <= topics.keys()

        wait_until(known, within=WITHIN, what=f"{len(PARTITIONS)} remote topics")

    def _take(self, message: Message) -> None:
        error = message.error()
        if error is None:
            one = TopicPartition(str(message.topic()), int(message.partition() or 0))
            self.seen[one].append(Seen(monotonic(), _record(message)))
        elif error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError._LOG_TRUNCATION):  # noqa: SLF001 (their public names)
            self.complaints.append(
                f"{message.topic()}-{message.partition()}: the reader lost its place: {error}"
            )


def _record(message: Message) -> Record:
    headers = cast("list[tuple[str, bytes | None]]", message.headers() or [])
    return Record(
        key=message.key(),
        value=message.value(),
        headers=tuple(headers),
        timestamp=message.timestamp(),
        offset=message.offset() or 0,
    )
