"""
Rebalance listeners: a user's class that is notified when a task gets or loses partitions.

It can do nothing to the records. Source: MirrorMaker 1's `--consumer.rebalance.listener` (KIP-3),
and the methods of Kafka's ConsumerRebalanceListener.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from eos_mirror.core.plugins import make
from eos_mirror.core.records import TopicPartition

ARGUMENTS: Final = "rebalance.listener.args"
LISTENER_HAS: Final = ("on_partitions_assigned", "on_partitions_revoked", "on_partitions_lost")


class UserListener(Protocol):
    """What the class must have. The constructor gets a mapping; docs/plugins.md names its keys."""

    def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> object:
        """Called when source partitions are assigned to the task, before any record is read."""

    def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> object:
        """Called when partitions are taken back, after their positions were committed."""

    def on_partitions_lost(self, partitions: Sequence[TopicPartition]) -> object:
        """Called when the group gave partitions to others already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerSpec:
    """
    The rebalance listener of a flow.

    Attributes:
        path: `module.Class`.
        config: The argument of the constructor, as pairs.
    """

    path: str
    config: tuple[tuple[str, str], ...] = ()

    def make(self) -> UserListener:
        """
        Create the listener.

        Raises:
            ConfigError: The class cannot be used.
        """
        made: UserListener = make(self.path, dict(self.config), LISTENER_HAS)
        return made
