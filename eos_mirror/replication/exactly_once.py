"""Exactly once: claims, transactions, and positions in the shadow group on the target."""

from collections.abc import Callable, Iterable

from eos_mirror.core.messages import MirrorConfig
from eos_mirror.core.records import RecordRun, TopicPartition
from eos_mirror.core.topic_limits import RefusedRecords
from eos_mirror.ports import ClaimsLog, TaskContext, TransactionalProducer
from eos_mirror.replication.acquisition import Acquisition
from eos_mirror.replication.adapters import Adapters
from eos_mirror.replication.config import Fencing
from eos_mirror.replication.ownership import Ownership
from eos_mirror.replication.partition import OwnedPartition
from eos_mirror.replication.positions import Positions
from eos_mirror.replication.transaction import Transaction


class ExactlyOnce:
    """Implements `Mode`."""

    advises = True
    reopens = True
    drops = False
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

    def open(self) -> Transaction:
        """See `Mode`: return the first incarnation."""
        return self._transaction(self._ownership.new_incarnation())

    def reopen(self) -> Transaction:
        """See `Mode`: return a new incarnation that claims again what we hold."""
        old = self._producer
        transaction = self._transaction(self._ownership.renew())
        if old is not None:
            old.close()
        return transaction

    def drop(self, owned: OwnedPartition, run: RecordRun, refused: RefusedRecords) -> None:
        """See `Mode`: never called, as this mode drops nothing."""
        raise RuntimeError(f"exactly once drops nothing: {owned.source} {run} {refused}")

    def release(self, remotes: Iterable[TopicPartition]) -> None:
        """See `Mode`: write tombstones for the claims."""
        self._ownership.release(remotes)

    def _transaction(self, producer: TransactionalProducer) -> Transaction:
        self._producer = producer
        self._context.event(
            "incarnation.started", {"transactional_id": self._ownership.transactional_id}
        )
        return Transaction(
            producer,
            self._context,
            incarnation=self._ownership.incarnation,
            claims_topic_id=self._config.claims_topic_id,
            now=self._now,
            reached=self._reached,
        )
