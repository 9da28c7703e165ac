"""Hands runs of records to a producer and waits for them: the hot path of every mode."""

import math
import time
from collections import deque
from collections.abc import Mapping
from itertools import islice, repeat
from operator import length_hint
from typing import Any, cast

from confluent_kafka import KafkaException, Producer

from eos_mirror.core.records import DecodedRun, TopicPartition, TopicRecord
from eos_mirror.core.suspects import Refusal
from eos_mirror.errors import RefusedByTarget
from eos_mirror.kafka.errors import REFUSED

QUEUE_FULL_WAIT_S = 0.1
"""How long to flush a full queue: it may hold nothing but records that linger."""

LOOK_EVERY_S = 0.5
"""How often a wait for acknowledgements checks for other events."""

AHEAD_BYTES = 4_000_000
"""Bytes of values in flight; a producer with more of them queued is no faster."""

PARTITION_UNASSIGNED = -1
"""The client's partitioner chooses; RD_KAFKA_PARTITION_UA."""

BATCH_BYTES, BATCH_RECORDS = 1_000_000, 10_000
"""What fills a batch by the client's defaults (`batch.size`, `batch.num.messages`)."""


class Backlog:
    """
    Records handed to a producer since its last flush, and the waits for most of them.

    An idempotent producer has one request in flight for each partition. While more records of the
    partition are due, the client's thread polls in a busy loop until the answer arrives, and uses a
    core that the brokers need. In a flush all records are due. Before a flush only full batches
    are, and the client sends them without a flush. So this class waits for full batches first, and
    only records that fill no batch are left for the flush.
    """

    def __init__(self, producer: Producer, config: Mapping[str, Any]) -> None:
        """
        Args:
            config: Producer configuration; says what fills a batch.
        """
        self._producer = producer
        self._batch_bytes = int(config.get("batch.size", BATCH_BYTES))
        self._batch_records = int(config.get("batch.num.messages", BATCH_RECORDS))
        self._forget()

    def _forget(self) -> None:
        self._tails: dict[TopicPartition, _Tail] = {}
        self._records = self._bytes = self._unfilled = 0
        self._is_silent = False

    def add_unbatched(self, count: int) -> None:
        """Count records that were produced outside a batchable run."""
        self._unfilled += count

    def add(self, run: DecodedRun, remote: TopicPartition) -> None:
        """Count a run that was handed over; wait while too many bytes are in flight."""
        tail = self._tails.get(remote)
        if tail is None:
            tail = self._tails[remote] = _Tail(self._batch_bytes, self._batch_records)
        records, size_bytes = len(run.offsets), run.size_bytes
        self._unfilled += tail.add(records, size_bytes)
        self._records += records
        self._bytes += size_bytes
        if len(self._producer) * self._bytes > AHEAD_BYTES * self._records:
            self._wait_for_full_batches(AHEAD_BYTES * self._records // self._bytes)

    def settle(self, *, until: float) -> None:
        """
        Wait, before a flush, until little more is left than records that fill no batch.

        Args:
            until: When to return at the latest, in monotonic seconds.
        """
        self._wait_for_full_batches(0, until=until)
        self._forget()

    def _wait_for_full_batches(self, records: int, *, until: float = math.inf) -> None:
        """
        Wait until at most `records` are in flight, or only records that fill no batch.

        A wait in which no answer arrives is the last one before the flush, which the watchdog
        limits (`ports.TaskProcess.watch`).
        """
        enough = max(records, self._unfilled)
        while len(self._producer) > enough and not self._is_silent and time.monotonic() < until:
            self._is_silent = not self._producer.poll(LOOK_EVERY_S)


class _Tail:
    """
    Last runs of a partition, with all its records that may not fill a batch.

    Invariant A: without its first run, the tail would fill no batch. The client also counts keys,
    so the tail may fill a batch earlier.
    """

    __slots__ = ("_batch_bytes", "_batch_records", "_bytes", "_records", "_runs")

    def __init__(self, batch_bytes: int, batch_records: int) -> None:
        self._batch_bytes = batch_bytes
        self._batch_records = batch_records
        self._runs: deque[tuple[int, int]] = deque()
        self._records = self._bytes = 0

    def add(self, records: int, size_bytes: int) -> int:
        """Add a run; return by how many records the tail has grown."""
        before = self._records
        self._runs.append((records, size_bytes))
        self._records += records
        self._bytes += size_bytes
        while self._is_full(*self._runs[0]):
            first_records, first_bytes = self._runs.popleft()
            self._records -= first_records
            self._bytes -= first_bytes
        return self._records - before

    def _is_full(self, records: int, size_bytes: int) -> bool:
        """Return True if the tail fills a batch even without this many records and bytes."""
        return (
            self._bytes - size_bytes >= self._batch_bytes
            or self._records - records >= self._batch_records
        )


def send_one(
    producer: Producer, remote: TopicPartition, *, run: DecodedRun, i: int, callback: Any
) -> None:
    """Produce the i-th record of a run; wait while the client's queue is full."""
    while True:
        try:
            producer.produce(
                remote.topic,
                run.values[i],
                run.keys[i],
                remote.partition,
                callback,
                None,  # the same argument's other name; the first one wins
                run.timestamps[i],
                cast(Any, run.headers[i]),  # the stub's list is invariant
            )
        except BufferError:
            producer.flush(QUEUE_FULL_WAIT_S)
        except KafkaException as exc:
            _raise_refusal(exc, remote, run.offsets[i])
            raise
        else:
            return


def send_record(
    producer: Producer, topic: str, record: TopicRecord, *, callback: Any = None
) -> None:
    """Produce a record; wait while the client's queue is full."""
    key, value, headers, partition = record
    while True:
        try:
            producer.produce(
                topic,
                value,
                key,
                PARTITION_UNASSIGNED if partition is None else partition,
                on_delivery=callback,
                headers=cast(Any, headers or []),
            )
        except BufferError:
            producer.flush(QUEUE_FULL_WAIT_S)
        else:
            return


def send_stretch(
    producer: Producer,
    remote: TopicPartition,
    *,
    run: DecodedRun,
    start: int,
    end: int,
    callback: Any = None,
) -> None:
    """
    Produce [start, end) of a run; wait while the client's queue is full.

    It runs no line of Python per record (benchmarks/throughput.py shows what that is worth).
    """
    while start < end:
        values = iter(run.values[start:end])
        try:
            deque(
                map(
                    producer.produce,
                    repeat(remote.topic),
                    values,
                    islice(run.keys, start, end),
                    repeat(remote.partition),
                    repeat(callback),
                    repeat(None),
                    islice(run.timestamps, start, end),
                    islice(run.headers, start, end),
                ),
                0,
            )
        except BufferError:
            # the record that did not fit is the last one taken from the iterator
            start = end - length_hint(values) - 1
            producer.flush(QUEUE_FULL_WAIT_S)
        except KafkaException as exc:
            _raise_refusal(exc, remote, run.offsets[end - length_hint(values) - 1])
            raise
        else:
            return


def _raise_refusal(exc: KafkaException, remote: TopicPartition, offset: int) -> None:
    """Raise RefusedByTarget if the client itself refused a record: above `max.request.size`."""
    error = exc.args[0]
    if error.code() in REFUSED:
        text = f"produce to {remote}: {error.name()} ({error.str()})"
        refusal = Refusal(
            code=error.name(), reason=error.str(), first=offset, end=offset + 1, records=1
        )
        raise RefusedByTarget(text, refused={remote: refusal}) from exc
