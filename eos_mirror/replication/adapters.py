"""Everything outside a mirror task."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from eos_mirror.core.internal_records import OffsetSync
from eos_mirror.core.ledger import Kind
from eos_mirror.core.records import TopicPartition
from eos_mirror.ports import Lane, SourceMetadata, Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapters:
    """
    The clusters, as a task of either mode reaches them, and the clocks.

    Attributes:
        now: Monotonic seconds.
        wall_ms: Milliseconds since the epoch.
    """

    lane: Lane
    metadata: SourceMetadata
    target: Target
    now: Callable[[], float]
    wall_ms: Callable[[], int]


class OffsetSyncs(Protocol):
    """Where groups of the source resume on the target. At least once only."""

    def pairs(
        self, positions: Mapping[TopicPartition, tuple[TopicPartition, int]]
    ) -> Sequence[OffsetSync]:
        """
        Pairs of these positions with the current ends of the copies.

        Args:
            positions: Source partition and position by remote partition.
        """

    def write(self, pairs: Sequence[OffsetSync]) -> bool:
        """Send them without waiting; whether any has arrived since the last call."""


class Ledger(Protocol):
    """Where a task notes what it dropped. At least once only."""

    def append(self, kind: Kind, details: Mapping[str, Any]) -> None:
        """
        Write an entry with the current time; returns when all in-sync replicas have it.

        Args:
            details: As `core/ledger.py` has them for this kind.

        Raises:
            TargetUnavailable: Not acknowledged in time; it may be there or not.
        """
