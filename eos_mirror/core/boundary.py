"""When a transaction has taken enough and is committed."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Boundary:
    """
    Limits of one transaction.

    A poll is never split, so a transaction passes the limits by one poll at most.

    Attributes:
        interval_s: Age in seconds at which it ends (`transaction.boundary.interval.ms`).
        max_bytes: Size at which it ends.
        max_records: Count of records at which it ends.
        every_poll: It ends after each poll (`transaction.boundary=poll`).
    """

    interval_s: float
    max_bytes: int
    max_records: int
    every_poll: bool

    def due(
        self, opened_at: float, now: float, *, size_bytes: int, records: int, queue_empty: bool
    ) -> bool:
        """
        Decide whether to commit now.

        Args:
            opened_at: When the first record was taken, on a monotonic clock, in seconds.
            now: The same clock now.
            size_bytes: Taken so far.
            records: Taken so far; without any there is nothing to commit.
            queue_empty: Nothing else is ready to be read: waiting would only add delay.
        """
        return records > 0 and (
            self.every_poll
            or queue_empty
            or now - opened_at >= self.interval_s
            or size_bytes >= self.max_bytes
            or records >= self.max_records
        )
