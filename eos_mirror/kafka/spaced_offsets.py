"""Offsets that are read again and again, less often where a partition has no leader."""

import time
from collections.abc import Callable, Sequence

from eos_mirror.core.records import TopicPartition
from eos_mirror.core.retries import Retries
from eos_mirror.kafka.metadata import Offsets


class SpacedOffsets:
    """
    Asks for one kind of offset of many partitions. Used by one thread.

    Waiting for a partition without a leader takes some seconds, so it is asked less often.
    """

    def __init__(self, ask: Callable[[Sequence[TopicPartition]], Offsets]) -> None:
        self._ask = ask
        self._retries = Retries()

    def read(
        self, partitions: Sequence[TopicPartition]
    ) -> tuple[dict[TopicPartition, int], dict[TopicPartition, str]]:
        """
        Return the known offsets, and why the others are unknown.

        Raises:
            RestartTask: The cluster as a whole did not answer (SourceUnavailable or
                TargetUnavailable).
        """
        now_s = time.monotonic()
        waiting = self._retries.waiting(map(str, partitions), now_s=now_s)
        unknown = {one: waiting[str(one)] for one in partitions if str(one) in waiting}
        found, reasons = self._ask([one for one in partitions if one not in unknown])
        for one, reason in reasons.items():
            unknown[one] = str(reason)
            self._retries.refused(str(one), str(reason), now_s=now_s)
        self._retries.accepted(map(str, found))
        return found, unknown
