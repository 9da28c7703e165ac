"""The idempotent producer of at-least-once mode: no transactions, every failure kept."""

import time
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from confluent_kafka import KafkaError, Message, Producer

from eos_mirror.core.records import RecordRun, TopicPartition
from eos_mirror.errors import TargetUnavailable
from eos_mirror.kafka.errors import DENIED, REFUSED, as_mirror_error, translated
from eos_mirror.kafka.sending import Backlog, send_stretch
from eos_mirror.ports import Failed


class KafkaPlainProducer:
    """Implements `ports.PlainProducer`."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        """
        Args:
            config: Complete client configuration, without anything transactional.
        """
        self._producer = Producer({**config, "delivery.report.only.error": True})
        self._backlog = Backlog(self._producer, config)
        self._failed: dict[TopicPartition, Failed] = {}
        self._denied: KafkaError | None = None

    def send(self, run: RecordRun, remote: TopicPartition) -> None:
        """See `ports.PlainProducer`."""
        with translated(f"produce to {remote}"):
            send_stretch(
                self._producer,
                remote,
                run=run,
                start=0,
                end=len(run.offsets),
                callback=self._on_failure,
            )
            self._producer.poll(0)
            self._backlog.add(run, remote)

    def _on_failure(self, error: KafkaError | None, message: Message) -> None:
        topic, partition = message.topic(), message.partition()
        if error is None or topic is None or partition is None:
            return
        if error.code() in DENIED:
            self._denied = error
        remote = TopicPartition(topic, partition)
        first = self._failed.get(remote)
        self._failed[remote] = Failed(
            count=1 if first is None else first.count + 1,
            reason=f"{error.name()} ({error.str()})" if first is None else first.reason,
            is_refusal=error.code() in REFUSED and (first is None or first.is_refusal),
        )

    def flush(self, *, within: timedelta) -> Mapping[TopicPartition, Failed]:
        """See `ports.PlainProducer`."""
        deadline = time.monotonic() + within.total_seconds()
        with translated("flush"):
            self._backlog.settle(until=deadline)
            left = self._producer.flush(max(0.0, deadline - time.monotonic()))
        if self._denied is not None:
            raise as_mirror_error(self._denied, "produce", source=False)
        if left:
            raise TargetUnavailable(f"flush: {left} records not acknowledged in {within}")
        failed, self._failed = self._failed, {}
        return failed
