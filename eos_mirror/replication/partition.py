"""One partition that a task holds, from claim to release."""

from dataclasses import dataclass

from eos_mirror.core.map_records import StartRecord
from eos_mirror.core.metadata import ShadowMetadata, encode
from eos_mirror.core.offset_map import MapTail
from eos_mirror.core.records import Position, TopicPartition
from eos_mirror.core.suspects import BatchLimit
from eos_mirror.ports import ShadowCommit


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """A partition under our claim whose position is not known yet."""

    source: TopicPartition
    remote: TopicPartition
    topic_id: str
    partitions: int
    since: float


@dataclass(slots=True, kw_only=True)
class OwnedPartition:
    """
    A partition that this task reads and writes.

    Invariants:
        A: `position` is the end of what was handed to the producer; `committed` is the end of what
           is decided. They differ only while a transaction is open or at a partition's idle end.
        B: `tail` covers exactly what was committed since the last spilled segment.

    Attributes:
        topic_id: Identity of the source topic, checked on every acquire and every few seconds.
        sequence: Number of the next commit; grows for the life of the shadow offset.
        committed: None before the first commit of the partition.
        committed_at: Monotonic seconds of the last commit, for the keep-alive.
        expected_downstream: Where this incarnation's next record lands if nothing but one commit
            marker lies between; None before its first transaction.
        partitions: Partition count of the source topic when it was first mirrored.
        batch_limit: None if the remote topic accepts any batch that the producer makes. Changes
            only between two transactions.
        sent_to: End of what was handed to the producer since the last commit.
    """

    source: TopicPartition
    remote: TopicPartition
    topic_id: str
    position: Position
    tail: MapTail
    sequence: int
    committed: int | None
    committed_at: float
    expected_downstream: int | None = None
    partitions: int = 0
    batch_limit: BatchLimit | None = None
    sent_to: int = 0

    @property
    def needs_commit(self) -> bool:
        """True if the committed position is not the position reached."""
        return self.committed != self.position.next_offset

    def commit_of(self, *, incarnation: str, claims_topic_id: str) -> ShadowCommit:
        """Return the shadow offset to commit now."""
        metadata = ShadowMetadata(
            topic_id=self.topic_id,
            claims_topic_id=claims_topic_id,
            incarnation=incarnation,
            sequence=self.sequence,
            tail=self.tail.encode(),
        )
        return ShadowCommit(position=self.position, metadata=encode(metadata))


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """
    Where a partition resumes.

    Attributes:
        start: Only for a new partition: its start record, to be committed before its first record.
    """

    owned: OwnedPartition
    start: StartRecord | None = None
