"""The driver assigns partitions evenly, and never moves one."""

from eos_mirror.core.assignment import assign
from eos_mirror.core.records import TopicPartition


def parts(topic: str, count: int) -> list[TopicPartition]:
    """Return the partitions of a topic."""
    return [TopicPartition(topic, number) for number in range(count)]


def test_partitions_are_spread_evenly() -> None:
    """The partitions of each topic are on different tasks, as far as there are tasks."""
    assert assign({}, parts("a", 3) + parts("b", 3), slots=3) == {
        TopicPartition("a", 0): 0,
        TopicPartition("a", 1): 1,
        TopicPartition("a", 2): 2,
        TopicPartition("b", 0): 0,
        TopicPartition("b", 1): 1,
        TopicPartition("b", 2): 2,
    }


def test_a_new_partition_goes_to_the_task_with_the_fewest() -> None:
    """What was assigned before stays, also if it is uneven."""
    before = assign({}, parts("a", 4), slots=2)
    less = assign(before, [*parts("a", 1), TopicPartition("a", 2)], slots=2)
    assert less == {TopicPartition("a", 0): 0, TopicPartition("a", 2): 0}

    more = assign(less, [*less, *parts("b", 2)], slots=2)

    assert more == {**less, TopicPartition("b", 0): 1, TopicPartition("b", 1): 1}


def test_what_is_not_mirrored_any_more_is_assigned_to_nobody() -> None:
    """A topic that comes back is assigned as a new one."""
    assert assign({TopicPartition("a", 0): 1}, [], slots=2) == {}
