"""Remembers which error stopped a partition, for the processes that come after."""

from collections.abc import Iterable, Mapping
from typing import Any

from eos_mirror.core.records import TopicPartition
from eos_mirror.errors import PartitionStopped, SourceDataLost


class StopCauses:
    """The class of the error that stopped each source partition last, by its name."""

    def __init__(self) -> None:
        self._causes: dict[str, str] = {}

    def of(self, partition: str) -> str:
        """Return the class; empty if the partition never stopped."""
        return self._causes.get(partition, "")

    def of_lost_source(self, stopped: Iterable[TopicPartition]) -> set[TopicPartition]:
        """Return those that stopped because the source no longer has their next record."""
        return {one for one in stopped if self.of(str(one)) == SourceDataLost.__name__}

    def completed(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """
        Return the fields of a `partition.stopped` with the class of the error.

        A new process of a task knows why its predecessor stopped a partition, but not the class.
        """
        partition, cause = fields["partition"], fields["cause"]
        if cause == PartitionStopped.__name__:
            cause = self._causes.get(partition, cause)
        self._causes[partition] = cause
        return {**fields, "cause": cause}
