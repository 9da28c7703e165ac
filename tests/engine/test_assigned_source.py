"""Partitions that the driver assigns reach the engine as those of a group do."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import pytest

from eos_mirror.core.messages import Orders
from eos_mirror.core.records import Position, TopicPartition
from eos_mirror.errors import RestartTask
from eos_mirror.ports import Polled, TaskContext
from eos_mirror.replication.assigned_source import AssignedSource
from eos_mirror.replication.config import COMMIT_BUDGET, FLUSH_BUDGET, WATCH_MARGIN
from eos_mirror.replication.suspension import LIMIT_S, Suspension
from eos_mirror.runtime.leases import DEFAULT_TTL

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


class Notes:
    """The source below, the listener and the context: notes what is called, in order."""

    def __init__(self, slot: int) -> None:
        self.slot = slot
        self.now = Orders()
        self.now_s = 0.0
        self.calls: list[tuple[str, list[TopicPartition]]] = []

    def orders(self) -> Orders:
        """Return the newest orders."""
        return self.now

    def on_granted(self, partitions: Sequence[TopicPartition]) -> None:
        """Note the call."""
        self.calls.append(("granted", list(partitions)))

    def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        """Note the call."""
        self.calls.append(("revoked", list(partitions)))

    def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
        """Nothing is ever lost."""
        raise AssertionError(partitions)

    def unassign(self, partitions: Sequence[TopicPartition]) -> None:
        """Note the call."""
        self.calls.append(("unassigned", list(partitions)))

    def assign(self, positions: Mapping[TopicPartition, Position]) -> None:
        """Note the call."""
        self.calls.append(("assigned", list(positions)))

    def poll(self, *, wait: timedelta) -> Polled:  # noqa: ARG002 (of the port)
        """Return nothing."""
        return Polled()


def assigned(slot: int) -> tuple[Notes, AssignedSource]:
    """Return a source whose task has this slot."""
    notes = Notes(slot)
    source: Any = notes
    suspension = Suspension(lambda: notes.now_s)
    return notes, AssignedSource(source, notes, cast("TaskContext", notes), suspension)


def order(notes: Notes, source: AssignedSource, slots: Mapping[TopicPartition, int]) -> None:
    """Send new orders, and poll."""
    notes.now = replace(notes.now, assigned=slots)
    source.poll(wait=timedelta(0))


def test_a_task_is_granted_what_is_assigned_to_its_slot() -> None:
    """Orders that assign the same again are no rebalance."""
    notes, source = assigned(1)

    order(notes, source, {A0: 0, A1: 1})
    order(notes, source, {A0: 0, A1: 1})

    assert notes.calls == [("granted", [A1])]


def test_a_partition_is_released_before_it_is_not_read_any_more() -> None:
    """The listener commits what was sent while the partition is still its own."""
    notes, source = assigned(0)
    order(notes, source, {A0: 0, A1: 0})

    order(notes, source, {A0: 0})

    assert notes.calls[1:] == [("revoked", [A1]), ("unassigned", [A1])]


def test_a_task_that_was_suspended_for_too_long_ends() -> None:
    """Its successor may mirror its partitions; nothing is committed for them any more."""
    notes, source = assigned(0)
    order(notes, source, {A0: 0})
    notes.now_s += LIMIT_S
    source.poll(wait=timedelta(0))

    notes.now_s += LIMIT_S + 1
    with pytest.raises(RestartTask, match="did not poll for 23 s"):
        source.poll(wait=timedelta(0))


def test_a_commit_ends_before_a_successor_may_begin() -> None:
    """The limit is longer than a flush, and leaves time for a commit before the lease is over."""
    assert timedelta(seconds=LIMIT_S) > FLUSH_BUDGET + WATCH_MARGIN
    assert timedelta(seconds=LIMIT_S) + COMMIT_BUDGET + WATCH_MARGIN < DEFAULT_TTL
