"""The group coordinator of the fake target: offsets of a group without members."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from eos_mirror.core.records import TopicPartition
from eos_mirror.ports import UNSTABLE, ShadowCommit, ShadowOffset, Unstable


class Stored(NamedTuple):
    """An offset commit, and its place in the coordinator's log: the later record wins."""

    place: int
    offset: ShadowOffset


class ShadowGroup:
    """A transactional commit is pending until its marker arrives."""

    def __init__(self) -> None:
        self.committed: dict[TopicPartition, Stored] = {}
        self.pending: dict[int, dict[TopicPartition, Stored]] = {}
        self.epochs: dict[int, int] = {}
        self._place = 0

    def append(self, pid: int, epoch: int, offsets: Mapping[TopicPartition, ShadowCommit]) -> None:
        """Handle TxnOffsetCommit: the offsets become pending."""
        self.epochs[pid] = epoch
        waiting = self.pending.setdefault(pid, {})
        for remote, commit in offsets.items():
            self._place += 1
            offset = ShadowOffset(position=commit.position, metadata=commit.metadata)
            waiting[remote] = Stored(self._place, offset)

    def mark(self, pid: int, *, epoch: int, commit: bool) -> None:
        """Apply the marker of a transaction."""
        self.epochs[pid] = epoch
        for remote, stored in self.pending.pop(pid, {}).items():
            if commit:
                self._settle(self.committed, remote, stored)

    @staticmethod
    def _settle(
        offsets: dict[TopicPartition, Stored], remote: TopicPartition, stored: Stored
    ) -> None:
        if remote not in offsets or offsets[remote].place < stored.place:
            offsets[remote] = stored

    def fetch(
        self, remote: TopicPartition, *, require_stable: bool
    ) -> ShadowOffset | Unstable | None:
        """Handle OffsetFetch. Each partition is stable or unstable by itself."""
        if require_stable and any(remote in waiting for waiting in self.pending.values()):
            return UNSTABLE
        stored = self.committed.get(remote)
        return None if stored is None else stored.offset

    def decided(self, committed: Iterable[int]) -> dict[TopicPartition, ShadowOffset]:
        """
        Return what stable reads will find.

        Args:
            committed: Producer ids with a decided commit whose marker is pending.
        """
        offsets = dict(self.committed)
        for pid in committed:
            for remote, stored in self.pending.get(pid, {}).items():
                self._settle(offsets, remote, stored)
        return {remote: stored.offset for remote, stored in offsets.items()}

    def forget(self, remote: TopicPartition) -> None:
        """Drop an offset, as expiry or the deletion of its topic does."""
        self.committed.pop(remote, None)

    def forget_topic(self, topic: str) -> None:
        """Drop all offsets of a deleted topic, pending ones too."""
        for offsets in (self.committed, *self.pending.values()):
            for remote in [one for one in offsets if one.topic == topic]:
                del offsets[remote]
