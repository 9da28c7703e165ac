"""The fake target's transaction coordinator: how Kafka 3.7 and newer treat clients with TV1."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final, Protocol

from eos_mirror.core.records import TopicPartition

MAX_EPOCH: Final = 32_767


class Code(Enum):
    """Why a broker refuses a request."""

    FENCED = auto()
    MAPPING = auto()
    CONCURRENT = auto()
    INVALID_STATE = auto()
    UNKNOWN_TOPIC = auto()


class Refused(Exception):  # noqa: N818 (an answer, not a failure)
    """A broker refused a request."""

    def __init__(self, code: Code) -> None:
        super().__init__(code.name)
        self.code = code


class Status(Enum):
    """Status of a transaction. PREPARE_* is decided, COMPLETE_* has all its markers."""

    EMPTY = auto()
    ONGOING = auto()
    PREPARE_COMMIT = auto()
    PREPARE_ABORT = auto()
    COMPLETE_COMMIT = auto()
    COMPLETE_ABORT = auto()


DECIDED: Final = (Status.PREPARE_COMMIT, Status.PREPARE_ABORT)


@dataclass(slots=True, kw_only=True)
class Transaction:
    """What the coordinator knows about a transactional id."""

    pid: int
    epoch: int
    status: Status = Status.EMPTY
    participants: set[TopicPartition] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Identity:
    """What a client sends with every transactional request."""

    txid: str
    pid: int
    epoch: int


class Participant(Protocol):
    """A partition or group that markers are written to."""

    epochs: dict[int, int]

    def mark(self, pid: int, *, epoch: int, commit: bool) -> None:
        """Apply the marker of a transaction."""


class Coordinator:
    """
    Handles requests, one method each.

    Args:
        participants: Partitions and groups by name; one that is gone needs no marker.

    Attributes:
        changes: Counts decisions and markers: each may change what readers see.
    """

    def __init__(self, participants: Mapping[TopicPartition, Participant]) -> None:
        self.auto_markers = True
        self.max_epoch = MAX_EPOCH
        self.changes = 0
        self._participants = participants
        self._txns: dict[str, Transaction] = {}
        self._last_pid = 0

    def init(self, txid: str) -> Identity:
        """
        InitProducerId: abort what is open, wait for markers, bump the epoch.

        Raises:
            Refused: CONCURRENT while a transaction waits for markers. Send it again.
        """
        txn = self._txns.get(txid)
        if txn is None:
            txn = self._txns[txid] = self._new(0)
            return Identity(txid, txn.pid, txn.epoch)
        if txn.status is Status.ONGOING:
            self._abort(txn)
        if txn.status in DECIDED:
            raise Refused(Code.CONCURRENT)
        if txn.epoch + 1 >= self.max_epoch:
            txn = self._txns[txid] = self._new(0)
        else:
            txn.epoch += 1
            txn.status = Status.EMPTY
        return Identity(txid, txn.pid, txn.epoch)

    def _new(self, epoch: int) -> Transaction:
        self._last_pid += 1
        return Transaction(pid=self._last_pid, epoch=epoch)

    def _abort(self, txn: Transaction) -> None:
        """Abort by the coordinator itself, which also fences the writer."""
        txn.epoch += 1
        self._decide(txn, Status.PREPARE_ABORT)

    def _decide(self, txn: Transaction, status: Status) -> None:
        txn.status = status
        self.changes += 1
        if self.auto_markers or not txn.participants:
            for participant in sorted(txn.participants):
                self._mark(txn, participant)
            self._complete(txn)

    def _known(self, who: Identity) -> Transaction:
        txn = self._txns.get(who.txid)
        if txn is None or txn.pid != who.pid:
            raise Refused(Code.MAPPING)
        if txn.epoch != who.epoch:
            raise Refused(Code.FENCED)
        return txn

    def add(self, who: Identity, participants: Collection[TopicPartition]) -> None:
        """Handle AddPartitionsToTxn and AddOffsetsToTxn."""
        if any(participant not in self._participants for participant in participants):
            raise Refused(Code.UNKNOWN_TOPIC)
        txn = self._known(who)
        if txn.status in DECIDED:
            raise Refused(Code.CONCURRENT)
        if txn.status is not Status.ONGOING:
            txn.status = Status.ONGOING
            txn.participants = set()
        txn.participants |= set(participants)

    def verify(self, who: Identity, participant: TopicPartition) -> None:
        """Verify the transaction before a partition accepts a write (KIP-890, part 1)."""
        if participant not in self._participants:
            raise Refused(Code.UNKNOWN_TOPIC)
        if who.epoch < self._participants[participant].epochs.get(who.pid, -1):
            raise Refused(Code.FENCED)
        txn = self._known(who)
        if txn.status is not Status.ONGOING or participant not in txn.participants:
            raise Refused(Code.INVALID_STATE)

    def commit(self, who: Identity) -> None:
        """Handle EndTxn(commit). TV1: it commits any transaction that is open under this epoch."""
        txn = self._known(who)
        if txn.status is Status.ONGOING:
            self._decide(txn, Status.PREPARE_COMMIT)
        elif txn.status is Status.PREPARE_COMMIT:
            raise Refused(Code.CONCURRENT)
        elif txn.status is not Status.COMPLETE_COMMIT:
            raise Refused(Code.INVALID_STATE)

    def time_out(self, txid: str) -> None:
        """Abort an open transaction: transaction.timeout.ms has passed."""
        if self._txns[txid].status is Status.ONGOING:
            self._abort(self._txns[txid])

    def expire(self, txid: str) -> None:
        """Forget an idle id: transactional.id.expiration.ms has passed."""
        if self._txns[txid].status not in (Status.ONGOING, *DECIDED):
            del self._txns[txid]

    def with_status(self, *statuses: Status) -> list[str]:
        """Return the transactional ids whose transaction has one of these statuses."""
        return [txid for txid, txn in self._txns.items() if txn.status in statuses]

    def committed_pids(self) -> list[int]:
        """Return the producer ids with a commit that has not reached every participant."""
        return [txn.pid for txn in self._txns.values() if txn.status is Status.PREPARE_COMMIT]

    def owed(self) -> list[tuple[str, TopicPartition]]:
        """Return the pending markers."""
        return [
            (txid, participant)
            for txid, txn in self._txns.items()
            if txn.status in DECIDED
            for participant in sorted(txn.participants)
        ]

    def write_marker(self, txid: str, participant: TopicPartition) -> None:
        """Write the marker of a decided transaction to one participant."""
        txn = self._txns[txid]
        self._mark(txn, participant)
        txn.participants.discard(participant)
        if not txn.participants:
            self._complete(txn)

    def lose_markers(self, participant: TopicPartition) -> None:
        """Treat decided transactions as complete for a participant, unmarked (KAFKA-20734)."""
        for txn in self._txns.values():
            if txn.status in DECIDED:
                txn.participants.discard(participant)

    def _mark(self, txn: Transaction, participant: TopicPartition) -> None:
        self.changes += 1
        if participant in self._participants:
            commit = txn.status is Status.PREPARE_COMMIT
            self._participants[participant].mark(txn.pid, epoch=txn.epoch, commit=commit)

    @staticmethod
    def _complete(txn: Transaction) -> None:
        commit = txn.status is Status.PREPARE_COMMIT
        txn.status = Status.COMPLETE_COMMIT if commit else Status.COMPLETE_ABORT
        txn.participants = set()
