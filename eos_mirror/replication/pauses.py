"""Paused topics: their partitions stay owned, with claims and positions, but are not read."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from eos_mirror.core.records import TopicPartition
from eos_mirror.replication.partition import OwnedPartition

Owned = Mapping[TopicPartition, OwnedPartition]


class Pauses:
    """
    Which owned partitions are not read.

    Invariants:
        A: What is paused or resumed changes between two transactions only.
        B: A partition that resumes is acquired again; its position in memory is not used.
    """

    def __init__(self) -> None:
        self._topics: Collection[str] = ()
        self._paused: set[TopicPartition] = set()

    @property
    def topics(self) -> tuple[str, ...]:
        """Return the topics of which nothing is read, sorted."""
        return tuple(sorted(self._topics))

    def have_changed(self, topics: Collection[str]) -> bool:
        """Return True if other topics are to be paused than before. Costs nothing."""
        return topics is not self._topics

    def pause(self, topics: Collection[str], owned: Owned) -> list[TopicPartition]:
        """Take over the topics to pause; return the owned partitions that must not be read."""
        self._topics = topics
        stopping = [p for p in owned if p.topic in topics and p not in self._paused]
        self._paused.update(stopping)
        return stopping

    def resumed(self, owned: Owned) -> list[OwnedPartition]:
        """Return the owned partitions that are not paused any more; they count as read again."""
        over = [p for p in self._paused if p.topic not in self._topics]
        self._paused.difference_update(over)
        return [owned[p] for p in over if p in owned]

    def to_read(self, owned: Iterable[OwnedPartition]) -> list[OwnedPartition]:
        """Return the partitions that may be read."""
        return [one for one in owned if one.source not in self._paused]

    def own(self, new: Sequence[OwnedPartition]) -> None:
        """Note partitions that are owned now: those of paused topics are not read."""
        sources = {one.source for one in new}
        self._paused -= sources
        self._paused.update(p for p in sources if p.topic in self._topics)
