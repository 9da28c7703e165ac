"""One partition and its copy in memory, and the workers that compare them."""

from collections.abc import Callable, Iterator, Sequence, Set
from typing import TypeVar

from eos_mirror.audit.differences import Comparison, Difference, Kind
from eos_mirror.audit.digest import Folder
from eos_mirror.audit.examine import (
    Folded,
    Matched,
    examine_range,
    find_originals,
    fold_range,
    match_range,
)
from eos_mirror.audit.extent import PartitionSnapshot
from eos_mirror.audit.ranges import Range
from eos_mirror.audit.worker import Found, Unreadable
from eos_mirror.core.offset_map import MapTail, OffsetMap
from eos_mirror.core.records import TopicPartition
from eos_mirror.errors import RangeUnreadable
from tests.audit.in_memory_log import InMemoryLog

SOURCE, TARGET = TopicPartition("orders", 0), TopicPartition("A.orders", 0)
RECORDS, MOST = 100, 10
"""Records of the partition, and offsets of a range at most."""

FOLDER = Folder(12345)
T = TypeVar("T")
R = TypeVar("R")


class AtOnce:
    """A pool that works in the calling thread, and returns results in another order."""

    def map(self, work: Callable[[T], R], tasks: Sequence[T]) -> Iterator[tuple[T, R]]:
        """See `proof.Pool`."""
        return ((task, work(task)) for task in reversed(tasks))


class CountingWorker:
    """Compares ranges of two logs, and counts how often it matched or folded, and examined."""

    def __init__(self, source: InMemoryLog, target: InMemoryLog) -> None:
        self.source, self.target = source, target
        self.looked = self.examined = 0

    def match(self, where: Range) -> Matched | Unreadable:
        """See `worker.Work`."""
        self.looked += 1
        try:
            return match_range(where, self.source, self.target)
        except RangeUnreadable as exc:
            return Unreadable(reason=str(exc))

    def fold(self, where: Range) -> Folded | Unreadable:
        """See `worker.Work`."""
        self.looked += 1
        try:
            return fold_range(where, self.source, self.target, FOLDER)
        except RangeUnreadable as exc:
            return Unreadable(reason=str(exc))

    def examine(self, where: Range) -> Comparison | Unreadable:
        """See `worker.Work`."""
        self.examined += 1
        try:
            return examine_range(where, self.source, self.target)
        except RangeUnreadable as exc:
            return Unreadable(reason=str(exc))

    def find(self, where: Range, wanted: Set[bytes]) -> Found:
        """See `worker.Work`."""
        return dict(find_originals(where, self.source, wanted))


def shelves() -> tuple[dict[int, bytes], dict[int, bytes]]:
    """Return the values by offset, of the source and of its copy, which begins at offset 1,000."""
    return (
        {i: b"%d" % i for i in range(RECORDS)},
        {1_000 + i: b"%d" % i for i in range(RECORDS)},
    )


def snapshot(clerk: CountingWorker) -> PartitionSnapshot:
    """Return the snapshot of the only partition."""
    tail = MapTail.empty(0, downstream=1_000)
    tail.add([(0, RECORDS)], 1_000)
    return PartitionSnapshot(
        source=SOURCE,
        source_start=clerk.source.start,
        target=TARGET,
        target_start=clerk.target.start,
        target_end=1_000 + RECORDS,
        source_log_end=RECORDS,
        target_log_end=1_000 + RECORDS,
        offsets=OffsetMap([], tail),
    )


def difference(kind: Kind, upstream: int, downstream: int) -> Difference:
    """Return a difference in the only partition."""
    return Difference(
        kind=kind,
        source=SOURCE,
        upstream_offset=upstream,
        target=TARGET,
        downstream_offset=downstream,
    )
