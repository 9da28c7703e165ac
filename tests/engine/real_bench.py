"""The real classes of kafka/ over real brokers, behind the same interface as the fakes."""

import ctypes
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka import TopicPartition as ClientPartition

from eos_mirror.core.flow import Flow
from eos_mirror.core.records import TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.core.topic_limits import limits_of
from eos_mirror.kafka.claims import KafkaClaimsLog
from eos_mirror.kafka.errors import translated
from eos_mirror.kafka.groups import CommittedOffsets
from eos_mirror.kafka.lane import KafkaLane
from eos_mirror.kafka.metadata import ClusterMetadata
from eos_mirror.kafka.retry import retrying
from eos_mirror.kafka.source import KafkaSource
from eos_mirror.kafka.target import KafkaTarget
from eos_mirror.kafka.transactional_producer import KafkaProducer
from eos_mirror.ports import (
    ClaimsLog,
    Lane,
    RebalanceListener,
    ShadowCommit,
    Source,
    SourceMetadata,
    TransactionalProducer,
)
from eos_mirror.testing import Cluster, wait_until
from tests.engine.bench import BUDGET
from tests.mirror.raw import RawRecord, produce_raw

WITHIN = timedelta(seconds=30)
TIMESTAMP_MS = 1_700_000_000_000
COMPACTED = {"cleanup.policy": "compact"}
TRANSACTION_TIMEOUT_MS = "3000"
WRITER = {"enable.idempotence": "true", "acks": "all", "linger.ms": "0", "log_level": "3"}
AN_HOUR = {"message.timestamp.after.max.ms": "3600000"}
"""Kafka's default."""

LINGERING = {"linger.ms": "1000"}  # a flush does not wait for it, and a batch holds what it can
TRANSACTIONAL = {
    **WRITER,
    **LINGERING,
    "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
    "message.timeout.ms": TRANSACTION_TIMEOUT_MS,
    "socket.timeout.ms": TRANSACTION_TIMEOUT_MS,
    "retry.backoff.ms": "5",
}
READER = {
    "enable.auto.commit": "false",
    "auto.offset.reset": "error",
    "enable.partition.eof": "true",
    "log_level": "3",
    "fetch.wait.max.ms": "50",
}
MEMBER = {
    **READER,
    "enable.auto.offset.store": "false",
    "isolation.level": "read_committed",
    "partition.assignment.strategy": "cooperative-sticky",
    "session.timeout.ms": "6000",
    "heartbeat.interval.ms": "500",
    "check.crcs": "true",
    "allow.auto.create.topics": "false",
}


def _truncate(cluster: Cluster, partition: TopicPartition, before: int) -> None:
    cut = [ClientPartition(*partition, before)]
    for answer in cluster.admin().delete_records(cut).values():
        answer.result(10)


