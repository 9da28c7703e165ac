"""Topics to mirror, filled from a seed, and the digest that shows whether a copy is exact."""

import hashlib
import os
import random
import signal
from array import array
from collections import deque
from collections.abc import Mapping, Sequence
from datetime import timedelta
from itertools import cycle, groupby, islice, repeat
from multiprocessing import get_context
from operator import itemgetter
from time import monotonic
from typing import Any, cast

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    Message,
    Producer,
    TopicPartition,
)

from eos_mirror.runtime.lifeline import die_with_parent
from eos_mirror.testing import KafkaCluster

PARTITIONS = 8
SEED = 20_240_229
POOL_VALUES = 2_000
CHUNK_RECORDS = 400_000
"""Records of all partitions that are produced between two flushes; they fit the client's queue."""
FIRST_TIMESTAMP_MS = 1_700_000_000_000
LARGE_BATCHES = {
    "batch.size": 900_000,
    "batch.num.messages": 100_000,
    "linger.ms": 120_000,
    "queue.buffering.max.messages": 2_000_000,
    "queue.buffering.max.kbytes": 2_000_000,
    "compression.type": "none",
}
"""A batch is sent when it is full, or by a flush; the linger is longer than any fill takes."""
NAMES = ("account", "amount", "currency", "customer", "item", "price", "quantity", "warehouse")
READ_WITHIN = timedelta(minutes=5)


