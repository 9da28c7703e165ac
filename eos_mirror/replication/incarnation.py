"""The incarnation of a task: its writer, and why it must be replaced by another one."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, NamedTuple

from eos_mirror.core.map_records import StartRecord
from eos_mirror.core.records import TopicPartition
from eos_mirror.errors import (
    NewIncarnation,
    PartitionStopped,
    RestartTask,
    TargetUnavailable,
    TransactionLost,
    TransactionVoid,
)
from eos_mirror.ports import TaskContext
from eos_mirror.replication.counters import Counters
from eos_mirror.replication.mode import Mode, Writer
from eos_mirror.replication.partition import Claimed

TRIES_FOR_S: Final = 45.0
"""A coordinator moves in seconds. After this time, a new process with new clients is the better
attempt; its supervisor waits longer each time."""

MOST_LOST: Final = 5
"""Transactions that are lost in a row. A target that answers each with an error, without delay,
would otherwise get new producers as fast as it answers."""


class Divided(NamedTuple):
    """
    What becomes of the partitions of an incarnation that was replaced.

    Attributes:
        kept: The next one has them.
        unwritten: They did not acknowledge records in time, and may be unable to.
        foreign: They have records of others in the transaction that was lost.
    """

    kept: list[Claimed]
    unwritten: list[Claimed]
    foreign: list[Claimed]


class Incarnation:
    """
    What a task writes with. Used by one thread.

    Attributes:
        writer: The open one.
        is_suspicious: The last commit may have been sent twice: no transaction may follow it.
        is_spoilt: The open transaction can never be committed.
    """

    def __init__(
        self, mode: Mode, context: TaskContext, counters: Counters, now: Callable[[], float]
    ) -> None:
        """
        Open the first writer.

        Args:
            now: Monotonic seconds.
        """
        self._mode, self._context, self._counters, self._now = mode, context, counters, now
        self._failing_since: float | None = None
        self.is_suspicious = self.is_spoilt = False
        self._foreign: Mapping[TopicPartition, PartitionStopped] = {}
        self._unwritten: Collection[TopicPartition] = ()
        self._lost, self._committed_before = 0, 0
        self.writer = mode.open()
        counters.incarnations += 1

    @property
    def is_over(self) -> bool:
        """True if it must be replaced before anything else is written."""
        return self.is_suspicious or self.is_spoilt

    def doubt(self, exc: NewIncarnation) -> None:
        """Note a commit that may have been sent twice."""
        self.is_suspicious = True
        self._context.event("commit.suspicious", {"reason": str(exc)})

    def start(self, starts: Mapping[TopicPartition, StartRecord]) -> None:
        """Store how partitions begin; see `Writer`."""
        try:
            self.writer.start(starts)
        except TransactionLost as exc:
            self.lose(exc)

    def lose(self, exc: TransactionLost) -> None:
        """
        Note that nothing of the open transaction may be committed or sent again.

        Raises:
            RestartTask: `MOST_LOST` were lost in a row. A supervisor waits before each new process.
        """
        self.is_spoilt = True
        self._unwritten = {*self._unwritten, *exc.unwritten}
        self._context.event("transaction.lost", {"reason": str(exc)})
        if self._counters.transactions > self._committed_before:
            self._lost = 0
        self._committed_before = self._counters.transactions
        self._lost += 1
        if self._lost == MOST_LOST:
            raise RestartTask(f"{MOST_LOST} transactions were lost in a row: {exc}") from exc

    def void(self, exc: TransactionVoid) -> None:
        """Note partitions because of which the open transaction can never be committed."""
        self.is_spoilt = True
        self._foreign = exc.faults

    def refused(self) -> bool:
        """Note that a batch was refused; return True if that spoils the transaction."""
        self.is_spoilt = self._mode.reopens
        return self.is_spoilt

    def replace(self) -> bool:
        """
        Replace the incarnation. The positions must be read again before the next transaction.

        Returns:
            False if the target does not answer now.

        Raises:
            TargetUnavailable: It has not answered for too long.
        """
        try:
            writer = self._mode.reopen()
        except TargetUnavailable:
            now = self._now()
            self._failing_since = now if self._failing_since is None else self._failing_since
            if now - self._failing_since > TRIES_FOR_S:
                raise
            return False
        self._failing_since = None
        self._take(writer)
        return True

    def divided(self, held: Iterable[Claimed]) -> "Divided":
        """
        Divide the partitions of the incarnation that was replaced.

        The claims of those that are not kept were needed until its transaction was decided.
        """
        divided = Divided([], [], [])
        for one in held:
            if one.source in self._foreign:
                divided.foreign.append(one)
            elif one.remote in self._unwritten:
                divided.unwritten.append(one)
            else:
                divided.kept.append(one)
        self._foreign, self._unwritten = {}, ()
        return divided

    def replace_spoilt(self) -> None:
        """Replace a spoilt one: nothing is released while a transaction on it is open."""
        if self.is_spoilt:
            self._take(self._mode.reopen())
            self.is_suspicious = True  # positions are read again before the next transaction

    def _take(self, writer: Writer) -> None:
        self.writer = writer
        self._counters.incarnations += 1
        self.is_suspicious = self.is_spoilt = False
