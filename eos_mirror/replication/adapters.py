"""Everything that a mirror task uses from outside."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from eos_mirror.core.internal_records import OffsetSync
from eos_mirror.core.ledger import Kind
from eos_mirror.core.records import TopicPartition
from eos_mirror.ports import KnownTopic, Lane, SourceMetadata, Target
from eos_mirror.replication.suspension import Suspension


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapters:
    """
    Clusters and clocks, the same for a task of either mode.

    Attributes:
        ledger: Of the flow.
        now: Monotonic seconds.
        wall_ms: Milliseconds since the epoch.
        suspension: Of the task.
        identities: Says of which topics records were read.
    """

    lane: Lane
    metadata: SourceMetadata
    target: Target
    ledger: "Ledger"
    now: Callable[[], float]
    wall_ms: Callable[[], int]
    suspension: Suspension
    identities: "Identities"


class Identities(Protocol):
    """Says, before each commit, of which topics the records were read."""

    def topics(self, names: Sequence[str]) -> Mapping[str, KnownTopic]:
        """Return their ids. A topic without an answer cannot be another one."""


class OffsetSyncs(Protocol):
    """Writes where groups of the source resume on the target. At least once only."""

    def pairs(
        self, positions: Mapping[TopicPartition, tuple[TopicPartition, int]]
    ) -> Sequence[OffsetSync]:
        """
        Pair these positions with the current ends of their remote partitions.

        Args:
            positions: Source partition and position by remote partition.
        """

    def write(self, pairs: Sequence[OffsetSync]) -> bool:
        """Send pairs without waiting; return True if any has arrived since the last call."""


class Ledger(Protocol):
    """Log of the records that a task dropped or moved to the quarantine."""

    def append_all(self, kind: Kind, some: Sequence[Mapping[str, Any]]) -> None:
        """
        Write entries with the current time, and wait until all in-sync replicas have them.

        Args:
            some: Fields of this kind, for each entry; see docs/ledger.md.

        Raises:
            TargetUnavailable: They were not acknowledged in time; they may exist or not.
        """
