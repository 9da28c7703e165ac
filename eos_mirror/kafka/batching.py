"""Handing runs of records to a producer, and waiting for them: the hot path of every mode."""

import math
import time
from collections import deque
from collections.abc import Mapping
from itertools import islice, repeat
from operator import length_hint
from typing import Any, cast

from confluent_kafka import KafkaException, Producer

from eos_mirror.core.records import RecordRun, TopicPartition
from eos_mirror.core.suspects import Refusal
from eos_mirror.errors import RefusedByTarget
from eos_mirror.kafka.errors import REFUSED

QUEUE_FULL_WAIT_S = 0.1
"""A full queue may hold nothing but records that linger: it is flushed."""

LOOK_EVERY_S = 0.5
"""Whoever waits for acknowledgements looks so often what else happened."""

AHEAD_BYTES = 4_000_000
"""Values that are under way at once; a producer with more of them queued is no faster."""

BATCH_BYTES, BATCH_RECORDS = 1_000_000, 10_000
"""What fills a batch of a client that is told nothing (`batch.size`, `batch.num.messages`)."""


class Backlog:
    """
    What a producer was handed since its last flush, and the waits for most of it.

    A partition of an idempotent producer has one request under way. If more of it is waiting and
    should have gone, the client's thread looks again and again until the answer is there, and takes
    a core that the brokers need. In a flush everything should have gone. Before, only full batches
    should, which go by themselves: so these are waited for first, and flushed is what fills none.
    """

    def __init__(self, producer: Producer, config: Mapping[str, Any]) -> None:
        """
        Args:
            config: Of the producer; says what fills a batch.
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
        """So many records were handed over that fill no batch."""
        self._unfilled += count

    def add(self, run: RecordRun, remote: TopicPartition) -> None:
        """This was handed over; waits while much of it and of what was before is under way."""
        tail = self._tails.get(remote)
        if tail is None:
            tail = self._tails[remote] = _Tail(self._batch_bytes, self._batch_records)
        self._unfilled += tail.add(len(run.offsets), run.size_bytes)
        self._records += len(run.offsets)
        self._bytes += run.size_bytes
        if len(self._producer) * self._bytes > AHEAD_BYTES * self._records:
            self._wait_for_full_batches(AHEAD_BYTES * self._records // self._bytes)

    def settle(self, *, until: float) -> None:
        """
        Before a flush: wait until hardly more is left than what fills no batch.

        Args:
            until: Return then at the latest; monotonic seconds.
        """
        self._wait_for_full_batches(0, until=until)
        self._forget()

    def _wait_for_full_batches(self, records: int, *, until: float = math.inf) -> None:
        """
        Until no more than this is under way, or fills no batch, or nothing comes back.

        If nothing does, it is the last wait before the flush, which is watched.
        """
        enough = max(records, self._unfilled)
        while len(self._producer) > enough and not self._is_silent and time.monotonic() < until:
            self._is_silent = not self._producer.poll(LOOK_EVERY_S)


class _Tail:
    """
    The last runs of a partition that hold all that may fill no batch.

    Invariant A: without its first run, it would fill none; the client counts keys, too, so it may
    fill one earlier.
    """

    __slots__ = ("_batch_bytes", "_batch_records", "_bytes", "_records", "_runs")

    def __init__(self, batch_bytes: int, batch_records: int) -> None:
        self._batch_bytes = batch_bytes
        self._batch_records = batch_records
        self._runs: deque[tuple[int, int]] = deque()
        self._records = self._bytes = 0

    def add(self, records: int, size_bytes: int) -> int:
        """By how many records it has grown."""
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
        """Also without so much of it."""
        return (
            self._bytes - size_bytes >= self._batch_bytes
            or self._records - records >= self._batch_records
        )


def send_one(
    producer: Producer, remote: TopicPartition, *, run: RecordRun, i: int, callback: Any
) -> None:
    """Produce the i-th record of a run; waits while the client's queue is full."""
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


def send_stretch(
    producer: Producer,
    remote: TopicPartition,
    *,
    run: RecordRun,
    start: int,
    end: int,
    callback: Any = None,
) -> None:
    """
    Produce [start, end) of a run; waits while the client's queue is full.

    Without a line of Python per record (benchmarks/throughput.py shows what that is worth).
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
    """The client itself refuses a record that is larger than `max.request.size`."""
    error = exc.args[0]
    if error.code() in REFUSED:
        text = f"produce to {remote}: {error.name()} ({error.str()})"
        refusal = Refusal(
            code=error.name(), reason=error.str(), first=offset, end=offset + 1, records=1
        )
        raise RefusedByTarget(text, refused={remote: refusal}) from exc
