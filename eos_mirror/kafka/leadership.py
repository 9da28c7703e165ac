"""Which of several processes leads: the one that a consumer group gives its only partition to."""

import threading
import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as ClientPartition

from eos_mirror.kafka.errors import DENIED, as_mirror_error
from eos_mirror.kafka.reconnecting import StallDetector

MEMBER = {
    "partition.assignment.strategy": "cooperative-sticky",  # who comes later takes nothing away
    "group.protocol": "classic",
    "enable.auto.commit": "false",
    "auto.offset.reset": "latest",
    "allow.auto.create.topics": "false",
    "max.poll.interval.ms": "3600000",  # heartbeats say who is alive
}

CLOSED_WITHIN_S = 5.0


class Leadership:
    """
    A member of the group. One thread at a time.

    It is for availability only: whoever wrongly believes to lead is fenced like any other writer.
    So a member that only lost its session, perhaps with the whole cluster, still leads: until the
    group has given the partition to somebody else.

    Attributes:
        leads: As of the last `poll`.
    """

    def __init__(
        self, config: Mapping[str, Any], *, group: str, topic: str, session: timedelta
    ) -> None:
        """
        Join.

        Args:
            config: Connection and security.
            topic: Exists, with one partition; nothing is read from it.
            session: A leader that is silent for so long leads no more.
        """
        session_ms = str(round(session.total_seconds() * 1e3))
        self._config = {**config, **MEMBER, "group.id": group, "session.timeout.ms": session_ms}
        self._topic = topic
        self.leads = False
        self._join()

    def _join(self) -> None:
        self._consumer = Consumer(self._config)
        self._silence = StallDetector(self._consumer, self._config)
        self._has_it = False
        self._consumer.subscribe(
            [self._topic], on_assign=self._won, on_revoke=self._lost, on_lost=self._lost
        )

    def poll(self, wait: timedelta) -> bool:
        """
        Whether we lead.

        Raises:
            NotAuthorized: Read on the group, or on the topic, is missing.
        """
        message = self._consumer.poll(wait.total_seconds())
        error = None if message is None else message.error()
        if error is not None and error.code() in DENIED:
            raise as_mirror_error(error, "wait for our turn to lead", source=False)
        if self._silence.is_stalled(time.monotonic(), self._topic):
            self._leave()  # its callbacks say nothing of who leads any more
            self._join()
        return self.leads

    def close(self) -> None:
        """
        Leave the group: the next one leads at once.

        A client whose broker is gone can take for ever to close, so it is not waited for long.
        """
        self._leave().join(CLOSED_WITHIN_S)
        self.leads = False

    def _leave(self) -> threading.Thread:
        closing = threading.Thread(target=self._consumer.close, daemon=True)
        closing.start()
        return closing

    def _won(self, consumer: Consumer, partitions: Sequence[ClientPartition]) -> None:
        consumer.incremental_assign(list(partitions))
        if consumer is not self._consumer:
            return
        if partitions:
            consumer.pause(list(partitions))
            self._has_it = True
        self.leads = self._has_it

    def _lost(self, consumer: Consumer, partitions: Sequence[ClientPartition]) -> None:
        consumer.incremental_unassign(list(partitions))
        if partitions and consumer is self._consumer:
            self._has_it = False  # who has it now is known with the next assignment
