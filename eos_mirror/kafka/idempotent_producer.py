"""The idempotent producer of at-least-once mode: no transactions, and no failure is lost."""

import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from confluent_kafka import KafkaError, Message

from eos_mirror.core.records import RecordRun, TopicPartition, TopicRecord
from eos_mirror.core.side import Side
from eos_mirror.core.suspects import Refusal
from eos_mirror.errors import RefusedByTarget, RestartTask, TargetUnavailable
from eos_mirror.kafka.batch_queue import Batches
from eos_mirror.kafka.batching import Backlog, send_record, send_stretch
from eos_mirror.kafka.client import new_producer
from eos_mirror.kafka.errors import DENIED, REFUSED, as_mirror_error, translated


class KafkaPlainProducer:
    """Implements `ports.PlainProducer`."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        """
        Args:
            config: Complete client configuration, without transactional settings.
        """
        self._producer = new_producer({**config, "delivery.report.only.error": True})
        self._backlog = Backlog(self._producer, config)
        self._batches = Batches(self._producer)
        self._failed: dict[TopicPartition, KafkaError] = {}
        self._own_failure: RestartTask | None = None

    def send(self, run: RecordRun, remote: TopicPartition, *, batch: int | None = None) -> None:
        """See `ports.PlainProducer`."""
        records = run.decoded()
        with translated(f"produce to {remote}"):
            if batch is not None:
                self._batches.add(records, remote, number=batch, on_record=self._on_failure)
                self._backlog.add_unbatched(records.count)
                return
            send_stretch(
                self._producer,
                remote,
                run=records,
                start=0,
                end=records.count,
                callback=self._on_failure,
            )
            self._producer.poll(0)
            self._backlog.add(records, remote)

    def send_to(self, topic: str, records: Sequence[TopicRecord]) -> None:
        """See `ports.PlainProducer`."""
        with translated(f"produce to {topic}"):
            for record in records:
                send_record(self._producer, topic, record, callback=self._on_own_failure)
        self._backlog.add_unbatched(len(records))

    def _on_own_failure(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._own_failure = RestartTask(
                f"produce to {message.topic()}: {error.name()} ({error.str()})"
            )

    def _on_failure(self, error: KafkaError | None, message: Message) -> None:
        """Keep the first error of each partition; any other error replaces a refusal."""
        topic, partition = message.topic(), message.partition()
        if error is None or topic is None or partition is None:
            return
        remote = TopicPartition(topic, partition)
        first = self._failed.get(remote)
        if first is None or (first.code() in REFUSED and error.code() not in REFUSED):
            self._failed[remote] = error

    def flush(self, *, within: timedelta) -> None:
        """See `ports.PlainProducer`."""
        deadline = time.monotonic() + within.total_seconds()
        with translated("flush"):
            self._backlog.settle(until=deadline)
        self._decide(deadline, within)
        while self._batches.hand_over_next():
            self._decide(deadline, within)
        failed, self._failed = self._failed, {}
        refused = {
            remote: Refusal(code=error.name(), reason=error.str())
            for remote, error in failed.items()
        }
        refused.update(self._batches.refused)
        self._batches.clear()
        if refused:
            remote, first = next(iter(refused.items()))
            text = f"produce to {remote}: {first.code} ({first.reason})"
            raise RefusedByTarget(text, refused=refused)

    def _decide(self, deadline: float, within: timedelta) -> None:
        """Wait until every record that was handed over has arrived or was refused."""
        with translated("flush"):
            left = self._producer.flush(max(0.0, deadline - time.monotonic()))
        if self._own_failure is not None:
            raise self._own_failure
        for remote, error in self._failed.items():
            if error.code() in DENIED:
                raise as_mirror_error(error, "produce", side=Side.TARGET)
            if error.code() not in REFUSED:
                raise RestartTask(f"produce to {remote}: {error.name()} ({error.str()})")
        if left:
            raise TargetUnavailable(f"flush: {left} records not acknowledged in {within}")