class RealTargetBench:
    """Implements `TargetBench` on a cluster that other tests use, too."""

    is_exact = False

    def __init__(self, cluster: Cluster, flow: Flow) -> None:
        self.flow = flow
        self._cluster = cluster
        self.config = cluster.client_config()
        self._topics = 0
        self._producers: list[KafkaProducer] = []
        cluster.create_topic(flow.claims_topic, config=COMPACTED)
        cluster.create_topic(flow.offset_map_topic, config=COMPACTED)
        # A driver does this, too. Offsets that are sent before the first coordinator of a cluster
        # has started never get an answer, and an admin client that asks then crashes.
        first = [TopicPartition(flow.claims_topic, 0)]
        offsets = CommittedOffsets(self.config, flow.shadow_group, side=Side.TARGET)
        retrying(partial(offsets.read, first))

    def target(self) -> KafkaTarget:
        """See `TargetBench`."""
        return KafkaTarget(self.flow, client_config={**self.config, "log_level": "3"})

    def lane(self) -> Lane:
        """See `TargetBench`."""
        lane = KafkaLane(
            self.flow,
            consumer_config={},
            producer_config={**self.config, **TRANSACTIONAL},
            plain_producer_config={**self.config, **WRITER, **LINGERING},
            client_config={**self.config, "log_level": "3"},
        )
        open_producer = lane.open_producer

        def remembered(transactional_id: str) -> KafkaProducer:
            self._producers.append(open_producer(transactional_id))
            return self._producers[-1]

        lane.open_producer = remembered  # type: ignore[method-assign] # for `close`
        return lane

    def close(self) -> None:
        """Empty every producer: to destroy one that was fenced with records in it may hang."""
        for producer in self._producers:
            client: Any = producer._producer  # noqa: SLF001
            client.purge()
            with suppress(KafkaException, SystemError):  # errors of purged records
                client.flush(1)
        self._producers.clear()

    def claims(self) -> ClaimsLog:
        """See `TargetBench`."""
        reader = {
            **self.config,
            **READER,
            "group.id": self.flow.shadow_group,
            "isolation.level": "read_uncommitted",
        }
        target = KafkaTarget(self.flow, client_config=self.config)
        topic = self.flow.claims_topic
        return KafkaClaimsLog(
            {**self.config, **WRITER},
            reader,
            topic,
            topic_id=target.topic_ids([topic])[topic],
            ids=target.topic_ids,
        )

    def configure(self, topic: str, config: Mapping[str, str]) -> None:
        """See `TargetBench`."""
        config = {**AN_HOUR, **config}  # before Kafka 4, there is no such limit by default
        wanted = limits_of({"max.message.bytes": "1048588", **config})
        done = self._cluster.tool(
            "ConfigCommand", "--alter", "--entity-type", "topics", "--entity-name", topic,
            "--add-config", ",".join(f"{name}={value}" for name, value in config.items()),
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        target = self.target()
        self.until(lambda: target.limits([topic])[topic] == wanted, f"{config} of {topic}")

    def new_topic(self, partitions: int) -> str:
        """See `TargetBench`."""
        self._topics += 1
        topic = f"{self.flow.name}.topic-{self._topics}"
        self._cluster.create_topic(topic, partitions)
        return topic

    def delete_topic(self, topic: str) -> None:
        """See `TargetBench`."""
        self._cluster.admin().delete_topics([topic])[topic].result(10)

    def forget_offset(self, remote: TopicPartition) -> None:
        """See `TargetBench`."""
        done = self._cluster.tool(
            "ConsumerGroupCommand", "--delete-offsets", "--group", self.flow.shadow_group,
            "--topic", f"{remote.topic}:{remote.partition}",
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr

    def truncate(self, remote: TopicPartition, before: int) -> None:
        """See `TargetBench`."""
        _truncate(self._cluster, remote, before)

    def pend(
        self, producer: TransactionalProducer, offsets: Mapping[TopicPartition, ShadowCommit]
    ) -> None:
        """See `TargetBench`."""
        assert isinstance(producer, KafkaProducer)
        client: Any = producer._producer  # noqa: SLF001 (half of a public method)
        theirs = [
            ClientPartition(*remote, commit.position.next_offset, metadata=commit.metadata)
            for remote, commit in offsets.items()
        ]
        with translated("send offsets"):
            group = producer._group  # noqa: SLF001
            client.send_offsets_to_transaction(theirs, group, BUDGET.total_seconds())

    def time_out(self, transactional_id: str) -> None:
        """See `TargetBench`: the coordinator checks for it every ten seconds by itself."""

    def read(self, remote: TopicPartition) -> list[tuple[int, bytes | None]]:
        """See `TargetBench`."""
        reader = Consumer(
            {
                **self.config,
                **READER,
                "group.id": self.flow.shadow_group,
                "isolation.level": "read_committed",
            }
        )
        found: list[tuple[int, bytes | None]] = []
        try:
            reader.assign([ClientPartition(*remote, 0)])
            while True:
                for message in reader.consume(100, 0.1):
                    if message.error() is not None:
                        return found
                    offset = message.offset()
                    assert offset is not None
                    found.append((offset, message.value()))
        finally:
            reader.close()

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """See `TargetBench`."""
        wait_until(condition, within=WITHIN, what=what)


class RealSourceBench:
    """Implements `SourceBench` on a cluster that other tests use, too."""

    is_exact = False

    def __init__(self, cluster: Cluster, flow: Flow) -> None:
        self.flow = flow
        self._cluster = cluster
        self.config = cluster.client_config()
        self._topics = self._transactions = 0
        self._open: list[Producer] = []
        self._sources: list[KafkaSource] = []

    def new_topic(self, partitions: int) -> str:
        """See `SourceBench`."""
        self._topics += 1
        topic = f"{self.flow.name}.topic-{self._topics}"
        self._cluster.create_topic(topic, partitions)
        return topic

    def recreate_topic(self, topic: str) -> None:
        """See `SourceBench`."""
        metadata = ClusterMetadata(self.config, side=Side.SOURCE)
        self._cluster.admin().delete_topics([topic])[topic].result(10)
        self.until(lambda: not metadata.topics([topic]), f"{topic} is gone")
        self._cluster.create_topic(topic, 1)

    def produce(
        self, partition: TopicPartition, values: Sequence[bytes], *, commit: bool | None = None
    ) -> None:
        """See `SourceBench`."""
        plain = commit is None
        producer = Producer({**self.config, **WRITER}) if plain else self._transactional()
        self._send(producer, partition, values)
        if commit is True:
            producer.commit_transaction(10)
        elif commit is False:
            producer.abort_transaction(10)

    def _transactional(self) -> Producer:
        self._transactions += 1
        name = f"{self.flow.name}.upstream.{self._transactions}"
        producer = Producer({**self.config, **WRITER, "transactional.id": name})
        producer.init_transactions(10)
        producer.begin_transaction()
        return producer

    @staticmethod
    def _send(producer: Producer, partition: TopicPartition, values: Sequence[bytes]) -> None:
        for value in values:
            producer.produce(
                partition.topic, value, partition=partition.partition, timestamp=TIMESTAMP_MS
            )
        assert producer.flush(10) == 0

    def produce_uncarriable(self, partition: TopicPartition, value: bytes) -> None:
        """See `SourceBench`."""
        record = RawRecord(timestamp=0, value=value)
        produce_raw(self._cluster.admin(), *partition, [record])

    def begin(self, partition: TopicPartition, value: bytes) -> None:
        """See `SourceBench`."""
        producer = self._transactional()
        self._send(producer, partition, [value])
        self._open.append(producer)

    def truncate(self, partition: TopicPartition, before: int) -> None:
        """See `SourceBench`."""
        _truncate(self._cluster, partition, before)

    def metadata(self) -> SourceMetadata:
        """See `SourceBench`."""
        return ClusterMetadata(self.config, side=Side.SOURCE)

    def open_source(self, listener: RebalanceListener, slot: int) -> Source:
        """See `SourceBench`."""
        self._sources.append(KafkaSource(self.member_config(slot), listener))
        return self._sources[-1]

    def member_config(self, slot: int) -> dict[str, Any]:
        """Return the configuration of a member of the group."""
        return {
            **self.config,
            **MEMBER,
            "group.id": self.flow.source_group,
            "group.instance.id": self.flow.instance_id(slot),
            "log_level": 2,  # it outlives the cluster, which needs no log line
        }

    def close(self) -> None:
        """
        Keep every source alive, even when the interpreter exits.

        To close or destroy a member can block indefinitely inside the client, which waits for an
        answer to the rebalance that closing starts. A task exits its process instead; here other
        tests share the process.
        """
        for source in self._sources:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(source))

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """See `SourceBench`."""
        wait_until(condition, within=WITHIN, what=what)
