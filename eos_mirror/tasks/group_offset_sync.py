"""Advances offsets of inactive target groups to their checkpoints (MM2: syncGroupOffset)."""

import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

from eos_mirror.core.checkpoints import forward
from eos_mirror.core.internal_records import Checkpoint
from eos_mirror.core.records import Position, TopicPartition
from eos_mirror.core.retries import Retries
from eos_mirror.core.side import Side
from eos_mirror.kafka.group_offsets import HAS_MEMBERS, GroupOffsets, Refusal
from eos_mirror.ports import GroupOffset


class GroupOffsetSync:
    """
    Syncs the offsets of groups without members, never backwards.

    The broker, too, refuses a group that has members.

    Attributes:
        waiting: By group, why its offsets were not synced at the last attempt.
    """

    def __init__(self, config: Mapping[str, Any], *, before_wait: Callable[[], None]) -> None:
        """
        Args:
            config: Connection to the target and its security.
            before_wait: Called before each wait, as in `GroupOffsets`.
        """
        self._target = GroupOffsets(config, side=Side.TARGET, before_wait=before_wait)
        self._retries = Retries()
        self.waiting: dict[str, str] = {}

    @property
    def requests(self) -> int:
        """Requests sent so far."""
        return self._target.requests

    def move(self, wanted: Mapping[str, Mapping[TopicPartition, Checkpoint]]) -> set[str]:
        """
        Sync the offsets, and return the synced groups.

        A group that cannot be synced is tried again later, and does not delay the others.

        Args:
            wanted: Checkpoints by group and partition of the target.

        Raises:
            RestartTask: No broker answered (TargetUnavailable).
        """
        now_s = time.monotonic()
        due = wanted.keys() - self._retries.waiting(wanted, now_s=now_s).keys()
        free = self._target.without_members(due)
        refused = {group: one for group, one in self._target.refused.items() if group in due}
        there = self._target.read(free)
        moves = {}
        for group in free - self._target.refused.keys():
            offsets = {p: one.position.next_offset for p, one in there.get(group, {}).items()}
            moves[group] = {
                partition: GroupOffset(
                    position=Position(checkpoint.downstream, None), metadata=checkpoint.metadata
                )
                for partition, checkpoint in forward(wanted[group], offsets).items()
            }
        moved = self._target.write({group: some for group, some in moves.items() if some})
        refused.update({group: one for group, one in self._target.refused.items() if group in free})
        self._note(due, free, refused, now_s)
        return moved

    def _note(
        self,
        due: Collection[str],
        free: Collection[str],
        refused: Mapping[str, Refusal],
        now_s: float,
    ) -> None:
        """Record why groups wait. A coordinator that is briefly unavailable is no reason yet."""
        for group in due:
            one = refused.get(group)
            before = self.waiting.pop(group, None)
            if one is not None and (
                self._retries.refused(group, one.reason, now_s=now_s, may_pass=one.may_pass)
                or before == one.reason
            ):
                self.waiting[group] = one.reason
            elif one is None and group not in free:
                self.waiting[group] = HAS_MEMBERS
        self._retries.accepted(set(due) - refused.keys())
