"""
A bare loop from consumer to producer, without any feature of a mirror: librdkafka's own cost.

    python -m benchmarks.loop SOURCE TARGET TOPIC REMOTE eos|alo INTERVAL_MS CODEC

Runs until SIGTERM. It is exactly once only while the process does not fail: it fences nothing.
"""

import signal
import sys
import time
from types import FrameType

from confluent_kafka import Consumer, Message, Producer, TopicPartition

CHUNK, WAIT_S = 500, 0.02
READER = {
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
    "isolation.level": "read_committed",
    "check.crcs": True,
    "fetch.queue.backoff.ms": 5,
}
WRITER = {
    "enable.idempotence": True,
    "acks": "all",
    "linger.ms": 20,
    "batch.size": 900_000,
    "batch.num.messages": 100_000,
    "queue.buffering.max.messages": 500_000,
    "queue.buffering.max.kbytes": 131_072,
}


def main() -> None:
    """Copy until SIGTERM."""
    source, target, topic, remote, mode, interval_ms, codec = sys.argv[1:]
    signal.signal(signal.SIGTERM, _end)
    consumer = Consumer({**READER, "bootstrap.servers": source, "group.id": remote})
    consumer.subscribe([topic])
    writer = {**WRITER, "bootstrap.servers": target, "compression.type": codec}
    interval_s = int(interval_ms) / 1_000
    if mode == "eos":
        _exactly_once(consumer, {**writer, "transactional.id": remote}, remote, interval_s)
    else:
        _at_least_once(consumer, writer, topic, remote, interval_s)


def _end(_number: int, _frame: FrameType | None) -> None:
    sys.exit(0)


def _exactly_once(
    consumer: Consumer, writer: dict[str, object], remote: str, interval_s: float
) -> None:
    shadow = Consumer({"bootstrap.servers": writer["bootstrap.servers"], "group.id": remote})
    group = shadow.consumer_group_metadata()
    producer = Producer(writer)
    producer.init_transactions(30)
    while True:
        producer.begin_transaction()
        if ends := _copy(consumer, producer, remote, until=time.monotonic() + interval_s):
            offsets = [TopicPartition(remote, p, offset) for p, offset in ends.items()]
            producer.send_offsets_to_transaction(offsets, group)
        producer.commit_transaction()


def _at_least_once(
    consumer: Consumer, writer: dict[str, object], topic: str, remote: str, interval_s: float
) -> None:
    producer = Producer(writer)
    while True:
        ends = _copy(consumer, producer, remote, until=time.monotonic() + interval_s)
        producer.flush()
        if ends:
            offsets = [TopicPartition(topic, p, offset) for p, offset in ends.items()]
            consumer.commit(offsets=offsets, asynchronous=False)


def _copy(consumer: Consumer, producer: Producer, remote: str, *, until: float) -> dict[int, int]:
    """Copy until this time; return the next offset of each partition."""
    ends: dict[int, int] = {}
    while time.monotonic() < until:
        for message in consumer.consume(CHUNK, WAIT_S):
            partition, offset = message.partition(), message.offset()
            if message.error() is not None or partition is None or offset is None:
                continue
            while True:
                try:
                    _produce(producer, remote, partition, message)
                    break
                except BufferError:
                    producer.poll(0.01)
            ends[partition] = offset + 1
        producer.poll(0)
    return ends


def _produce(producer: Producer, remote: str, partition: int, message: Message) -> None:
    producer.produce(
        remote,
        message.value(),
        message.key(),
        partition,
        timestamp=message.timestamp()[1],
        headers=message.headers() or [],
    )


if __name__ == "__main__":
    main()
