"""The lane of the client library: a source consumer, and producers of both kinds."""

from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from eos_mirror.core.flow import Flow
from eos_mirror.core.topic_limits import TopicLimits
from eos_mirror.errors import NotAuthorized, RestartTask
from eos_mirror.kafka.client import new_consumer, new_producer
from eos_mirror.kafka.connect_offsets import ConnectOffsets
from eos_mirror.kafka.errors import translated
from eos_mirror.kafka.idempotent_producer import KafkaPlainProducer
from eos_mirror.kafka.source import KafkaSource
from eos_mirror.kafka.transactional_producer import KafkaProducer
from eos_mirror.ports import RebalanceListener, SourceOffsets

FENCE_TIMEOUT_S = 5.0
"""Short, so that the claims log is read again before each attempt: a claimer that was
superseded must not keep aborting the transactions of its successor."""

FENCE_THREADS = 16


class KafkaLane:
    """Implements `ports.Lane` with librdkafka, record by record."""

    def __init__(
        self,
        flow: Flow,
        *,
        consumer_config: Mapping[str, Any],
        producer_config: Mapping[str, Any],
        plain_producer_config: Mapping[str, Any],
        client_config: Mapping[str, Any],
        positions: ConnectOffsets | None = None,
    ) -> None:
        """
        Args:
            consumer_config: Source consumer.
            producer_config: Transactional producer, but for the transactional id.
            plain_producer_config: Idempotent producer without transactions.
            client_config: Connection to the target and security.
            positions: Where positions are at least once; None: in the source group.
        """
        self._consumer_config = dict(consumer_config)
        self._producer_config = dict(producer_config)
        self._plain_producer_config = dict(plain_producer_config)
        self._shadow_group = shadow_group_metadata(flow, client_config)
        self._positions = positions
        self.written: Mapping[str, int] = {}
        self._source: KafkaSource | None = None

    @property
    def offsets(self) -> SourceOffsets:
        """See `ports.Lane`."""
        if self._positions is not None:
            return self._positions
        if self._source is None:
            raise RuntimeError("the group was asked before the source was opened")
        return self._source.group

    def open_source(self, listener: RebalanceListener) -> KafkaSource:
        """See `ports.Lane`."""
        self._source = KafkaSource(self._consumer_config, listener)
        return self._source

    def open_producer(self, transactional_id: str) -> KafkaProducer:
        """See `ports.Lane`."""
        return KafkaProducer(self._producer_config, transactional_id, group=self._shadow_group)

    def fence(self, transactional_ids: Collection[str]) -> set[str]:
        """See `ports.Lane`."""
        with ThreadPoolExecutor(min(FENCE_THREADS, len(transactional_ids))) as pool:
            fenced = pool.map(self._fence_one, transactional_ids)
            return {tid for tid, done in zip(transactional_ids, fenced, strict=True) if done}

    def _fence_one(self, transactional_id: str) -> bool:
        try:
            with translated(f"fence {transactional_id}"):
                producer = new_producer(
                    {**self._producer_config, "transactional.id": transactional_id}
                )
                producer.list_topics(timeout=FENCE_TIMEOUT_S)
                producer.init_transactions(FENCE_TIMEOUT_S)
        except NotAuthorized:
            raise
        except RestartTask:
            return False
        return True

    def note_limits(self, limits: Mapping[str, TopicLimits]) -> None:
        """See `ports.Lane`; nothing here depends on them."""

    def open_plain_producer(self) -> KafkaPlainProducer:
        """See `ports.Lane`."""
        return KafkaPlainProducer(self._plain_producer_config)


def shadow_group_metadata(flow: Flow, client_config: Mapping[str, Any]) -> object:
    """
    Metadata of the member-less shadow group: generation -1, no member.

    It comes from a consumer that never subscribes and is closed immediately; no network is used.
    """
    consumer = new_consumer({**client_config, "group.id": flow.shadow_group})
    try:
        return consumer.consumer_group_metadata()
    finally:
        consumer.close()
