"""How many records a producer is handed ahead, and which it waits for before a flush."""

import math
from typing import Any, cast

from eos_mirror.core.records import DecodedRun, TopicPartition
from eos_mirror.kafka.batching import AHEAD_BYTES, Backlog

VALUE = b"v" * 1_000
BATCH, CHUNK = 1_000, 500
"""Records of 1 KB that fill a batch, and that one poll returns."""


class Outgoing:
    """A fake producer that acknowledges one full batch of a partition per poll."""

    def __init__(self, *, answers: bool = True) -> None:
        self._answers = answers
        self._waiting: dict[TopicPartition, int] = {}
        self.polls = 0

    def __len__(self) -> int:
        """Return the number of records that are not acknowledged."""
        return sum(self._waiting.values())

    def take(self, remote: TopicPartition, count: int) -> None:
        """Accept more records of a partition."""
        self._waiting[remote] = self._waiting.get(remote, 0) + count

    def poll(self, _timeout: float) -> int:
        """Acknowledge a full batch, if any; return its number of records."""
        self.polls += 1
        full = next((remote for remote, n in self._waiting.items() if n >= BATCH), None)
        if full is None or not self._answers:
            return 0
        self._waiting[full] -= BATCH
        return BATCH


def handed(outgoing: Outgoing, *, chunks: int, partitions: int) -> Backlog:
    """Hand over chunks, partition by partition, and return the backlog."""
    backlog = Backlog(cast(Any, outgoing), {"batch.size": BATCH * len(VALUE)})
    for number in range(chunks):
        remote = TopicPartition("A.orders", number % partitions)
        outgoing.take(remote, CHUNK)
        backlog.add(
            DecodedRun(
                partition=TopicPartition("orders", remote.partition),
                offsets=range(CHUNK),
                timestamps=[1] * CHUNK,
                keys=[None] * CHUNK,
                values=[VALUE] * CHUNK,
                headers=[None] * CHUNK,
                leader_epoch=None,
                size_bytes=CHUNK * len(VALUE),
            ),
            remote,
        )
    return backlog


def test_a_producer_is_not_handed_more_than_a_few_batches_ahead() -> None:
    """However large the transaction is, a producer holds only a few batches in memory."""
    outgoing = Outgoing()

    handed(outgoing, chunks=100, partitions=2)

    assert len(outgoing) * len(VALUE) <= AHEAD_BYTES


def test_before_a_flush_full_batches_are_waited_for() -> None:
    """Full batches are waited for, but not records that fill none: they are not sent yet."""
    outgoing = Outgoing()
    backlog = handed(outgoing, chunks=7, partitions=1)

    backlog.settle(until=math.inf)

    assert len(outgoing) == BATCH // 2


def test_what_fills_no_batch_is_not_waited_for() -> None:
    """Partial batches of many partitions are not waited for: only the flush sends them."""
    outgoing = Outgoing()
    backlog = handed(outgoing, chunks=20, partitions=20)

    backlog.settle(until=math.inf)

    assert len(outgoing) * len(VALUE) > AHEAD_BYTES, "nothing would have to be waited for"
    assert outgoing.polls == 0


def test_records_beside_are_left_to_the_flush() -> None:
    """Map records are not waited for: the first transaction of a task has no others."""
    outgoing = Outgoing()
    backlog = handed(outgoing, chunks=0, partitions=1)
    outgoing.take(TopicPartition("map", 0), 2)
    backlog.add_unbatched(2)

    backlog.settle(until=math.inf)

    assert outgoing.polls == 0


def test_a_target_that_does_not_answer_is_left_to_the_flush() -> None:
    """
    After one poll without an answer, however much is handed over, only the flush waits: the client
    can lose a transaction without an event, and the flush finds out why.
    """
    outgoing = Outgoing(answers=False)
    backlog = handed(outgoing, chunks=100, partitions=2)

    backlog.settle(until=math.inf)

    assert outgoing.polls == 1
