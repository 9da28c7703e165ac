"""The idempotent producer of at-least-once mode: no transactions, and no failure is lost."""

import time
from collections.abc import Callable
from datetime import timedelta

from eos_mirror.core.side import Side
from eos_mirror.wire.cluster import Cluster
from eos_mirror.wire.passing import PassLimits
from eos_mirror.wire.sending import INIT_WITHIN_S, ProducerSettings, Sending, raise_refused
from eos_mirror.wire.transactions import plain_producer_id
from eos_mirror.wire.translate import translated


class PlainId:
    """A producer id without transactions. Implements `outbox.Identity`."""

    transactional_id: str | None = None
    joins_by_writing = True

    def __init__(self, producer_id: int, epoch: int) -> None:
        self.producer_id = producer_id
        self.epoch = epoch


class WirePlainProducer(Sending):
    """Implements `ports.PlainProducer`. Used by one thread."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        settings: ProducerSettings,
        limits: Callable[[str], PassLimits],
        written: dict[str, int],
    ) -> None:
        """
        Get a producer id; for the arguments, see `Sending`.

        Raises:
            RestartTask: The target did not answer.
        """
        with translated("get a producer id", side=Side.TARGET):
            until = time.monotonic() + INIT_WITHIN_S
            identity = PlainId(*plain_producer_id(cluster, until=until))
        super().__init__(cluster, identity, settings=settings, limits=limits, written=written)

    def flush(self, *, within: timedelta) -> None:
        """See `ports.PlainProducer`."""
        with self._writing("flush"):
            self._drain(time.monotonic() + within.total_seconds())
        try:
            raise_refused(self.outbox)
        finally:
            self.outbox.begin(new_epoch=False)
