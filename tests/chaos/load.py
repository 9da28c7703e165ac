"""Produces records to the source, and remembers which of them it acknowledged."""

import logging
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from eos_mirror.core.records import TopicPartition
from eos_mirror.testing import KafkaCluster, Record
from tests.chaos.site import (
    COMPACTED,
    DOOMED,
    LEDGER,
    LONELY,
    PARTITIONS,
    PICKY,
    PLAIN,
    QUIET,
    SMALL,
    SMALL_BYTES,
    SOURCES,
)

NUMBER = "n"
"""Header that numbers every record; tombstones have no value to carry it."""

TICK_S = 0.02
PLAIN_PER_TICK, COMPACTED_PER_TICK = 18, 6
ODD = (PICKY, PICKY, PICKY, SMALL, SMALL, SMALL, LONELY, DOOMED)
"""Topics with unusual copies; each entry gets one record per tick."""
KEYS = 300
SHARE_ABORTED, SHARE_QUIET, SHARE_PLAIN = 0.25, 0.02, 0.1
CREATE_TIME = 1
JOIN_S, ANSWER_MS = 60.0, 10_000
"""
A request times out early enough to be repeated before the load must end: by default a client waits
60 s for one response.
"""
SUSPICIOUS_S = 0.25
LAST_LINES = 80
"""Of a client's log, in the report of a load that is stuck."""
WRITER, SETTLE_ATTEMPTS = "chaos-ledger-writer", 6

Delivery = Callable[[KafkaError | None, Message], None]


class Journal:
    """
    The records that were produced to the source, and those that it acknowledged. Thread-safe.

    Attributes:
        compacted: Records of the compacted topic in the order of writing, by partition. Only one
            idempotent producer writes there, so the n-th has offset n.
        acknowledged: Numbers that the source must keep, by partition; committed ones only.
        aborted: Numbers that no reader may ever see.
        failed: Deliveries that the client gave up: the load is broken, not the mirror.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._next = 0
        self.compacted: dict[int, list[Record]] = {p: [] for p in range(PARTITIONS[COMPACTED])}
        self.acknowledged: dict[TopicPartition, set[int]] = {
            one: set() for one in (*SOURCES, TopicPartition(DOOMED, 0))
        }
        self.aborted: set[int] = set()
        self.failed: list[str] = []

    def number(self) -> int:
        """Return the next number."""
        with self._lock:
            self._next += 1
            return self._next

    def delivery(self, number: int) -> Delivery:
        """Return a callback that records the outcome of one record."""

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                self.failed.append(f"{message.topic()} {number}: {error}")
                return
            where = TopicPartition(str(message.topic()), int(message.partition() or 0))
            self.acknowledged[where].add(number)

        return delivered


class ClientLog(logging.Handler):
    """The last lines of a client's log, which show why it does not send any more."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: deque[str] = deque(maxlen=LAST_LINES)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line."""
        self.lines.append(f"{record.created:.3f} {record.getMessage()}")

    def configured(self, config: dict[str, object]) -> Producer:
        """Return a producer that logs here what it does as an idempotent producer."""
        logger = logging.Logger("load", logging.DEBUG)  # noqa: LOG001 (no other logger gets it)
        logger.addHandler(self)
        return Producer({**config, "debug": "eos,broker", "log_level": 7}, logger=logger)


