"""Records go from consumer to producer in C, chunk by chunk."""

import gc
import sys
from collections.abc import Callable
from datetime import timedelta
from types import FrameType
from typing import Any

import pytest
from confluent_kafka import Message

from eos_mirror.core.records import TopicPartition
from eos_mirror.kafka import source as source_module
from eos_mirror.kafka import transactional_producer as producer_module
from eos_mirror.kafka.source import KafkaSource
from eos_mirror.kafka.transactional_producer import KafkaProducer

CHUNK, LARGE_CHUNK = 500, 5_000
SLACK = 50
"""Python instructions: a counter that is one digit longer may need another branch."""


class Nobody:
    """A rebalance listener that is never called."""

    def on_granted(self, partitions: object) -> None:
        """Do nothing."""

    on_revoked = on_lost = on_granted


class PreparedConsumer:
    """Returns one chunk, whatever count is requested."""

    def __init__(self, chunk: list[Message]) -> None:
        self._chunk = chunk

    def consume(self, _count: int, _timeout: float) -> list[Message]:
        """Return the chunk."""
        return self._chunk


class Sink:
    """Accepts every record, in C like the real producer."""

    produce = staticmethod("".format)

    def done(self, *_: object, **__: object) -> int:
        """Do nothing; this replaces every other method."""
        return 0

    list_topics = init_transactions = begin_transaction = poll = __len__ = done


def a_chunk(count: int, *, with_headers: bool) -> list[Message]:
    """Return records of one partition."""
    return [
        Message(
            topic="orders",
            partition=0,
            offset=n,
            key=b"k",
            value=b"v" * 100,
            headers=[("h", b"1")] if with_headers else None,
            timestamp=(1, 1_700_000_000_000 + n),
        )
        for n in range(count)
    ]


def instructions(action: Callable[[], object]) -> int:
    """Count the Python instructions of an action; a loop in C counts as one."""
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    gc.disable()  # it would run finalizers of other code here
    sys.settrace(trace)
    try:
        action()
    finally:
        sys.settrace(before)
        gc.enable()
    return count


@pytest.mark.parametrize("with_headers", [False, True], ids=["no headers", "headers"])
def test_a_larger_chunk_takes_no_more_python(
    monkeypatch: pytest.MonkeyPatch, with_headers: bool
) -> None:
    """Ten times the records need the same number of Python instructions, from poll to send."""
    monkeypatch.setattr(producer_module, "new_producer", lambda *_, **__: Sink())
    monkeypatch.setattr(source_module, "new_consumer", PreparedConsumer)

    def mirrored(count: int) -> int:
        producer = KafkaProducer({}, "id", group=None)
        producer.begin()
        source = KafkaSource({"group.id": "group"}, Nobody())
        source._consumer = PreparedConsumer(  # type: ignore[assignment]  # noqa: SLF001 (a fake)
            a_chunk(count, with_headers=with_headers)
        )
        sent = 0

        def turn() -> None:
            nonlocal sent
            for run in source.poll(wait=timedelta(0)).runs:
                fresh = run.from_offset(0)
                assert fresh is not None
                producer.send(fresh, TopicPartition("A.orders", 0))
                fresh.stretches()
                sent += fresh.count

        taken = instructions(turn)
        assert sent == count, "not every record was sent"
        return taken

    small, large = mirrored(CHUNK), mirrored(LARGE_CHUNK)

    assert large <= small + SLACK, f"{CHUNK} records: {small}, {LARGE_CHUNK} records: {large}"
