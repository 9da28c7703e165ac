"""
Finds the record that the target refuses, after it refused a batch.

A refusal shows little: which partition, sometimes which records. The records are sent again in
smaller batches, one after the other, until the refused batch holds a single record.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from eos_mirror.core.records import DecodedRun
from eos_mirror.core.topic_limits import BATCH_HEADER_BYTES, SenderLimits, TopicLimits, room_of

NARROWED_BY: Final = 8
"""A refused batch is sent again in this many parts: that takes fewer steps than halving, and each
step costs a new incarnation."""

MOST_BATCHES: Final = 50
"""Most batches of one partition in one transaction, if they must be sent one after the other.
Other partitions wait for them in the flush, a round trip for each."""

TOO_LARGE: Final = "MSG_SIZE_TOO_LARGE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """
    The target's refusal of a batch of one partition.

    Attributes:
        code: Kafka's name of the error.
        reason: In the client's words.
        first, end: Upstream offsets of the batch, `end` not included; None if unknown.
        records: Records in the batch; 0 if unknown.
        named: Upstream offsets of the records that the broker named (KIP-467).
    """

    code: str
    reason: str
    first: int | None = None
    end: int | None = None
    records: int = 0
    named: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """
    Records of one source partition, some of which the target refuses.

    Attributes:
        first, end: Their upstream offsets, `end` not included.
        max_records: Most of these records in one batch.
        refused: Upstream offsets of records that are known to be refused, in order.
        code: Kafka's name of the error.
        reason: In the client's words.
    """

    first: int
    end: int
    max_records: int
    refused: tuple[int, ...] = ()
    code: str
    reason: str


def narrowed(refusal: Refusal, sent: tuple[int, int], sender: SenderLimits) -> Suspect:
    """
    Return what is known after a refusal, and how to find out more.

    Args:
        sent: Upstream offsets of the records of the partition that were sent since its last
            commit, the second not included.
    """
    first = sent[0] if refusal.first is None else refusal.first
    end = sent[1] if refusal.end is None else refusal.end
    refused = refusal.named
    if not refused and refusal.records == 1 and refusal.first is not None:
        refused = (refusal.first,)
    most = min(refusal.records or sender.batch_records, sender.batch_records)
    if refusal.code == TOO_LARGE and refusal.first is None:
        max_records = most  # in batches that fit: that may be enough
    else:
        max_records = max(1, most // NARROWED_BY)
    return Suspect(
        first=first,
        end=end,
        max_records=max_records,
        refused=refused,
        code=refusal.code,
        reason=refusal.reason,
    )


def tried_again(suspect: Suspect) -> Suspect:
    """Return a suspect that sends the refused records again, one to a batch: they may pass now."""
    if not suspect.refused:
        return suspect
    return Suspect(
        first=suspect.refused[0],
        end=suspect.refused[-1] + 1,
        max_records=1,
        code=suspect.code,
        reason=suspect.reason,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLimit:
    """
    How large a batch of one partition may be.

    Attributes:
        max_bytes: Bytes before compression.
        max_records: Records, whether they are suspected or not.
    """

    max_bytes: int
    max_records: int
    suspect: Suspect | None = None


def batch_limit(
    limits: TopicLimits | None, suspect: Suspect | None, sender: SenderLimits
) -> BatchLimit | None:
    """Return the limit; None if the topic accepts any batch that the producer makes."""
    max_bytes = sender.batch_bytes if limits is None else limits.max_message_bytes
    if suspect is None and max_bytes >= sender.batch_bytes:
        return None
    return BatchLimit(
        max_bytes=min(max_bytes, sender.batch_bytes),
        max_records=sender.batch_records,
        suspect=suspect,
    )


class BatchCutter:
    """
    Cuts the runs of one partition into numbered batches, for one transaction.

    Attributes:
        count: Batches so far; the last one may have room left.
    """

    def __init__(self, limit: BatchLimit) -> None:
        self._limit = limit
        self.count = 0
        self._bytes = self._records = 0
        self._is_suspected = self._is_full = False

    def cut(self, run: DecodedRun) -> Iterator[tuple[int, DecodedRun]]:
        """
        Yield parts of the run with the numbers of their batches, in order, while the transaction
        has room for them.

        Parts with the same number, also of several runs, may share a batch.
        """
        if self._is_full:
            return  # a small record may fit, but others before it did not
        start = 0
        for i in range(len(run.offsets)):
            size_bytes = room_of(run.keys[i], run.values[i], run.headers[i])
            if self._takes(run.offsets[i], size_bytes):
                continue
            if i > start:
                yield self.count, run.part(start, i)
            if self.count >= MOST_BATCHES and run.whole(i) == i:
                self._is_full = True
                return
            start = i
            self._begin(run.offsets[i], size_bytes)
        yield self.count, run.part(start, len(run.offsets))

    def _takes(self, offset: int, size_bytes: int) -> bool:
        """Return True if a record fits into the last batch, and then count it."""
        suspect = self._limit.suspect
        most = self._limit.max_records
        if suspect is not None and suspect.first <= offset < suspect.end:
            most = min(most, suspect.max_records)
            if not self._is_suspected:
                return False
        fits = (
            self.count > 0
            and self._records < most
            and self._bytes + size_bytes <= self._limit.max_bytes
        )
        if fits:
            self._records += 1
            self._bytes += size_bytes
        return fits

    def _begin(self, offset: int, size_bytes: int) -> None:
        suspect = self._limit.suspect
        self.count += 1
        self._records = 1
        self._bytes = BATCH_HEADER_BYTES + size_bytes
        self._is_suspected = suspect is not None and suspect.first <= offset < suspect.end
