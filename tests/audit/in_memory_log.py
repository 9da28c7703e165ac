"""A log in memory that audits can read."""

from collections.abc import Iterator, Mapping

from eos_mirror.core.records import TopicPartition
from eos_mirror.errors import RangeUnreadable
from eos_mirror.kafka.ranges import Columns

CREATED = (1, 1_700_000_000_000)
CHUNK_RECORDS = 3


class InMemoryLog:
    """Records in memory, read in chunks."""

    def __init__(
        self,
        values: Mapping[int, bytes | None],
        *,
        stamp: tuple[int, int] = CREATED,
        chunk: int = CHUNK_RECORDS,
    ) -> None:
        self._values = values
        self._chunk = chunk
        self._stamp = stamp
        self.start = 0

    def read(self, _: TopicPartition, start: int, end: int) -> Iterator[Columns]:
        """Yield the records of a range in chunks; see `audit.examine.Reader`."""
        if start < min(self.start, end):
            raise RangeUnreadable(f"{start} is no longer in the log")
        offsets = [offset for offset in sorted(self._values) if start <= offset < end]
        for at in range(0, len(offsets), self._chunk):
            chunk = offsets[at : at + self._chunk]
            yield Columns(
                offsets=chunk,
                timestamps=[self._stamp] * len(chunk),
                keys=[None] * len(chunk),
                values=[self._values[offset] for offset in chunk],
                headers=[None] * len(chunk),
            )
