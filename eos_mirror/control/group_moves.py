"""Groups on the target, moved forward to where their checkpoints are."""

from collections.abc import Mapping
from typing import Any

from eos_mirror.core.checkpoints import forward
from eos_mirror.core.internal_records import Checkpoint
from eos_mirror.core.records import Position, TopicPartition
from eos_mirror.kafka.group_offsets import GroupOffsets
from eos_mirror.ports import GroupOffset

HAS_MEMBERS = "it has members on the target"


class GroupMoves:
    """
    Moves groups that nobody is in, never backwards; the broker refuses others once more.

    Attributes:
        waiting: By group, why it is not where its checkpoints are, as of the last look.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        """
        Args:
            config: Connection to the target and its security.
        """
        self._target = GroupOffsets(config, source=False)
        self.waiting: dict[str, str] = {}

    @property
    def requests(self) -> int:
        """Sent so far."""
        return self._target.requests

    def move(self, wanted: Mapping[str, Mapping[TopicPartition, Checkpoint]]) -> set[str]:
        """
        Those that were moved.

        Args:
            wanted: Checkpoints by group and partition of the target.

        Raises:
            RestartTask: By class.
        """
        free = self._target.without_members(wanted)
        waiting = dict.fromkeys(wanted.keys() - free, HAS_MEMBERS)
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
        waiting.update({g: r for g, r in self._target.refused.items() if g in free})
        for group in wanted:
            self.waiting.pop(group, None)
        self.waiting.update(waiting)
        return moved
