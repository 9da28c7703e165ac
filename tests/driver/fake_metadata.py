"""Offsets of the source for the tests of the driver, without a broker."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from eos_mirror.core.records import TopicPartition
from eos_mirror.errors import MirrorError
from eos_mirror.kafka.metadata import Offsets
from eos_mirror.ports import KnownTopic


@dataclass(kw_only=True)
class FakeMetadata:
    """
    `ClusterMetadata` of the source.

    Attributes:
        ends: Last stable offsets.
        hidden: How many offsets of a partition lie behind an open transaction.
        later: First offset at or after any time, of partitions that have one.
    """

    known: dict[str, KnownTopic] = field(default_factory=dict)
    ends: dict[TopicPartition, int] = field(default_factory=dict)
    reasons: dict[TopicPartition, MirrorError] = field(default_factory=dict)
    hidden: dict[TopicPartition, int] = field(default_factory=dict)
    later: dict[TopicPartition, int] = field(default_factory=dict)

    def topics(self, names: Sequence[str]) -> dict[str, KnownTopic]:
        """See `ClusterMetadata`."""
        return {name: self.known[name] for name in names if name in self.known}

    def ends_or_reasons(self, partitions: Sequence[TopicPartition]) -> Offsets:
        """See `ClusterMetadata`."""
        reasons = {one: self.reasons[one] for one in partitions if one in self.reasons}
        return Offsets(
            {one: self.ends.get(one, 0) for one in partitions if one not in reasons}, reasons
        )

    def since_or_reasons(self, _: datetime, partitions: Sequence[TopicPartition]) -> Offsets:
        """See `ClusterMetadata`."""
        return Offsets({one: self.later[one] for one in partitions if one in self.later}, {})

    def starts_or_reasons(self, partitions: Sequence[TopicPartition]) -> Offsets:
        """See `ClusterMetadata`. Every log starts at 0."""
        return Offsets(dict.fromkeys(partitions, 0), {})

    def high_watermarks_or_reasons(self, partitions: Sequence[TopicPartition]) -> Offsets:
        """See `ClusterMetadata`."""
        found, reasons = self.ends_or_reasons(partitions)
        return Offsets({one: end + self.hidden.get(one, 0) for one, end in found.items()}, reasons)
