"""The state of the topics of coordinators, without a broker."""

import pytest

from eos_mirror.kafka.coordinators import CoordinatorPartition, CoordinatorState, partition_of


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("", 0),
        ("hello", 99162322),
        ("polygenelubricants", 0),  # its hash is the smallest integer, which has no positive one
        ("\U0001f600", 1772899),
    ],
)
def test_a_partition_is_found_by_javas_hash(name: str, value: int) -> None:
    """Characters outside of the basic plane are two units, as in Java."""
    assert partition_of(name, 2**31) == value


def test_a_partition_without_a_leader_does_not_count_twice() -> None:
    """Its replicas are not in sync either, but a leader is what it needs."""
    state = CoordinatorState(
        is_missing=False,
        partitions={
            0: CoordinatorPartition(has_leader=True, in_sync=2),
            1: CoordinatorPartition(has_leader=True, in_sync=1),
            2: CoordinatorPartition(has_leader=False, in_sync=1),
        },
        min_in_sync=2,
    )

    assert (state.leaderless(), state.too_few_in_sync()) == ([2], [1])
    assert (state.leaderless({0, 1}), state.too_few_in_sync({0, 2})) == ([], [])


def test_an_unknown_minimum_is_no_fault() -> None:
    """The right to describe the configuration may be missing."""
    shrunk = {0: CoordinatorPartition(has_leader=True, in_sync=1)}

    assert CoordinatorState(is_missing=False, partitions=shrunk).too_few_in_sync() == []
