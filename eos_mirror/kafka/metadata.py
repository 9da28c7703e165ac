"""Questions about topics that do not go through a group, asked with one admin client."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from confluent_kafka import (
    OFFSET_INVALID,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
)
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from eos_mirror.core.records import TopicPartition
from eos_mirror.errors import SourceUnavailable, TargetUnavailable
from eos_mirror.kafka.errors import translated
from eos_mirror.kafka.lasting import Lasting
from eos_mirror.kafka.retry import retrying
from eos_mirror.ports import SourceTopic

ANSWER = timedelta(seconds=10)
PATIENCE = timedelta(seconds=30)
KAFKA_BASE64 = str.maketrans("+/", "-_")
"""The client prints ids in plain base64, Kafka in the form for URLs."""

MISSING = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.UNKNOWN_TOPIC_ID})


class ClusterMetadata:
    """Implements `ports.SourceMetadata`; the target uses it for its own topics, too."""

    def __init__(
        self, config: Mapping[str, Any], *, source: bool, patience: timedelta = PATIENCE
    ) -> None:
        """
        Args:
            config: Admin client configuration.
            source: Whose fault it is when the cluster does not answer.
            patience: How long to ask again.
        """
        self._client = Lasting(AdminClient, config)
        self.patience = patience
        self.answer_s = min(ANSWER, patience / 2).total_seconds()
        self._source = source

    @property
    def admin(self) -> AdminClient:
        """For one question: another one may have another client."""
        return self._client.client

    def connect(self) -> None:
        """Begin to connect. Returns at once; a new client's first answer takes 50 ms longer."""
        self.admin.describe_cluster(request_timeout=self.answer_s)

    def topics(self, names: Sequence[str]) -> Mapping[str, SourceTopic]:
        """See `ports.SourceMetadata`."""
        return retrying(lambda: self._topics(names), within=self.patience) if names else {}

    def _topics(self, names: Sequence[str]) -> dict[str, SourceTopic]:
        found: dict[str, SourceTopic] = {}
        with translated("describe topics", source=self._source, of=self._client):
            answers = self.admin.describe_topics(
                TopicCollection(list(names)), request_timeout=self.answer_s
            )
            for name, answer in answers.items():
                try:
                    topic = answer.result(self.answer_s + 1)
                except KafkaException as exc:
                    if exc.args[0].code() in MISSING:
                        continue
                    raise
                found[name] = SourceTopic(
                    topic_id=str(topic.topic_id).translate(KAFKA_BASE64),
                    partitions=len(topic.partitions),
                )
        return found

    def start_offset(self, partition: TopicPartition, start: str) -> int:
        """See `ports.SourceMetadata`."""
        kind, _, when = start.partition(":")
        if kind == "timestamp":
            return self.since(datetime.fromisoformat(when), [partition])[partition]
        spec = OffsetSpec.earliest() if kind == "earliest" else OffsetSpec.latest()
        return self.offsets([partition], spec)[partition]

    def log_start(self, partition: TopicPartition) -> int:
        """See `ports.SourceMetadata`."""
        return self.offsets([partition], OffsetSpec.earliest())[partition]

    def since(
        self, at: datetime, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """First offset with this time or a later one; the end of the log, if there is none."""
        spec = OffsetSpec.for_timestamp(int(at.timestamp() * 1000))
        found = self.offsets(partitions, spec)
        young = [partition for partition, offset in found.items() if offset < 0]
        return {**found, **(self.ends(young) if young else {})}

    def starts(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """First offset of each log: what was before has expired."""
        return self.offsets(partitions, OffsetSpec.earliest())

    def ends(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Last stable offset of each partition: where a read_committed reader stops."""
        return self.offsets(partitions, OffsetSpec.latest())

    def high_watermarks(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Where a read_uncommitted reader stops."""
        return self.offsets(
            partitions, OffsetSpec.latest(), isolation=IsolationLevel.READ_UNCOMMITTED
        )

    def offsets(
        self,
        partitions: Sequence[TopicPartition],
        spec: OffsetSpec,
        *,
        isolation: IsolationLevel = IsolationLevel.READ_COMMITTED,
    ) -> dict[TopicPartition, int]:
        """
        One kind of offset for every partition.

        Raises:
            RestartTask: A partition has no such offset or does not answer.
        """
        return retrying(lambda: self._offsets(partitions, spec, isolation), within=self.patience)

    def _offsets(
        self, partitions: Sequence[TopicPartition], spec: OffsetSpec, isolation: IsolationLevel
    ) -> dict[TopicPartition, int]:
        with translated("list offsets", source=self._source, of=self._client):
            answers = self.admin.list_offsets(
                {ClientPartition(*p): spec for p in partitions},
                isolation_level=isolation,
                request_timeout=self.answer_s,
            )
            try:
                found = {
                    TopicPartition(p.topic, p.partition): answer.result(self.answer_s + 1).offset
                    for p, answer in answers.items()
                }
            except KafkaException:
                self._look_for_leaders(partitions)
                raise
            unknown = [partition for partition, offset in found.items() if offset == OFFSET_INVALID]
            if unknown:
                self._look_for_leaders(partitions)
                fault = SourceUnavailable if self._source else TargetUnavailable
                raise fault(f"list offsets: {unknown[0]}: an answer without an offset")
        return found

    def _look_for_leaders(self, partitions: Sequence[TopicPartition]) -> None:
        """The client asks the leaders it remembers, also after FENCED_LEADER_EPOCH."""
        for topic in sorted({p.topic for p in partitions}):
            self.admin.list_topics(topic, timeout=self.answer_s)
