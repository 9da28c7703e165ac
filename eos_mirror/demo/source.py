"""
Writes the orders that the demo mirrors.

They have every shape that a careless copy would change, and come in transactions, of which some
are aborted. Kafka's own VerifiableProducer writes plain records to the same topic.
"""

import json
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from confluent_kafka import Producer

from eos_mirror.core.side import Side
from eos_mirror.kafka.errors import translated

TOPIC: Final = "orders"
PARTITIONS: Final = 4
TRANSACTION_RECORDS: Final = 1_000
LIVE_RECORDS: Final = 250
LIVE_PAUSE_S: Final = 0.1
ABORT_EVERY: Final = 8
"""One of this many transactions is aborted."""
SHAPES: Final = 21
"""Shares no factor with the number of partitions, so that every partition gets every shape."""
TIMEOUT_S: Final = 30.0
CUSTOMERS: Final = 997
JAVA_KEYS: Final = 1_000

Headers = list[tuple[str, str | bytes | None]]
"""Headers as the client takes them; none of our values is text."""


@dataclass(slots=True, kw_only=True)
class Written:
    """
    The records that brokers have acknowledged to producers.

    Attributes:
        committed: Records by partition, including those outside of transactions.
        aborted: Records of aborted transactions.
        commits: Number of committed transactions; `aborts` counts the aborted ones.
    """

    committed: Counter[int] = field(default_factory=Counter)
    aborted: int = 0
    commits: int = 0
    aborts: int = 0

    def __add__(self, other: "Written") -> "Written":
        return Written(
            committed=self.committed + other.committed,
            aborted=self.aborted + other.aborted,
            commits=self.commits + other.commits,
            aborts=self.aborts + other.aborts,
        )


class OrderWriter:
    """A transactional producer of orders. One thread at a time writes."""

    def __init__(self, bootstrap: str, *, name: str) -> None:
        """
        Args:
            name: Suffix of the transactional id, and prefix of every order's number.
        """
        self.written = Written()
        self._name = name
        self._next = 0
        with translated("start a producer of orders", side=Side.SOURCE):
            self._producer = Producer(
                {
                    "bootstrap.servers": bootstrap,
                    "transactional.id": f"demo-{name}",
                    "linger.ms": 5,
                    "queue.buffering.max.messages": 2 * TRANSACTION_RECORDS,
                    "log_level": 0,
                }
            )
            self._producer.init_transactions(TIMEOUT_S)

    def write(self, count: int, *, commit: bool) -> None:
        """
        Write one transaction. The records of an aborted one reach the log before the abort.

        Raises:
            MirrorError: The cluster refused a request or did not answer.
        """
        with translated("write orders", side=Side.SOURCE):
            written = self._send(count, commit=commit)
            if commit:
                self._producer.commit_transaction(TIMEOUT_S)
                self.written += Written(committed=written, commits=1)
            else:
                self._producer.flush(TIMEOUT_S)
                self._producer.abort_transaction(TIMEOUT_S)
                self.written += Written(aborted=count, aborts=1)

    def _send(self, count: int, *, commit: bool) -> Counter[int]:
        self._producer.begin_transaction()
        written: Counter[int] = Counter()
        now_ms = int(time.time() * 1000)
        for number in range(self._next, self._next + count):
            value, key, headers = order(self._name if commit else "ABORTED", number)
            partition = number % PARTITIONS
            self._producer.produce(TOPIC, value, key, partition, timestamp=now_ms, headers=headers)
            written[partition] += 1
        self._next += count
        return written


def order(name: str, number: int) -> tuple[bytes | None, bytes | None, Headers]:
    """
    Return value, key and headers of an order.

    Of every `SHAPES` orders one is a tombstone, and one each has no key, an empty key, an empty
    value, or difficult headers. Every order prints on one line without tabs.
    """
    key = b"customer-%d" % (number % CUSTOMERS)
    cents, note = number * 7919 % 100_000, "wie immer, ans Törchen"
    value = f'{{"order": "{name}-{number}", "cents": {cents}, "note": "{note}"}}'.encode()
    match number % SHAPES:
        case 0:
            return None, key, []
        case 1:
            return value, None, []
        case 2:
            return value, b"", []
        case 3:
            return b"", key, []
        case 4:
            return value, key, [("trace", b"1"), ("trace", b"2"), ("empty", b""), ("null", None)]
        case _:
            return value, key, []


def fill(writer: OrderWriter, records_count: int) -> None:
    """Write until this many records are committed; one of every few transactions is aborted."""
    while (committed := writer.written.committed.total()) < records_count:
        done = writer.written.commits + writer.written.aborts
        count = min(TRANSACTION_RECORDS, records_count - committed)
        writer.write(count, commit=(done + 1) % ABORT_EVERY != 0)


def keep_writing(writer: OrderWriter, stop: threading.Event) -> None:
    """Write small transactions, some of them aborted, until `stop` is set."""
    while not stop.is_set():
        done = writer.written.commits + writer.written.aborts
        writer.write(LIVE_RECORDS, commit=(done + 1) % ABORT_EVERY != 0)
        stop.wait(LIVE_PAUSE_S)


def verifiable_producer(records_count: int) -> list[str]:
    """Return arguments for Kafka's VerifiableProducer: plain records, no transactions."""
    keys = ("--repeating-keys", str(JAVA_KEYS))
    return ["--topic", TOPIC, "--max-messages", str(records_count), *keys]


def acknowledged(report: str) -> Written:
    """Count the records of a VerifiableProducer: it prints a line of JSON for each one."""
    events = (json.loads(line) for line in report.splitlines() if line.startswith("{"))
    sent = (event for event in events if event["name"] == "producer_send_success")
    return Written(committed=Counter(event["partition"] for event in sent))
