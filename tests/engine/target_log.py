"""One partition of the fake target: records, markers, and what each reader may see."""

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import NamedTuple


class Record(NamedTuple):
    """Everything a record carries from cluster to cluster."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] | None
    timestamp_ms: int


class Mark(Enum):
    """Control records."""

    COMMIT = "commit"
    ABORT = "abort"


class Entry(NamedTuple):
    """What one offset holds."""

    pid: int
    content: Record | Mark


class TargetLog:
    """
    Attributes:
        start: First offset that retention has not deleted.

    Invariants:
        A: Every entry takes one offset, a marker too.
        B: `_open` has the first offset of each transaction without a marker here.
    """

    def __init__(self) -> None:
        self.start = 0
        self.entries: list[Entry] = []
        self.epochs: dict[int, int] = {}
        self._open: dict[int, int] = {}
        self._aborted: set[int] = set()

    @property
    def written(self) -> int:
        """High watermark."""
        return len(self.entries)

    @property
    def stable(self) -> int:
        """Last stable offset."""
        return min(self._open.values(), default=self.written)

    def append(self, pid: int, epoch: int, records: Sequence[Record]) -> int:
        """Write records of an open transaction; return the offset of the first."""
        first = self.written
        self._open.setdefault(pid, first)
        self.epochs[pid] = epoch
        self.entries += [Entry(pid, record) for record in records]
        return first

    def append_plain(self, records: Sequence[Record]) -> None:
        """Write records outside of any transaction."""
        self.entries += [Entry(-1, record) for record in records]

    def mark(self, pid: int, *, epoch: int, commit: bool) -> None:
        """Write the marker of a transaction."""
        first = self._open.pop(pid, self.written)
        if not commit:
            self._aborted |= {o for o in range(first, self.written) if self.entries[o].pid == pid}
        self.epochs[pid] = epoch
        self.entries.append(Entry(pid, Mark.COMMIT if commit else Mark.ABORT))

    def visible(self) -> list[tuple[int, Record]]:
        """Return what a read_committed reader sees, by offset."""
        return self._records(range(self.stable))

    def first(self, start: int, *, committed: bool) -> list[int]:
        """Return the first two offsets from `start` on with a record: visible ones, or any."""
        offsets = range(max(start, self.start), self.stable if committed else self.written)
        return [
            o
            for o in offsets
            if isinstance(self.entries[o].content, Record)
            and not (committed and o in self._aborted)
        ][:2]

    def decided(self, committed: Iterable[int]) -> list[tuple[int, Record]]:
        """
        Return what a read_committed reader sees, or will see after all markers.

        Args:
            committed: Producer ids with a decided commit whose marker is pending.
        """
        known = set(committed)
        return self._records(
            o
            for o, entry in enumerate(self.entries)
            if o < self._open.get(entry.pid, self.written) or entry.pid in known
        )

    def _records(self, offsets: Iterable[int]) -> list[tuple[int, Record]]:
        return [
            (o, content)
            for o in offsets
            if o not in self._aborted and isinstance(content := self.entries[o].content, Record)
        ]
