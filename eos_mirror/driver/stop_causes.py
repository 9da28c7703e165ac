"""Remembers which error stopped a partition, for the processes that come after."""

from collections.abc import Mapping
from typing import Any

from eos_mirror.errors import PartitionStopped


class StopCauses:
    """The class of the error that stopped each source partition last, by its name."""

    def __init__(self) -> None:
        self._causes: dict[str, str] = {}

    def of(self, partition: str) -> str:
        """Return the class; empty if the partition never stopped."""
        return self._causes.get(partition, "")

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
