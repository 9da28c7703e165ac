"""The claims topic: read once from its beginning, and then only its updates."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Message
from confluent_kafka import TopicPartition as ClientPartition

from eos_mirror.core.claims import Claim, ClaimRecord, LiveClaims
from eos_mirror.core.side import Side
from eos_mirror.errors import TargetUnavailable
from eos_mirror.kafka.client import new_consumer, new_producer
from eos_mirror.kafka.deadline import Deadline
from eos_mirror.kafka.errors import as_mirror_error, translated
from eos_mirror.kafka.topic_reader import is_end, ready_messages
from eos_mirror.kafka.topic_writer import append_records

WITHIN = timedelta(seconds=20)
"""For reading through an offset, with every request that it takes."""


class KafkaClaimsLog:
    """
    Implements `ports.ClaimsLog`.

    Invariants:
        A: What `append` returns is acknowledged by all in-sync replicas.
        B: What `read_through` returns was read from the topic with the topic id that was given.
    """

    def __init__(
        self,
        producer_config: Mapping[str, Any],
        consumer_config: Mapping[str, Any],
        topic: str,
        *,
        topic_id: str,
        ids: Callable[[Sequence[str]], Mapping[str, str]],
    ) -> None:
        """
        Args:
            producer_config: Idempotent, acks=all, not transactional: a claim counts immediately.
            consumer_config: read_uncommitted.
            topic: One partition, compacted.
            topic_id: Of the topic when the flow started.
            ids: Returns the current topic ids, by name, of topics that exist.
        """
        self._topic = topic
        self._topic_id = topic_id
        self._ids = ids
        self._producer = new_producer(producer_config)
        self._consumer = new_consumer(consumer_config)
        self._claims = LiveClaims(topic)

    def append(self, claims: Sequence[Claim]) -> Mapping[str, int]:
        """See `ports.ClaimsLog`."""
        self._check_identity()  # a write to a topic that is gone would wait out its deadline
        return self._write({claim.key: claim.value for claim in claims})

    def _check_identity(self) -> None:
        found = self._ids([self._topic]).get(self._topic)
        self._claims.check_identity(found=found, started_with=self._topic_id)

    def tombstone(self, keys: Sequence[str]) -> None:
        """See `ports.ClaimsLog`."""
        if keys:
            self._write(dict.fromkeys(keys))

    def _write(self, records: Mapping[str, str | None]) -> dict[str, int]:
        offsets = append_records(self._producer, self._topic, list(records.items()))
        return dict(zip(records, offsets, strict=True))

    def read_through(self, offset: int | None) -> Mapping[str, ClaimRecord]:
        """See `ports.ClaimsLog`."""
        deadline = Deadline(WITHIN)
        with translated(f"read {self._topic}"):
            # the leader first: the client checks an assignment without one again after 500 ms only
            self._consumer.list_topics(self._topic, timeout=deadline.left_s(at_most=WITHIN))
            next_offset = self._claims.next_offset or OFFSET_BEGINNING
            self._consumer.assign([ClientPartition(self._topic, 0, next_offset)])
            if offset is None:
                where = ClientPartition(self._topic, 0)
                left_s = deadline.left_s(at_most=WITHIN)
                _, high = self._consumer.get_watermark_offsets(where, timeout=left_s)
                offset = high - 1
            while self._claims.next_offset <= offset:
                if deadline.is_over:
                    raise TargetUnavailable(
                        f"{self._topic}: not readable through offset {offset} in {WITHIN}"
                    )
                for message in ready_messages(self._consumer):
                    self._take(message)
            self._consumer.unassign()  # or it would fetch until the next time; pausing takes 1 s
        self._check_identity()  # topic ids are never reused: this was the right log until now
        return self._claims.live

    def _take(self, message: Message) -> None:
        offset = message.offset() or 0
        if is_end(message):
            self._claims.skip_to(offset)
            return
        error = message.error()
        if error is not None:
            raise as_mirror_error(error, f"read {self._topic}", side=Side.TARGET)
        self._claims.apply(offset, _bytes(message.key()), _bytes(message.value()))


def _bytes(data: str | bytes | None) -> bytes | None:
    return data.encode() if isinstance(data, str) else data
