"""The group coordinator of the fake source: static members, and partitions that move."""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple

from eos_mirror.core.records import TopicPartition


class Change(Enum):
    """What a member learns in its next poll."""

    GRANTED = auto()
    REVOKED = auto()
    LOST = auto()


class News(NamedTuple):
    """A change and the partitions that it concerns."""

    change: Change
    partitions: Sequence[TopicPartition]


@dataclass(slots=True, eq=False)
class Member:
    """
    One process in the group.

    Attributes:
        held: Partitions that it was granted.
        is_fenced: Another process uses its instance id now.
        polls_until_heartbeat: Polls that still read before it learns that it was removed.
    """

    slot: int
    inbox: deque[News] = field(default_factory=deque)
    held: set[TopicPartition] = field(default_factory=set)
    is_fenced: bool = False
    polls_until_heartbeat: int = 0


class GroupCoordinator:
    """
    Attributes:
        heartbeat_polls: Polls that a member makes before it learns that it was removed.

    Invariant: in a graceful rebalance a partition is granted only after its owner released it; when
    the owner's session ended, it is granted immediately.
    """

    def __init__(self, partitions: Iterable[TopicPartition]) -> None:
        self.owners: dict[TopicPartition, int | None] = dict.fromkeys(partitions)
        self.moving: dict[TopicPartition, int] = {}
        self.heartbeat_polls = 0
        self._members: dict[int, Member] = {}

    def join(self, slot: int) -> Member:
        """Add a static member, new or back: it gets its slot's partitions and the unowned ones."""
        if slot in self._members:
            self._members[slot].is_fenced = True
            self._members[slot].polls_until_heartbeat = self.heartbeat_polls
        self._members[slot] = member = Member(slot)
        for partition, heir in list(self.moving.items()):
            if self.owners[partition] == slot:  # the new process never had it
                self._hand_over(partition, heir)
        mine = []
        for partition, owner in self.owners.items():
            if owner is None or owner == slot:
                self.owners[partition] = slot
                mine.append(partition)
        if mine:
            member.inbox.append(News(Change.GRANTED, mine))
        return member

    def move(self, heir: int, *partitions: TopicPartition) -> None:
        """Start a rebalance: the owners are asked to release these partitions."""
        asked: dict[int, list[TopicPartition]] = {}
        for partition in partitions:
            owner = self.owners[partition]
            if owner is None:
                self._hand_over(partition, heir)
            elif owner != heir and partition not in self.moving:
                self.moving[partition] = heir
                asked.setdefault(owner, []).append(partition)
        for owner, revoked in asked.items():
            if owner in self._members:
                self._members[owner].inbox.append(News(Change.REVOKED, revoked))

    def expire(self, slot: int, heir: int) -> None:
        """End the session of a slot: its partitions are given away immediately."""
        lost = sorted(p for p, owner in self.owners.items() if owner == slot)
        if not lost:
            return  # the member joins again, and nothing changes
        member = self._members.pop(slot, None)
        if member is not None:
            member.inbox.clear()
            member.inbox.append(News(Change.LOST, lost))
            member.polls_until_heartbeat = self.heartbeat_polls
        for partition, owner in self.owners.items():
            if owner == slot:
                self._hand_over(partition, self.moving.get(partition, heir))

    def rejoin(self, member: Member) -> None:
        """Subscribe again: the member releases everything and gets it back."""
        if member.held and self._members.get(member.slot) is member:
            held = sorted(p for p in member.held if p not in self.moving)
            member.inbox.append(News(Change.REVOKED, held))
            member.inbox.append(News(Change.GRANTED, held))

    def let_go(self, member: Member, partitions: Iterable[TopicPartition]) -> None:
        """Move the partitions: the member's revocation callback has returned."""
        if self._members.get(member.slot) is member:
            for partition in partitions:
                if partition in self.moving:
                    self._hand_over(partition, self.moving[partition])

    def _hand_over(self, partition: TopicPartition, heir: int) -> None:
        self.moving.pop(partition, None)
        self.owners[partition] = heir
        if heir in self._members:
            self._members[heir].inbox.append(News(Change.GRANTED, [partition]))
