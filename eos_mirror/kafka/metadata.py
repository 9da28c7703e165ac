"""Questions about topics that do not go through a group, asked with one admin client."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from datetime import datetime, timedelta
from typing import Any

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from eos_mirror.core.records import TopicPartition
from eos_mirror.errors import RestartTask
from eos_mirror.kafka.errors import translated
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
        self.admin = AdminClient(dict(config))
        self.patience = patience
        self.answer_s = min(ANSWER, patience / 2).total_seconds()
        self._source = source

    def connect(self) -> None:
        """Begin to connect. Returns at once; a new client's first answer takes 50 ms longer."""
        self.admin.describe_cluster(request_timeout=self.answer_s)

    def topics(self, names: Sequence[str]) -> Mapping[str, SourceTopic]:
        """See `ports.SourceMetadata`."""
        return retrying(lambda: self._topics(names), within=self.patience) if names else {}

    def _topics(self, names: Sequence[str]) -> dict[str, SourceTopic]:
        found: dict[str, SourceTopic] = {}
        with translated("describe topics", source=self._source):
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
            at_ms = int(datetime.fromisoformat(when).timestamp() * 1000)
            offset = self.offsets([partition], OffsetSpec.for_timestamp(at_ms))[partition]
            if offset >= 0:
                return offset
            kind = "latest"  # nothing is that young yet
        spec = OffsetSpec.earliest() if kind == "earliest" else OffsetSpec.latest()
        return self.offsets([partition], spec)[partition]

    def log_start(self, partition: TopicPartition) -> int:
        """See `ports.SourceMetadata`."""
        return self.offsets([partition], OffsetSpec.earliest())[partition]

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
        with translated("list offsets", source=self._source):
            answers = self.admin.list_offsets(
                {ClientPartition(*p): spec for p in partitions},
                isolation_level=isolation,
                request_timeout=self.answer_s,
            )
            try:
                return {
                    TopicPartition(p.topic, p.partition): _wait(answer, self.answer_s).offset
                    for p, answer in answers.items()
                }
            except KafkaException:
                # the client asks the leaders it remembers, also after FENCED_LEADER_EPOCH
                for topic in sorted({p.topic for p in partitions}):
                    self.admin.list_topics(topic, timeout=self.answer_s)
                raise


def _wait(answer: "Future[Any]", within_s: float) -> Any:
    try:
        return answer.result(within_s + 1)
    except TimeoutError as exc:
        raise RestartTask(f"no answer in {within_s} s") from exc
