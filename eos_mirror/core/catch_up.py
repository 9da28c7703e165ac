"""The first catch-up of a flow: how much of what its source had at first is mirrored by now."""

from collections.abc import Collection, Mapping

from eos_mirror.core.records import TopicPartition


class CatchUp:
    """
    Compares positions with the ends of the first look. Used by one thread.

    A: a partition that is left out counts neither as done nor in the total.

    Attributes:
        done: Offsets that were mirrored since the first look.
        total: Offsets that had to be mirrored at the first look.
        is_over: True once every partition that counts has reached its end.
    """

    def __init__(self) -> None:
        self._stretches: dict[TopicPartition, tuple[int, int]] = {}
        self.done = self.total = 0
        self.is_over = False

    def look(
        self,
        seen: Mapping[TopicPartition, tuple[int, int]],
        *,
        left_out: Collection[TopicPartition],
    ) -> None:
        """
        Take what was measured now. The first look with a partition in it sets the ends.

        Args:
            seen: Position, and the end up to which can be mirrored.
            left_out: Partitions that nothing is mirrored of now.
        """
        if self.is_over or not seen:
            return
        self._stretches = self._stretches or dict(seen)
        self.done = self.total = 0
        for partition in self._stretches.keys() - set(left_out):
            start, end = self._stretches[partition]
            position, _ = seen.get(partition, (end, end))  # no longer mirrored
            self.done += min(max(start, position), end) - start
            self.total += end - start
        self.is_over = self.done >= self.total
