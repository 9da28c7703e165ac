"""The target cluster as the engine sees it: shadow offsets, the offset map, ends of copies."""

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, Protocol

from confluent_kafka.admin import AclOperation

from eos_mirror.core.flow import Flow
from eos_mirror.core.map_records import StartRecord, starts_in
from eos_mirror.core.records import TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.core.topic_limits import TopicLimits
from eos_mirror.errors import TargetUnavailable
from eos_mirror.kafka.deadline import PATIENCE
from eos_mirror.kafka.limits import read_limits
from eos_mirror.kafka.metadata import ClusterMetadata
from eos_mirror.kafka.offset_maps import map_unless_open
from eos_mirror.kafka.retry import retrying
from eos_mirror.kafka.shadow_offsets import ShadowOffsets
from eos_mirror.kafka.topic_reader import read_compacted
from eos_mirror.kafka.visible import first_offsets
from eos_mirror.ports import KnownTopic, PartitionEnd, ShadowOffset, Unstable


class Facts(Protocol):
    """What our own lane reads sooner than an admin client, which waits for dead brokers."""

    def ends(self, remotes: Sequence[TopicPartition]) -> Mapping[TopicPartition, PartitionEnd]:
        """See `ports.Target`."""

    def limits(self, topics: Collection[str]) -> Mapping[str, TopicLimits]:
        """See `ports.Target`."""


class KafkaTarget:
    """Implements `ports.Target`."""

    def __init__(
        self,
        flow: Flow,
        *,
        client_config: Mapping[str, Any],
        require_stable: bool = True,
        patience: timedelta = PATIENCE,
        needed: Sequence[AclOperation] = (),
        early: bool = True,
    ) -> None:
        """
        Args:
            client_config: Connection and security, for admin clients and consumers.
            require_stable: False breaks exactly once; only tests of the checker set it.
            patience: How long to retry.
            needed: Rights needed on remote topics; see `ClusterMetadata`.
            early: See `ShadowOffsets`.
        """
        self._flow = flow
        self._facts: Facts | None = None
        self._client_config = dict(client_config)
        self._metadata = ClusterMetadata(
            client_config, side=Side.TARGET, patience=patience, needed=needed
        )
        self._metadata.connect()
        self._shadow_offsets = ShadowOffsets(
            flow.shadow_group, client_config, self._metadata, stable=require_stable, early=early
        )

    def read_with(self, facts: Facts) -> None:
        """Read facts this way from now on."""
        self._facts = facts

    def shadow_offsets(
        self, remotes: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, ShadowOffset | Unstable | None]:
        """See `ports.Target`."""
        return retrying(partial(self._shadow_offsets.read, remotes), within=self._metadata.patience)

    def topics(self, names: Sequence[str]) -> Mapping[str, KnownTopic]:
        """See `ports.Target`."""
        return self._metadata.topics(names)

    def limits(self, topics: Collection[str]) -> Mapping[str, TopicLimits]:
        """See `ports.Target`."""
        if self._facts is not None:
            return self._facts.limits(topics)
        return read_limits(self._metadata, topics)

    def check_login(self) -> None:
        """See `ports.Target`."""
        self._metadata.check_login()

    def topic_ids(self, topics: Sequence[str]) -> Mapping[str, str]:
        """Return the topic id of each topic that exists."""
        return {name: topic.topic_id for name, topic in self._metadata.topics(topics).items()}

    def ends(self, remotes: Sequence[TopicPartition]) -> Mapping[TopicPartition, PartitionEnd]:
        """See `ports.Target`."""
        if self._facts is not None:
            return self._facts.ends(remotes)
        stable, written = self._metadata.ends(remotes), self._metadata.high_watermarks(remotes)
        return {r: PartitionEnd(stable=stable[r], written=written[r]) for r in remotes}

    def stable_ends(
        self, remotes: Sequence[TopicPartition]
    ) -> tuple[Mapping[TopicPartition, int], Collection[TopicPartition]]:
        """
        Return the last stable offset of each partition, and the partitions that do not answer now.

        Raises:
            NotAuthorized: A right is missing.
            TargetUnavailable: The cluster as a whole does not answer.
        """
        found, reasons = self._metadata.ends_or_reasons(remotes)
        for reason in reasons.values():
            if not isinstance(reason, TargetUnavailable):
                raise reason
        return found, reasons.keys()

    def first_offsets(
        self, starts: Mapping[TopicPartition, int], *, committed: bool
    ) -> Mapping[TopicPartition, Sequence[int]]:
        """See `ports.TargetReader`."""
        return first_offsets(
            self._client_config,
            starts,
            committed=committed,
            group=self._flow.shadow_group,
            within=self._metadata.patience,
        )

    def starts(self) -> Mapping[TopicPartition, StartRecord] | Unstable:
        """Return start records by remote partition; `Unstable` as in `map_entries`."""
        records = map_unless_open(self._metadata, self._flow, self._client_config)
        return records if isinstance(records, Unstable) else starts_in(records)

    def decided_starts(self) -> Mapping[TopicPartition, StartRecord]:
        """Return the start records before the first transaction that is open on the offset map."""
        topic = self._flow.offset_map_topic
        return starts_in(read_compacted(self._client_config, topic, group=self._flow.shadow_group))

    def map_entries(self, topic: str) -> Mapping[str, bytes] | Unstable:
        """See `ports.Target`."""
        records = map_unless_open(self._metadata, self._flow, self._client_config)
        if isinstance(records, Unstable):
            return records
        prefix = f'["{topic}",'
        return {key: value for key, value in records.items() if key.startswith(prefix)}
