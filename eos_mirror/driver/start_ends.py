"""The ends of the source when a run with `--once` began: it mirrors everything below them."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from eos_mirror.core.records import TopicPartition
from eos_mirror.errors import SourceUnavailable
from eos_mirror.kafka.metadata import ClusterMetadata
from eos_mirror.kafka.open_transactions import OpenTransaction, open_transactions

ENDS_WITHIN: Final = timedelta(seconds=10)
"""A run with `--once` waits this long for the end of a transaction that was open at its start."""


class StartEnds:
    """
    Asked once, at the start.

    Attributes:
        stable: Last stable offset of each partition that has a leader: as far as can be mirrored.
    """

    def __init__(
        self,
        metadata: ClusterMetadata,
        config: Mapping[str, Any],
        partitions: Sequence[TopicPartition],
    ) -> None:
        """
        Args:
            metadata: Asks the source.
            config: Client settings for connection and security of the source.
            partitions: Planned source partitions.

        Raises:
            NotAuthorized: A right on one of the topics is missing.
            SourceUnavailable: The source does not answer.
        """
        self._metadata, self._config = metadata, config
        ends, _ = metadata.high_watermarks_or_reasons(partitions)
        self.stable, reasons = metadata.ends_or_reasons(partitions)
        for reason in reasons.values():
            if not isinstance(reason, SourceUnavailable):
                raise reason
        self._hidden = {p: end for p, end in ends.items() if end > self.stable.get(p, end)}

    def open_transactions(self) -> dict[TopicPartition, OpenTransaction]:
        """Wait for the transactions that were open at the start; return those that still are."""
        if not self._hidden:
            return {}
        found = open_transactions(
            self._metadata, self._config, list(self._hidden), within=ENDS_WITHIN
        )
        return {p: one for p, one in found.items() if one.since == self.stable[p]}

    def ended(
        self, still_open: Mapping[TopicPartition, OpenTransaction]
    ) -> dict[TopicPartition, int]:
        """Return the ends, at the start, of partitions whose transaction has ended meanwhile."""
        return {p: end for p, end in self._hidden.items() if p not in still_open}
