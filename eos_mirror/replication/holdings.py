"""The partitions in a task's hands, and what is to be done with each before the next poll."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from eos_mirror.core.records import TopicPartition
from eos_mirror.errors import PartitionStopped
from eos_mirror.replication.partition import Claimed, OwnedPartition


@dataclass(slots=True)
class Holdings:
    """
    By source partition; everything in the other two is owned.

    Attributes:
        owned: Read and written.
        at_end: Stand at an end that is not committed, past control records.
        held_back: Nothing more is taken of them before the next commit; then they are read again
            from their positions.
    """

    owned: dict[TopicPartition, OwnedPartition] = field(default_factory=dict)
    at_end: dict[TopicPartition, OwnedPartition] = field(default_factory=dict)
    held_back: dict[TopicPartition, OwnedPartition] = field(default_factory=dict)

    def readable(
        self, partition: TopicPartition, faults: Mapping[TopicPartition, PartitionStopped]
    ) -> OwnedPartition | None:
        """The partition, unless something that was polled before this must be read again."""
        if partition in faults or partition in self.held_back:
            return None
        return self.owned.get(partition)

    def hold_back(self, partitions: Iterable[OwnedPartition]) -> None:
        """Take nothing more of these before the next commit."""
        self.held_back.update({owned.source: owned for owned in partitions})

    def taken_back(self) -> list[OwnedPartition]:
        """Those that were held back and are still owned; they no longer are held back."""
        held = [owned for source, owned in self.held_back.items() if source in self.owned]
        self.held_back.clear()
        return held

    def give_up(self, *, now: float) -> list[Claimed]:
        """Everything, with the positions of an incarnation that ends; to be claimed again."""
        claimed = [
            Claimed(
                source=owned.source,
                remote=owned.remote,
                topic_id=owned.topic_id,
                partitions=owned.partitions,
                since=now,
            )
            for owned in self.owned.values()
        ]
        self.owned.clear()
        self.at_end.clear()
        self.held_back.clear()
        return claimed
