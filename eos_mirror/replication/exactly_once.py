"""Exactly once: claims, transactions, and positions in the shadow group on the target."""

from collections.abc import Callable, Iterable

from eos_mirror.core.records import RecordRun, TopicPartition
from eos_mirror.core.topic_limits import RefusedRecords
from eos_mirror.ports import TaskContext, TransactionalProducer
from eos_mirror.replication.acquisition import Acquisition
from eos_mirror.replication.adapters import Adapters
from eos_mirror.replication.config import TaskConfig
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
        config: TaskConfig,
        adapters: Adapters,
        context: TaskContext,
        *,
        now: Callable[[], float],
        reached: Callable[[str], None],
    ) -> None:
        """
        Args:
            now: Monotonic seconds.
            reached: Called at named points of a transaction.
        """
        self._config = config
        self._context = context
        self._now = now
        self._reached = reached
        if adapters.claims is None:
            raise ValueError("exactly once needs the claims log")
        self._producer: TransactionalProducer | None = None
        self._ownership = Ownership(config, adapters.target, adapters.claims, context)
        self.acquisition = Acquisition(
            config,
            adapters,
            context,
            claims=self._ownership,
            positions=Positions(config, adapters.target, adapters.metadata),
            now=now,
        )

    @property
    def fences(self) -> int:
        """See `Mode`."""
        return self._ownership.fences

    def open(self) -> Transaction:
        """See `Mode`: the first incarnation."""
        return self._transaction(self._ownership.new_incarnation())

    def reopen(self) -> Transaction:
        """See `Mode`: a new incarnation that claims again what we hold."""
        old = self._producer
        transaction = self._transaction(self._ownership.renew())
        if old is not None:
            old.close()
        return transaction

    def drop(self, owned: OwnedPartition, run: RecordRun, refused: RefusedRecords) -> None:
        """See `Mode`: never."""
        raise RuntimeError(f"exactly once leaves nothing out: {owned.source} {run} {refused}")

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
