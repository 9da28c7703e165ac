"""What exactly once and at least once do differently, as the loop sees it."""

from collections.abc import Iterable, Mapping
from typing import Protocol

from eos_mirror.core.map_records import StartRecord
from eos_mirror.core.records import RecordRun, TopicPartition
from eos_mirror.core.topic_limits import RefusedRecords
from eos_mirror.replication.acquisition import Acquisition
from eos_mirror.replication.partition import OwnedPartition


class Writer(Protocol):
    """
    What is written until the next commit, begun with its first record.

    Attributes:
        opened_at: Monotonic seconds of the first record.
        size_bytes: Bytes of values so far.
        records: Records so far, also those that are left out: their positions are committed.
    """

    opened_at: float
    size_bytes: int
    records: int

    @property
    def is_open(self) -> bool:
        """Records or offsets wait for a commit."""

    def add(self, owned: OwnedPartition, run: RecordRun) -> RecordRun | None:
        """
        Send a run of an owned partition, and move its position after it.

        A topic with a small limit takes a part of it: the position says how far. The others
        follow in the next transaction.

        Returns:
            What of it was sent; None: nothing.

        Raises:
            RefusedByTarget: The client itself refuses a record.
        """

    def start(self, starts: Mapping[TopicPartition, StartRecord]) -> None:
        """Note how remote partitions begin, before their first record."""

    def commit(self, also: Iterable[OwnedPartition], *, spill: bool) -> int:
        """
        Commit what was sent, and the positions of `also`.

        Args:
            spill: These partitions are let go: leave nothing in memory that others need.

        Returns:
            Records sent and committed.

        Raises:
            NewIncarnation: Committed; continue with `Mode.reopen`.
            RefusedByTarget: Exactly once, nothing is committed; continue with `Mode.reopen`. At
                least once, everything is committed but the refused partitions, whose positions
                are back where they were, or before the refused batch.
            RestartTask, FatalError: End the process.
        """


class Mode(Protocol):
    """
    One of the two, for the life of a task.

    Attributes:
        acquisition: From granted to owned.
        advises: Positions are kept elsewhere; those of the source group are for people.
        reopens: A refused batch spoils everything that is not committed.
        drops: A record that the target refuses is left out, and its partition continues.
    """

    acquisition: Acquisition
    advises: bool
    reopens: bool
    drops: bool

    @property
    def fences(self) -> int:
        """Other writers that were fenced so far."""

    @property
    def dropped(self) -> int:
        """Records that the target refused, and that were left out as the file asks."""

    def open(self) -> Writer:
        """The first writer of the task."""

    def reopen(self) -> Writer:
        """A new writer with the partitions that the task holds."""

    def drop(self, owned: OwnedPartition, run: RecordRun, refused: RefusedRecords) -> None:
        """Leave these records of the run out, and move the position after them."""

    def release(self, remotes: Iterable[TopicPartition]) -> None:
        """Others may write these now; what we wrote there is decided."""
