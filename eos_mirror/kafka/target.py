"""The target cluster as the engine sees it: shadow offsets, the offset map, ends of copies."""

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any, cast

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AclOperation

from eos_mirror.core.flow import Flow
from eos_mirror.core.map_records import StartRecord, starts_in
from eos_mirror.core.records import Position, TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.core.topic_limits import TopicLimits
from eos_mirror.errors import TargetUnavailable
from eos_mirror.kafka.errors import as_mirror_error, translated
from eos_mirror.kafka.groups import TO_A_COORDINATOR_S
from eos_mirror.kafka.limits import read_limits
from eos_mirror.kafka.metadata import PATIENCE, ClusterMetadata
from eos_mirror.kafka.offset_maps import map_unless_open
from eos_mirror.kafka.retry import retrying
from eos_mirror.kafka.visible import first_offsets
from eos_mirror.ports import UNSTABLE, KnownTopic, PartitionEnd, ShadowOffset, Unstable


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
    ) -> None:
        """
        Args:
            client_config: Connection and security, for admin clients and consumers.
            require_stable: False breaks exactly once; only tests of the checker set it.
            patience: How long to retry.
            needed: Rights needed on remote topics; see `ClusterMetadata`.
        """
        self._flow = flow
        self._client_config = dict(client_config)
        self._require_stable = require_stable
        self._metadata = ClusterMetadata(
            client_config, side=Side.TARGET, patience=patience, needed=needed
        )
        self._metadata.connect()

    def shadow_offsets(
        self, remotes: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, ShadowOffset | Unstable | None]:
        """See `ports.Target`."""
        return retrying(
            lambda: read_shadow_offsets(
                self._metadata, self._flow, remotes, require_stable=self._require_stable
            ),
            within=self._metadata.patience,
        )

    def topics(self, names: Sequence[str]) -> Mapping[str, KnownTopic]:
        """See `ports.Target`."""
        return self._metadata.topics(names)

    def limits(self, topics: Collection[str]) -> Mapping[str, TopicLimits]:
        """See `ports.Target`."""
        return read_limits(self._metadata, topics)

    def topic_ids(self, topics: Sequence[str]) -> Mapping[str, str]:
        """Return the topic id of each topic that exists."""
        return {name: topic.topic_id for name, topic in self._metadata.topics(topics).items()}

    def ends(self, remotes: Sequence[TopicPartition]) -> Mapping[TopicPartition, PartitionEnd]:
        """See `ports.Target`."""
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

    def map_entries(self, topic: str) -> Mapping[str, bytes] | Unstable:
        """See `ports.Target`."""
        records = map_unless_open(self._metadata, self._flow, self._client_config)
        if isinstance(records, Unstable):
            return records
        prefix = f'["{topic}",'
        return {key: value for key, value in records.items() if key.startswith(prefix)}


def read_shadow_offsets(
    metadata: ClusterMetadata,
    flow: Flow,
    remotes: Sequence[TopicPartition],
    *,
    require_stable: bool,
) -> dict[TopicPartition, ShadowOffset | Unstable | None]:
    """
    Read the shadow offsets with one OffsetFetch.

    "No offset" and "unstable" differ only in the partition's error. Only for tasks, which are
    restarted: `groups.CommittedOffsets` says what may happen to the process of an admin client.

    Raises:
        RestartTask: The whole call or one partition failed (TargetUnavailable: no answer).
    """
    wanted = ConsumerGroupTopicPartitions(
        flow.shadow_group, [ClientPartition(*remote) for remote in remotes]
    )
    with translated("read the shadow offsets"):
        answer = metadata.admin.list_consumer_group_offsets(
            [wanted], require_stable=require_stable, request_timeout=TO_A_COORDINATOR_S
        )
        try:
            found = answer[flow.shadow_group].result(metadata.answer_s).topic_partitions
        except KafkaException as exc:
            if exc.args[0].code() != KafkaError.GROUP_ID_NOT_FOUND:
                raise
            found = []
    offsets: dict[TopicPartition, ShadowOffset | Unstable | None] = dict.fromkeys(remotes)
    for one in found or []:
        offsets[TopicPartition(one.topic, one.partition)] = _shadow_offset(one)
    return offsets


def _shadow_offset(found: ClientPartition) -> ShadowOffset | Unstable | None:
    if found.error is not None:
        if found.error.code() == KafkaError.UNSTABLE_OFFSET_COMMIT:
            return UNSTABLE
        raise as_mirror_error(found.error, "read a shadow offset", side=Side.TARGET)
    if found.offset < 0:
        return None
    epoch = cast("int | None", found.leader_epoch)
    return ShadowOffset(
        position=Position(found.offset, None if epoch is None or epoch < 0 else epoch),
        metadata=found.metadata or "",
    )
