"""A user's rebalance listener hears what the engine hears, and cannot harm it."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import pytest

from eos_mirror.core.rebalance_listener import ListenerSpec
from eos_mirror.core.records import TopicPartition
from eos_mirror.errors import RestartTask
from eos_mirror.ports import Polled, RebalanceListener
from eos_mirror.replication.announced_source import AnnouncedSource

A0 = TopicPartition("a", 0)
CALLS: list[tuple[str, str]] = []
"""Who was called, and what for, in order."""


class Heard:
    """A user's listener; with the argument `fails`, it raises."""

    def __init__(self, config: Mapping[str, str]) -> None:
        self._fails = config.get("rebalance.listener.args") == "fails"

    def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        """Note it."""
        self._note("assigned", partitions)

    def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        """Note it."""
        self._note("revoked", partitions)

    def on_partitions_lost(self, partitions: Sequence[TopicPartition]) -> None:
        """Note it."""
        self._note("lost", partitions)

    def _note(self, what: str, partitions: Sequence[TopicPartition]) -> None:
        CALLS.append(("user", f"{what} {partitions}"))
        if self._fails:
            raise ValueError(what)


class Engine:
    """The engine's listener."""

    def on_granted(self, partitions: Sequence[TopicPartition]) -> None:
        """Note it."""
        CALLS.append(("engine", f"assigned {partitions}"))

    def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        """Note it."""
        CALLS.append(("engine", f"revoked {partitions}"))

    def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
        """Note it."""
        CALLS.append(("engine", f"lost {partitions}"))


class Rebalancing:
    """A source whose poll is a rebalance."""

    def __init__(self, listener: RebalanceListener) -> None:
        self._listener = listener

    def poll(self, *, wait: timedelta) -> Polled:  # noqa: ARG002 (of the port)
        """Assign a partition, take it back, and give it away."""
        self._listener.on_granted([A0])
        self._listener.on_revoked([A0])
        self._listener.on_lost([A0])
        return Polled()


def opened(arguments: str) -> AnnouncedSource:
    """Return a source with a user's listener."""
    CALLS.clear()
    spec = ListenerSpec(path=f"{__name__}.Heard", config=(("rebalance.listener.args", arguments),))
    open_source: Any = Rebalancing
    return AnnouncedSource(open_source, Engine(), spec.make())


def test_the_user_hears_of_what_the_task_has() -> None:
    """Of new partitions before the engine claims them, of others after it has let them go."""
    opened("").poll(wait=timedelta(0))

    names = [who for who, _ in CALLS]
    assert names == ["user", "engine", "engine", "user", "engine", "user"]
    kinds = ("assigned", "revoked", "lost")
    assert [what for _, what in CALLS[::2]] == [f"{kind} {[A0]}" for kind in kinds]


def test_a_failure_ends_the_task_after_the_poll() -> None:
    """The engine is called all the same: its callbacks commit and release."""
    source = opened("fails")

    with pytest.raises(RestartTask, match="rebalance listener failed: ValueError: lost"):
        source.poll(wait=timedelta(0))

    assert [who for who, _ in CALLS].count("engine") == 3
