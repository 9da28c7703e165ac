"""Exactly once: claims, transactions, and positions in the shadow group on the target."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from eos_mirror.core.messages import MirrorConfig
from eos_mirror.core.records import RecordRun, TopicPartition
from eos_mirror.core.topic_limits import RefusedRecords
from eos_mirror.ports import ClaimsLog, TaskContext, TransactionalProducer
from eos_mirror.replication.acquisition import Acquisition
from eos_mirror.replication.adapters import Adapters
from eos_mirror.replication.config import Fencing
from eos_mirror.replication.dropped import DropNotes, Dropped
from eos_mirror.replication.ownership import Ownership
from eos_mirror.replication.partition import OwnedPartition
from eos_mirror.replication.positions import Positions
from eos_mirror.replication.quarantine import Quarantine
from eos_mirror.replication.transaction import Hooks, Transaction


class ExactlyOnce:
    """Implements `Mode`."""

    advises = True
    reopens = True
    dropped = 0

    def __init__(
        self,
        config: MirrorConfig,
        adapters: Adapters,
        context: TaskContext,
        *,
        claims: ClaimsLog,
        fencing: Fencing = Fencing.CLAIMS,
        reached: Callable[[str], None] = lambda _: None,
    ) -> None:
        """
        Args:
            fencing: Anything but `CLAIMS` doubles records; tests show that the checker finds it.
            reached: Called at named points of a transaction; tests stop tasks there.
        """
        self._config = config
        self._context = context
        self._now = adapters.now
        self._reached = reached
        self._producer: TransactionalProducer | None = None
        self._notes = DropNotes(context, adapters.ledger, quarantine=config.quarantine)
        self._quarantine = (
            None
            if config.quarantine is None
            else Quarantine(config.quarantine, config, adapters.target, adapters.now)
        )
        self.drops = self._quarantine is not None
        self._ownership = Ownership(config.flow, adapters.lane, claims, context, fencing=fencing)
        self.acquisition = Acquisition(
            config,
            adapters,
            context,
            claims=self._ownership,
            positions=Positions(config, adapters.target, adapters.metadata, fencing=fencing),
        )

    @property
    def fences(self) -> int:
        """See `Mode`."""
        return self._ownership.fences

    @property
    def quarantined(self) -> int:
        """See `Mode`."""
        return self._notes.records

    def open(self) -> Transaction:
        """See `Mode`: return the first incarnation."""
        return self._begun(self._ownership.new_incarnation())

    def reopen(self) -> Transaction:
        """See `Mode`: return a new incarnation that claims again what we hold."""
        old = self._producer
        transaction = self._begun(self._ownership.renew())
        if old is not None:
            old.close()
        return transaction

    def drop(self, owned: OwnedPartition, run: RecordRun, refused: RefusedRecords) -> None:
        """See `Mode`: the quarantine gets them in the transaction that moves the position."""
        if self._quarantine is None:
            raise RuntimeError(f"{owned.source}: refused records without a quarantine")
        records = self._quarantine.accepted(owned, run, refused)
        moved = replace(refused, stop=refused.start + len(records))
        self._transaction.drop(Dropped.of(owned, run, moved), records)

    def release(self, remotes: Iterable[TopicPartition]) -> None:
        """See `Mode`: write tombstones for the claims."""
        self._ownership.release(remotes)

    def _begun(self, producer: TransactionalProducer) -> Transaction:
        self._producer = producer
        self._context.event(
            "incarnation.started", {"transactional_id": self._ownership.transactional_id}
        )
        self._transaction = Transaction(
            producer,
            self._context,
            self._config,
            incarnation=self._ownership.incarnation,
            hooks=Hooks(now=self._now, reached=self._reached, notes=self._notes),
        )
        return self._transaction