def fill(  # noqa: PLR0913 - most of them keywords with a default
    cluster: KafkaCluster,
    topic: str,
    *,
    count: int,
    value_bytes: int,
    producer_config: Mapping[str, object] | None = None,
    headers: bool = False,
    copies_of_key: int = 1,
) -> None:
    """
    Append `count` records, spread evenly; keys of 10 bytes number them within each partition.

    Args:
        producer_config: Overrides LARGE_BATCHES. With a codec, the values are compressible.
        headers: Whether each record has two headers.
        copies_of_key: How many consecutive records have the same key.

    Raises:
        RuntimeError: The cluster did not acknowledge every record.
    """
    config = {**LARGE_BATCHES, **(producer_config or {})}
    pool = _values(value_bytes, compressible=config["compression.type"] != "none")
    some_headers = [("trace", b"0123456789abcdef"), ("kind", b"order")] if headers else []
    producer = Producer({**cluster.client_config(), **config})
    partitions = count_partitions(cluster, topic)
    each = count // partitions
    chunk = max(1, CHUNK_RECORDS // partitions)
    for start in range(0, each, chunk):
        numbers = range(start, min(start + chunk, each))
        for partition in range(partitions):
            deque(
                map(
                    producer.produce,
                    repeat(topic),
                    islice(cycle(pool), len(numbers)),
                    map(b"key%07d".__mod__, (n // copies_of_key for n in numbers)),
                    repeat(partition),
                    repeat(None),
                    repeat(None),
                    range(FIRST_TIMESTAMP_MS + start, FIRST_TIMESTAMP_MS + start + len(numbers)),
                    repeat(some_headers),
                ),
                0,
            )
        if left := producer.flush(60):
            raise RuntimeError(f"{topic}: {left} records were not acknowledged in 60 s")


def _values(value_bytes: int, *, compressible: bool) -> list[bytes]:
    """Return random values, or values like an application's documents: few names, many numbers."""
    chooser = random.Random(SEED)
    if not compressible:
        return [chooser.randbytes(value_bytes) for _ in range(POOL_VALUES)]
    values = []
    for _ in range(POOL_VALUES):
        fields = [
            f'"{chooser.choice(NAMES)}": {chooser.randrange(10**9)}'
            for _ in range(value_bytes // 12 + 1)
        ]
        values.append("{{{}}}".format(", ".join(fields)).encode()[:value_bytes])
    return values


def count_partitions(cluster: KafkaCluster, topic: str) -> int:
    """Return the number of partitions of an existing topic."""
    return len(cluster.admin().list_topics(topic, timeout=10).topics[topic].partitions)


Digest = tuple[int, Sequence[str]]
"""Number of records, and the hash of each partition."""


def digest(cluster: KafkaCluster, topic: str, *, added: tuple[str, bytes] | None = None) -> Digest:
    """
    Count all committed records, and hash each partition; the hash depends on the order.

    Args:
        added: A header that each record is hashed with, as if it were its last one.

    Raises:
        TimeoutError: The topic was not read to its end.
    """
    partitions = range(count_partitions(cluster, topic))
    workers = min(os.cpu_count() or 1, len(partitions))
    shares = [partitions[i::workers] for i in range(workers)]
    with get_context("spawn").Pool(workers, _begin_worker) as pool:
        jobs = [(cluster.client_config(), topic, share, added) for share in shares]
        read = pool.starmap(_read, jobs)
    hashes = {p: one for share in read for p, one in share.items()}
    return sum(count for count, _ in hashes.values()), [hashes[p][1] for p in partitions]


def _begin_worker() -> None:
    """Make the worker exit with its parent, and ignore Ctrl-C."""
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _read(
    config: Mapping[str, Any],
    topic: str,
    partitions: Sequence[int],
    added: tuple[str, bytes] | None,
) -> dict[int, tuple[int, str]]:
    """Return count and hash of some partitions; runs in a process of its own."""
    consumer = Consumer(
        {
            **config,
            "group.id": "eos-mirror-benchmark",  # never joined, never committed
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "check.crcs": True,
            "fetch.queue.backoff.ms": 5,
        }
    )
    consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in partitions])
    hashes = {p: _PartitionHash(added) for p in partitions}
    ended = set[int]()
    deadline = monotonic() + READ_WITHIN.total_seconds()
    while len(ended) < len(partitions):
        if monotonic() > deadline:
            raise TimeoutError(f"{topic} was not read in {READ_WITHIN}")
        messages = consumer.consume(500, 0.02)
        if any(map(Message.error, messages)):
            messages = _without_events(messages, ended)
        for partition, stretch in groupby(messages, Message.partition):
            hashes[partition or 0].add(list(stretch))
    consumer.close()
    return {p: (one.count, one.hexdigest()) for p, one in hashes.items()}


def _without_events(messages: Sequence[Message], ended: set[int]) -> list[Message]:
    """Return the records; add to `ended` the partitions that were read to their end."""
    records = []
    for message in messages:
        error = message.error()
        if error is None:
            records.append(message)
        elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name
            ended.add(message.partition() or 0)
    return records


class _PartitionHash:
    """
    Hashes records in their order, independently of how they are split into calls of `add`.

    Keys and values of all records are one stream of bytes each; their lengths, -1 for None, are
    another. No line of Python runs per record, unless there are headers.
    """

    def __init__(self, added: tuple[str, bytes] | None = None) -> None:
        self._added = [] if added is None else [added]
        self.count = 0
        self._streams = [hashlib.blake2b(digest_size=8) for _ in range(6)]

    def add(self, messages: Sequence[Message]) -> None:
        """Add the next records."""
        keys, values = list(map(Message.key, messages)), list(map(Message.value, messages))
        stretch = (
            array("q", map(itemgetter(1), map(Message.timestamp, messages))).tobytes(),
            _lengths(keys),
            b"".join(filter(None, keys)),
            _lengths(values),
            b"".join(filter(None, values)),
            _numbered(self._headers(messages), self.count),
        )
        for stream, column in zip(self._streams, stretch, strict=True):
            stream.update(column)
        self.count += len(messages)

    def _headers(self, messages: Sequence[Message]) -> Sequence[object]:
        if self._added:
            return [[*(one.headers() or ()), *self._added] for one in messages]
        return list(map(Message.headers, messages))

    def hexdigest(self) -> str:
        """Return the hash of all records so far."""
        return "".join(one.hexdigest() for one in self._streams)


def _lengths(column: Sequence[bytes | None]) -> bytes:
    if None in column:
        return array("q", (-1 if one is None else len(one) for one in column)).tobytes()
    return array("q", map(len, cast(Sequence[bytes], column))).tobytes()


def _numbered(headers: Sequence[object], start: int) -> bytes:
    if not any(headers):
        return b""
    return "".join(repr(one) for one in enumerate(headers, start) if one[1]).encode()
