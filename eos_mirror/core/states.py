"""The state of a flow: what of it is mirrored, and what keeps the rest. Pure functions."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import chain

from eos_mirror.core.records import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowFacts:
    """
    What a run knows of one flow.

    Attributes:
        planned: Source partitions that it has to mirror.
        owned: Number of partitions that its tasks mirror. One at its end counts.
        failed: Partitions that stopped, with the reason.
        waiting: Partitions that cannot be acquired now, with the reason.
        refused: Source topics that are not mirrored, with the reason. They are not planned.
        ended: Why tasks, or the whole flow, ended for good, by their name.
        silent_tasks: Number of other tasks that have not reported yet.
    """

    planned: Collection[TopicPartition]
    owned: int = 0
    failed: Mapping[TopicPartition, str] = field(default_factory=dict)
    waiting: Mapping[TopicPartition, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    ended: Mapping[str, str] = field(default_factory=dict)
    silent_tasks: int = 0

    @property
    def starting(self) -> int:
        """Return the number of partitions that no task has yet, or that one is acquiring."""
        known = self.owned + len(self.failed.keys() | self.waiting.keys())
        return max(0, len(self.planned) - known)

    @property
    def is_starting(self) -> bool:
        """Return True if the state of some partitions will be known soon."""
        return not self.ended and (self.starting > 0 or self.silent_tasks > 0)

    @property
    def is_ready(self) -> bool:
        """Return True if everything that the configuration selects is mirrored."""
        return not (self.starting or self.silent_tasks or self.obstacles())

    def obstacles(self) -> dict[str, str]:
        """
        Return why something is not mirrored: by partition, by refused topic, by task or flow.

        Partitions that are only starting are not among them.
        """
        partitions = chain(
            ((str(p), f"failed: {reason}") for p, reason in sorted(self.failed.items())),
            ((str(p), f"waiting: {reason}") for p, reason in sorted(self.waiting.items())),
        )
        return {
            **{name: f"ended: {reason}" for name, reason in self.ended.items()},
            **dict(partitions),
            **{topic: f"refused: {reason}" for topic, reason in sorted(self.refused.items())},
        }

    def counts(self) -> dict[str, int]:
        """Return how many partitions are in each state, and how many topics are refused."""
        return {
            "mirroring": self.owned,
            "starting": self.starting,
            "waiting": len(self.waiting),
            "failed": len(self.failed),
            "refused": len(self.refused),
        }
