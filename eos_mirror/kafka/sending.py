"""Handing runs of records to a producer: the hot path of every mode."""

from collections import deque
from itertools import islice, repeat
from operator import length_hint
from typing import Any, cast

from confluent_kafka import KafkaException, Producer

from eos_mirror.core.records import RecordRun, TopicPartition
from eos_mirror.errors import RefusedByTarget
from eos_mirror.kafka.errors import REFUSED

QUEUE_FULL_WAIT_S = 0.1


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
            producer.poll(QUEUE_FULL_WAIT_S)
        except KafkaException as exc:
            _raise_refusal(exc, remote)
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
            producer.poll(QUEUE_FULL_WAIT_S)
        except KafkaException as exc:
            _raise_refusal(exc, remote)
            raise
        else:
            return


def _raise_refusal(exc: KafkaException, remote: TopicPartition) -> None:
    """The client itself refuses a record that is larger than the file lets it be."""
    error = exc.args[0]
    if error.code() in REFUSED:
        text = f"produce to {remote}: {error.name()} ({error.str()})"
        raise RefusedByTarget(text, topic=remote.topic, partition=remote.partition) from exc
