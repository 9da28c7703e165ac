"""A run of records in the batches in which the source stores them."""

from collections.abc import Iterable, Sequence
from typing import ClassVar

from eos_mirror.core.records import DecodedRun, Outline, Stretch, TopicPartition
from eos_mirror.errors import UnreadableBatch
from eos_mirror.wire.batches import MAGIC, Batch
from eos_mirror.wire.errors import Malformed
from eos_mirror.wire.passing import ANYTHING, Obstacle, obstacle
from eos_mirror.wire.records import decoded


class FetchedRun:
    """
    Implements `core.records.RecordRun` without decoding, as far as that is possible.

    Invariant A: every batch is dense, so its header says which offsets it holds. Where that is not
    so, `runs_of` returns decoded runs.

    Attributes:
        partition: The source partition.
        batches: In offset order; at least one.
    """

    failure: ClassVar[str] = ""
    """See `RecordRun`."""

    __slots__ = ("_decoded", "batches", "count", "partition", "size_bytes")

    def __init__(self, partition: TopicPartition, batches: Sequence[Batch]) -> None:
        self.partition = partition
        self.batches = batches
        self.count = sum([one.count for one in batches])
        self.size_bytes = sum([one.size for one in batches])
        self._decoded: DecodedRun | None = None

    @property
    def timestamps(self) -> Sequence[int]:
        """See `RecordRun`: the base and the largest timestamp of each batch."""
        return [ms for one in self.batches for ms in (one.first_ms, one.last_ms)]

    @property
    def leader_epoch(self) -> int | None:
        """See `RecordRun`."""
        return self.batches[-1].leader_epoch

    @property
    def next_offset(self) -> int:
        """See `RecordRun`."""
        return self.batches[-1].next_offset

    def stretches(self) -> Sequence[Stretch | tuple[int, int]]:
        """See `RecordRun`."""
        found: list[tuple[int, int]] = []
        for one in self.batches:
            if found and sum(found[-1]) == one.base_offset:
                found[-1] = (found[-1][0], found[-1][1] + one.count)
            else:
                found.append((one.base_offset, one.count))
        return found

    def from_offset(self, next_offset: int) -> "FetchedRun | DecodedRun | None":
        """See `RecordRun`."""
        if self.batches[0].base_offset >= next_offset:
            return self
        return self.decoded().from_offset(next_offset)

    def outline(self) -> Outline:
        """See `RecordRun`."""
        return Outline(
            largest_batch_bytes=max([one.size for one in self.batches]),
            last_ms=max([one.last_ms for one in self.batches]),
        )

    def decoded(self) -> DecodedRun:
        """See `RecordRun`."""
        if self._decoded is None:
            first = self.batches[0].base_offset
            try:
                self._decoded = decoded(self.partition, self.batches, next_offset=first)
            except Malformed:
                self._raise_unreadable()
        if self._decoded is None:
            raise UnreadableBatch(f"{self.partition}: batches without records")
        return self._decoded

    def _raise_unreadable(self) -> None:
        """Name the first batch that cannot be read, and the run before it."""
        for i, batch in enumerate(self.batches):
            try:
                readable(self.partition, [batch], batch.base_offset)
            except UnreadableBatch as exc:
                before = FetchedRun(self.partition, self.batches[:i]) if i else None
                raise UnreadableBatch(str(exc), before=before) from exc
        raise UnreadableBatch(f"{self.partition}: batches that do not follow each other")


def runs_of(
    partition: TopicPartition, batches: Iterable[Batch], *, next_offset: int
) -> tuple[list[FetchedRun | DecodedRun], UnreadableBatch | None]:
    """
    Return batches as runs: decoded where a header does not say which records are to be copied.

    Args:
        next_offset: Records before it are left out.

    Returns:
        The runs, and the fault of the batch after them, which must be decoded and cannot be.
    """
    runs: list[FetchedRun | DecodedRun] = []
    dense: list[Batch] = []
    fault: UnreadableBatch | None = None
    for one in batches:
        if is_dense(one) and one.base_offset >= next_offset:
            dense.append(one)
            continue
        if dense:
            runs.append(FetchedRun(partition, dense))
            dense = []
        try:
            left = readable(partition, [one], max(next_offset, one.base_offset))
        except UnreadableBatch as exc:
            fault = exc
            break
        if left is not None:
            reason = obstacle(one, next_offset, ANYTHING)
            left.why = Obstacle.GAPS.value if reason is None else reason.value
            runs.append(left)
    if dense:
        runs.append(FetchedRun(partition, dense))
    return runs, fault


def is_dense(batch: Batch) -> bool:
    """Return True if the batch has a record at every offset."""
    return batch.magic == MAGIC and 0 < batch.count == batch.next_offset - batch.base_offset


def readable(
    partition: TopicPartition, batches: Sequence[Batch], next_offset: int
) -> DecodedRun | None:
    """
    Return the records at or after an offset; None if there are none.

    Raises:
        UnreadableBatch: A batch cannot be read.
    """
    try:
        return decoded(partition, batches, next_offset=next_offset)
    except Malformed as exc:
        raise UnreadableBatch(
            f"{partition} next_offset={next_offset}: corrupt batch: {exc}"
        ) from exc
