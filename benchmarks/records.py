"""Topics to mirror, filled from a seed, and the digest that says whether a copy is exact."""

import hashlib
import random
import struct
from collections import deque
from collections.abc import Mapping, Sequence
from datetime import timedelta
from itertools import cycle, islice, repeat
from time import monotonic

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition

from eos_mirror.testing import KafkaCluster

PARTITIONS = 8
SEED = 20_240_229
POOL_VALUES = 2_000
CHUNK_RECORDS = 400_000
"""Of all partitions together: what the client's queue takes."""
FIRST_TIMESTAMP_MS = 1_700_000_000_000
LARGE_BATCHES = {
    "batch.size": 900_000,
    "batch.num.messages": 100_000,
    "linger.ms": 1_000,
    "queue.buffering.max.messages": 2_000_000,
    "queue.buffering.max.kbytes": 2_000_000,
    "compression.type": "none",
}
NAMES = ("account", "amount", "currency", "customer", "item", "price", "quantity", "warehouse")
READ_WITHIN = timedelta(minutes=5)
FRAME = struct.Struct("<qii")


def fill(
    cluster: KafkaCluster,
    topic: str,
    *,
    count: int,
    value_bytes: int,
    producer_config: Mapping[str, object] | None = None,
    headers: bool = False,
) -> None:
    """
    Append `count` records, spread evenly; keys of 10 bytes number them within each partition.

    Args:
        producer_config: Over LARGE_BATCHES. With a codec, values are such that it has something
            to do.
        headers: Two with each record.

    Raises:
        RuntimeError: The cluster did not take them all.
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
                    map(b"key%07d".__mod__, numbers),
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
    """Random, or like documents of an application: few names, many numbers."""
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
    """Of a topic that exists."""
    return len(cluster.admin().list_topics(topic, timeout=10).topics[topic].partitions)


def digest(cluster: KafkaCluster, topic: str) -> tuple[int, Sequence[str]]:
    """
    Count of all committed records, and a hash of each partition that depends on their order.

    Raises:
        TimeoutError: The topic was not read to its end.
    """
    consumer = Consumer(
        {
            **cluster.client_config(),
            "group.id": "eos-mirror-benchmark",  # never joined, never committed
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "check.crcs": True,
            "fetch.queue.backoff.ms": 5,
        }
    )
    partitions = count_partitions(cluster, topic)
    consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in range(partitions)])
    hashes = [hashlib.blake2b(digest_size=8) for _ in range(partitions)]
    count, ended = 0, set[int]()
    deadline = monotonic() + READ_WITHIN.total_seconds()
    while len(ended) < partitions:
        if monotonic() > deadline:
            raise TimeoutError(f"{topic} was not read in {READ_WITHIN}")
        for message in consumer.consume(500, 0.02):
            partition, error = message.partition() or 0, message.error()
            if error is not None:
                if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name
                    ended.add(partition)
                continue
            key, value = message.key() or b"", message.value() or b""
            headers = message.headers()
            frame = FRAME.pack(message.timestamp()[1], len(key), len(value))
            hashes[partition].update(frame + key + value)
            if headers:
                hashes[partition].update(repr(headers).encode())
            count += 1
    consumer.close()
    return count, [one.hexdigest() for one in hashes]
