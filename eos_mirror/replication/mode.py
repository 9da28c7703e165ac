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
    What is written until the next commit. The first record opens it.

    Attributes:
        opened_at: Monotonic seconds of the first record.
        size_bytes: Bytes of values so far.
        records: Records so far, including dropped ones: their positions are committed, too.
    """

    opened_at: float
    size_bytes: int
    records: int

    @property
    def is_open(self) -> bool:
        """True if records or offsets wait for a commit."""

    def add(self, owned: OwnedPartition, run: RecordRun) -> RecordRun | None:
        """
        Send a run of an owned partition, and move its position after it.

        A topic with a small limit may accept only a part of it: the position shows how far. The
        other records are sent in the next transaction.

        Returns:
            The part that was sent; None if nothing was.

        Raises:
            RefusedByTarget: The client itself refuses a record.
        """

    def start(self, starts: Mapping[TopicPartition, StartRecord]) -> None:
        """Store how remote partitions begin, before their first record is sent."""

    def commit(self, also: Iterable[OwnedPartition], *, spill: bool) -> int:
        """
        Commit what was sent, and the positions of `also`.

        Args:
            spill: These partitions are released: leave nothing in memory that others need.

        Returns:
            Records sent and committed.

        Raises:
            NewIncarnation: Committed; continue with `Mode.reopen`.
            RefusedByTarget: Exactly once: nothing is committed; continue with `Mode.reopen`. At
                least once: everything is committed except the refused partitions. Their positions
                are back where they were, or before the refused batch.
            TransactionVoid: Exactly once: nothing is committed; continue with `Mode.reopen`,
                without its partitions.
            RestartTask, FatalError: Exit the process.
        """


class Mode(Protocol):
    """
    One of the two delivery modes, for the life of a task.

    Attributes:
        acquisition: Brings partitions from granted to owned.
        advises: Positions are kept elsewhere; the source group's are informational only.
        reopens: A refused batch spoils everything that is not committed.
        drops: A record that the target refuses is dropped or moved to the quarantine, and its
            partition continues.
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
        """Records that the target refused, and that were dropped as configured."""

    @property
    def quarantined(self) -> int:
        """Records that the target refused, and that were moved to the quarantine."""

    def open(self) -> Writer:
        """Return the first writer of the task."""

    def reopen(self) -> Writer:
        """Return a new writer with the partitions that the task holds."""

    def drop(self, owned: OwnedPartition, run: RecordRun, refused: RefusedRecords) -> None:
        """
        Drop these records of the run, at least the first one, and move the position after them.

        Raises:
            RecordRefused: The quarantine does not accept the first one.
        """

    def release(self, remotes: Iterable[TopicPartition]) -> None:
        """Let others write these; every transaction of ours on them is decided."""
