"""Everything outside a mirror task."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from eos_mirror.core.internal_records import OffsetSync
from eos_mirror.core.ledger import Kind
from eos_mirror.core.records import TopicPartition
from eos_mirror.ports import (
    ClaimsLog,
    PlainProducer,
    RebalanceListener,
    Source,
    SourceMetadata,
    Target,
)


class OffsetSyncs(Protocol):
    """Where groups of the source go on, at least once."""

    def pairs(
        self, positions: Mapping[TopicPartition, tuple[TopicPartition, int]]
    ) -> Sequence[OffsetSync]:
        """
        Positions, and the ends of the copies as of now.

        Args:
            positions: Source partition and position by remote partition.
        """

    def write(self, pairs: Sequence[OffsetSync]) -> bool:
        """Send them without waiting; whether any has arrived since the last call."""


def _nobody() -> PlainProducer:
    raise RuntimeError("this adapters has no producer without transactions")


def _nowhere(kind: Kind, details: Mapping[str, Any]) -> None:
    raise RuntimeError(f"this adapters has no ledger for {kind}: {details}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapters:
    """
    The clusters, as a task reaches them.

    Attributes:
        claims: Exactly once only.
        open_plain_producer: At least once only.
        offset_syncs: Likewise, if the file wants them.
        note: Likewise. Writes an entry of the ledger, as of now, with details as `core/ledger.py`
            has them; returns when all in-sync replicas have it, raises RestartTask by class.
    """

    open_source: Callable[[RebalanceListener], Source]
    metadata: SourceMetadata
    target: Target
    claims: ClaimsLog | None = None
    open_plain_producer: Callable[[], PlainProducer] = _nobody
    offset_syncs: OffsetSyncs | None = None
    note: Callable[[Kind, Mapping[str, Any]], None] = _nowhere
