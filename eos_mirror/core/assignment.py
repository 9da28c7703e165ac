"""Assigns source partitions to tasks, where no consumer group does."""

from collections import Counter
from collections.abc import Collection, Mapping

from eos_mirror.core.records import TopicPartition


def assign(
    before: Mapping[TopicPartition, int], partitions: Collection[TopicPartition], *, slots: int
) -> dict[TopicPartition, int]:
    """
    Return the slot of the task that mirrors each partition.

    A partition never moves to another task, so no two tasks mirror it at the same time. A new one
    goes to the task with the fewest partitions.

    Args:
        before: The assignment until now.
        partitions: What is mirrored from now on.
        slots: Number of tasks, at least one.
    """
    wanted = set(partitions)
    kept = {partition: slot for partition, slot in before.items() if partition in wanted}
    loads = Counter(kept.values())
    for partition in sorted(wanted - kept.keys()):
        slot = min(range(slots), key=lambda number: (loads[number], number))
        kept[partition] = slot
        loads[slot] += 1
    return kept
