"""Decides when a transaction is full and is committed."""

from dataclasses import dataclass

FILLED_FOR_COMMITS = 128
"""While records wait, a transaction is filled for this many times as long as commits take."""

FILLED_FOR_INTERVALS = 20
FILLED_FOR_S = 2.0
FILLED_FOR_OF_TIMEOUT = 0.25
"""But for no longer than this many intervals, this many seconds, or this part of the time after
which the target aborts it."""

COMMITS_AVERAGED = 8

FIRST_RECORDS, FIRST_BYTES = 1_000, 1_000_000
"""First limits of a transaction, for a target about which nothing is known."""

LONG_S = 2.0
"""If a commit takes longer, including its flush, the transaction was too large."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Boundary:
    """
    Limits of one transaction.

    A poll is never split, so a transaction exceeds the limits by one poll at most.

    Attributes:
        interval_s: Age in seconds at which it ends (`transaction.boundary.interval.ms`), but see
            `Pace`.
        timeout_s: Age in seconds at which the target aborts it (`transaction.timeout.ms`).
        max_bytes: Size at which it ends.
        max_records: Count of records at which it ends.
        every_poll: It ends after each poll (`transaction.boundary=poll`).
    """

    interval_s: float
    timeout_s: float
    max_bytes: int
    max_records: int
    every_poll: bool


class Pace:
    """
    Decides when the transactions of one task end.

    A commit costs about the same whatever was sent, and blocks the task. A lagging task needs that
    time for the records that wait, so a transaction stays open longer where commits are slow. A
    task that keeps up is not affected, because an empty queue ends the transaction.

    A target may accept records slowly, above all one with a quota. A flush that takes too long
    ends the process, and the next one would fail in the same way. So a task begins with small
    transactions, doubles them while they are committed quickly, and halves them otherwise.
    """

    def __init__(self, boundary: Boundary) -> None:
        self._boundary = boundary
        self._commit_s = 0.0
        self._max_bytes = min(FIRST_BYTES, boundary.max_bytes)
        self._max_records = min(FIRST_RECORDS, boundary.max_records)

    def committed(self, took_s: float, *, size_bytes: int, records: int) -> None:
        """Learn how many seconds a commit of this size took, including the flush before it."""
        self._commit_s += (took_s - self._commit_s) / COMMITS_AVERAGED
        if took_s > LONG_S:
            self._max_bytes = max(self._max_bytes // 2, 1)
            self._max_records = max(self._max_records // 2, 1)
        elif took_s < LONG_S / 2 and self._is_full(size_bytes, records):
            self._max_bytes = min(self._max_bytes * 2, self._boundary.max_bytes)
            self._max_records = min(self._max_records * 2, self._boundary.max_records)

    def due(
        self, opened_at: float, now: float, *, size_bytes: int, records: int, queue_empty: bool
    ) -> bool:
        """
        Decide whether to commit now.

        Args:
            opened_at: When the first record was added, in monotonic seconds.
            now: The same clock now.
            size_bytes: Bytes so far.
            records: Records so far; without any, nothing needs a commit.
            queue_empty: Nothing else is ready to be read or in flight: waiting would only add
                delay.
        """
        return records > 0 and (
            self._boundary.every_poll
            or queue_empty
            or now - opened_at >= self._age_s()
            or self._is_full(size_bytes, records)
        )

    def _is_full(self, size_bytes: int, records: int) -> bool:
        return size_bytes >= self._max_bytes or records >= self._max_records

    def _age_s(self) -> float:
        interval_s = self._boundary.interval_s
        longest_s = min(
            interval_s * FILLED_FOR_INTERVALS,
            FILLED_FOR_S,
            self._boundary.timeout_s * FILLED_FOR_OF_TIMEOUT,
        )
        return max(interval_s, min(self._commit_s * FILLED_FOR_COMMITS, longest_s))
