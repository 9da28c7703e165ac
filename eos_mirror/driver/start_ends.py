"""The ends to which a run with `--once` or `--until` mirrors: everything below them."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from eos_mirror.core.records import TopicPartition
from eos_mirror.errors import SourceUnavailable
from eos_mirror.kafka.metadata import ClusterMetadata
from eos_mirror.kafka.open_transactions import OpenTransaction, open_transactions

ENDS_WITHIN: Final = timedelta(seconds=10)
"""Such a run waits this long for the end of a transaction that was open at its start."""


class StartEnds:
    """
    Asked once, at the start.

    Attributes:
        stable: Last stable offset of each partition that has a leader, but at most its end: as far
            as can be mirrored.
    """

    def __init__(
        self,
        metadata: ClusterMetadata,
        config: Mapping[str, Any],
        partitions: Sequence[TopicPartition],
        *,
        until: datetime | None = None,
    ) -> None:
        """
        Args:
            metadata: Asks the source.
            config: Client settings for connection and security of the source.
            partitions: Planned source partitions.
            until: A partition ends before its first record with this time or a later one. None, or
                without such a record: it ends at its high watermark.

        Raises:
            NotAuthorized: A right on one of the topics is missing.
            SourceUnavailable: The source does not answer.
        """
        self._metadata, self._config = metadata, config
        ends, _ = metadata.high_watermarks_or_reasons(partitions)
        bounds: dict[TopicPartition, int] = {}
        if until is not None:
            bounds, _ = metadata.since_or_reasons(until, partitions)
        stable, reasons = metadata.ends_or_reasons(partitions)
        for reason in reasons.values():
            if not isinstance(reason, SourceUnavailable):
                raise reason
        ends = {**ends, **bounds}
        self.stable = {p: min(end, bounds.get(p, end)) for p, end in stable.items()}
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
