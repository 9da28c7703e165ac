"""The partitions that a task holds, and what has to be done before the next poll."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from eos_mirror.core.records import TopicPartition
from eos_mirror.errors import PartitionStopped
from eos_mirror.replication.partition import Claimed, OwnedPartition
from eos_mirror.replication.pauses import Pauses


@dataclass(slots=True)
class Holdings:
    """
    A task's partitions, by source partition. Those in `at_end` and `held_back` are owned, too.

    Attributes:
        owned: Partitions that are read and written.
        at_end: Partitions at an end that is not committed yet, past control records.
        held_back: Partitions from which nothing more is accepted before the next commit. Then they
            are read again from their positions.
        leaderless: What owned partitions wait for that have no leader, as of the last check.
        pauses: Which owned partitions are not read.
    """

    owned: dict[TopicPartition, OwnedPartition] = field(default_factory=dict)
    at_end: dict[TopicPartition, OwnedPartition] = field(default_factory=dict)
    held_back: dict[TopicPartition, OwnedPartition] = field(default_factory=dict)
    leaderless: Mapping[TopicPartition, str] = field(default_factory=dict)
    pauses: Pauses = field(default_factory=Pauses)

    @property
    def waiting(self) -> Mapping[TopicPartition, str]:
        """Why owned partitions are neither read nor at their end, by source partition."""
        return {p: reason for p, reason in self.leaderless.items() if p in self.owned}

    def readable(
        self, partition: TopicPartition, faults: Mapping[TopicPartition, PartitionStopped]
    ) -> OwnedPartition | None:
        """Return the partition; None if something polled earlier must be read again first."""
        if partition in faults or partition in self.held_back:
            return None
        return self.owned.get(partition)

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """Give up partitions and their positions."""
        for partition in partitions:
            for held in (self.owned, self.at_end, self.held_back):
                held.pop(partition, None)

    def hold_back(self, partitions: Iterable[OwnedPartition]) -> None:
        """Accept nothing more from these before the next commit."""
        self.held_back.update({owned.source: owned for owned in partitions})

    def taken_back(self) -> list[OwnedPartition]:
        """Stop holding partitions back; return those that are still owned."""
        held = [owned for source, owned in self.held_back.items() if source in self.owned]
        self.held_back.clear()
        return held

    def give_up(self, *, now: float) -> list[Claimed]:
        """Give up all partitions and their positions; return them, to be claimed again."""
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