class Load:
    """
    Produces about 1,600 records a second.

    One thread uses idempotent producers, the other transactions, some of which it aborts.
    """

    def __init__(self, cluster: KafkaCluster, seed: int) -> None:
        self.journal = Journal()
        self._config = {**cluster.client_config(), "log_level": 0, "linger.ms": 5}
        self._dice = (random.Random(seed), random.Random(seed + 1))
        self.ledger = threading.Lock()
        """Held during each transaction: while another thread holds it, no transaction is open."""
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._write_plain, name="load-plain", daemon=True),
            threading.Thread(target=self._write_ledger, name="load-ledger", daemon=True),
        ]

    @contextmanager
    def running(self) -> Iterator[None]:
        """Produce until the block ends; no transaction is open afterwards."""
        for thread in self._threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in self._threads:
                thread.join(JOIN_S)

    # ------------------------------------------------------------------ without transactions

    def _write_plain(self) -> None:
        dice = self._dice[0]
        config = {**self._config, "enable.idempotence": True, "socket.timeout.ms": ANSWER_MS}
        logs = {"plain": ClientLog(), "odd": ClientLog()}
        producer = logs["plain"].configured(config)
        odd = logs["odd"].configured({**config, "batch.size": SMALL_BYTES // 2})
        while not self._stop.wait(TICK_S):
            for topic in ODD:
                partition = dice.randrange(PARTITIONS.get(topic, 1))
                self._offer(odd, dice, TopicPartition(topic, partition), key=_key(dice))
            for _ in range(PLAIN_PER_TICK):
                partition = dice.randrange(PARTITIONS[PLAIN])
                self._offer(producer, dice, TopicPartition(PLAIN, partition), key=_key(dice))
            for _ in range(COMPACTED_PER_TICK):
                partition = dice.randrange(PARTITIONS[COMPACTED])
                key = b"key-%d" % dice.randrange(KEYS)
                written = self._offer(producer, dice, TopicPartition(COMPACTED, partition), key=key)
                self.journal.compacted[partition].append(written)
            producer.poll(0)
            odd.poll(0)
        for name, client in (("plain", producer), ("odd", odd)):
            if left := client.flush(JOIN_S):
                log = "\n".join(logs[name].lines)
                self.journal.failed.append(f"{left} records were left in the {name} load: {log}")

    def _offer(
        self, producer: Producer, dice: random.Random, where: TopicPartition, *, key: bytes | None
    ) -> Record:
        number = self.journal.number()
        record = make_record(dice, number, key)
        while True:
            try:
                _produce(producer, where, record, self.journal.delivery(number))
            except BufferError:
                producer.poll(0.1)
            else:
                return record

    # ------------------------------------------------------------------ transactions

    def _write_ledger(self) -> None:
        """
        Produce transactions; replace the client after each failure.

        The next client with its id aborts the transaction that the failed one left open. A slow
        client is also replaced: a late duplicate of its commit would commit the next transaction,
        even one that should abort (KAFKA-17754).
        """
        while not self._stop.is_set():
            try:
                producer = Producer({**self._config, "transactional.id": WRITER})
                producer.init_transactions(30)
                while not self._stop.wait(self._dice[1].uniform(0.02, 0.1)):
                    began = time.monotonic()
                    with self.ledger:
                        self._transact(producer)
                    if time.monotonic() - began > SUSPICIOUS_S:
                        break
            except KafkaException:
                continue
        self._settle()

    def _settle(self) -> None:
        """Abort or complete what a failed client left open, which would hold back the LSO."""
        for _ in range(SETTLE_ATTEMPTS):
            try:
                Producer({**self._config, "transactional.id": WRITER}).init_transactions(10)
            except KafkaException:
                continue
            return
        self.journal.failed.append("a transaction of the load was left open")

    def _transact(self, producer: Producer) -> None:
        dice = self._dice[1]
        places = [
            TopicPartition(LEDGER, dice.randrange(PARTITIONS[LEDGER]))
            for _ in range(dice.randrange(1, 50))
        ]
        if dice.random() < SHARE_QUIET:
            places.append(TopicPartition(QUIET, 0))
        if dice.random() < SHARE_PLAIN:
            places.append(TopicPartition(PLAIN, 0))
        sent = [(where, self.journal.number()) for where in places]
        producer.begin_transaction()
        for where, number in sent:
            _produce(producer, where, make_record(dice, number, _key(dice)))
        if dice.random() < SHARE_ABORTED:
            self.journal.aborted.update(number for _, number in sent)
            producer.flush(30)
            producer.abort_transaction(30)
            return
        producer.commit_transaction(30)
        for where, number in sent:
            self.journal.acknowledged.setdefault(where, set()).add(number)


def make_record(dice: random.Random, number: int, key: bytes | None) -> Record:
    """Return a numbered record; some have nulls, empty fields or more headers."""
    headers: list[tuple[str, bytes | None]] = [(NUMBER, b"%d" % number)]
    if number % 7 == 0:
        headers += [("a", b"1"), ("b", None), ("a", b"")]
    value = b"value-%09d-" % number + b"x" * dice.randrange(80)
    if number % 11 == 0:
        value = b""
    return Record(
        key=key,
        value=None if number % 13 == 0 else value,
        headers=tuple(headers),
        timestamp=(CREATE_TIME, time.time_ns() // 1_000_000),
    )


def number_of(record: Record) -> int:
    """Return the number that `make_record` gave the record; -1 for a foreign record."""
    return next((int(value or b"-1") for name, value in record.headers if name == NUMBER), -1)


def _key(dice: random.Random) -> bytes | None:
    return dice.choice([None, b"", b"\x00\xff", b"key-%d" % dice.randrange(KEYS)])


def _produce(
    producer: Producer,
    where: TopicPartition,
    record: Record,
    delivered: Delivery | None = None,
) -> None:
    producer.produce(
        where.topic,
        record.value,
        record.key,
        where.partition,
        on_delivery=delivered,
        timestamp=record.timestamp[1],
        headers=list(record.headers),
    )
