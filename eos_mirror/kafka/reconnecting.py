"""
Clients that are replaced when librdkafka has lost all brokers, for as long as the process lives.

librdkafka forgets the brokers that a Metadata answer does not name. After an answer without any
broker it may never search for one again (its issue 5301; seen with 2.16.0): requests then fail with
_TRANSPORT, and a consumer waits indefinitely, without an error. Such an answer comes while all
brokers are fenced: the cluster is starting, or its only broker was frozen. A new client finds the
brokers that this one cannot.
"""

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from confluent_kafka import Consumer, KafkaException, Producer

from eos_mirror.kafka.aws_msk_iam import waits_for_a_token
from eos_mirror.kafka.client import new_consumer, new_producer

SILENT_S = 10.0
ASK_S = 1.0
REMEMBERED_S = 1.0
"""For this long a coordinator is assumed to stay. A new client costs a connection, so callers that
poll must not get one each time."""

C = TypeVar("C")


class ReconnectingClient(Generic[C]):
    """
    A client that is replaced when no broker answered it.

    It is replaced even in an outage that it would have survived: a new one costs a connection.
    """

    def __init__(
        self, kind: Callable[[dict[str, Any]], C], config: Mapping[str, Any], *, early: bool = True
    ) -> None:
        """
        Args:
            kind: Makes an admin client, or a consumer that joins no group.
            config: Complete client configuration.
        """
        self._kind, self._config = kind, dict(config)
        self._lock = threading.Lock()
        self._before: C | None = None  # other threads may wait for its answers
        self._made_s = time.monotonic()
        self._client = self._early() if early else None

    def _early(self) -> C | None:
        """
        Make a client before it is needed, so that it connects meanwhile.

        The first request of one that is not connected may take 3 s (seen with offsets). One that
        waits for a token when it is made also connects then.
        """
        return None if waits_for_a_token(self._config) else self._kind(self._config)

    @property
    def client(self) -> C:
        """Return a client for one request; the next request may need another one."""
        with self._lock:
            if self._client is None:
                self._client, self._made_s = self._kind(self._config), time.monotonic()
            return self._client

    def replace(self) -> None:
        """Use a new client for the next request."""
        with self._lock:
            early: Connect now, and not with the first request.
            old, self._before, self._client = [self._before], self._client, self._early()
            self._made_s = time.monotonic()
        let_go(old)

    def forget_coordinators(self) -> None:
        """
        Use a new client if this one may remember the coordinator of a group for over a second.

        Call it before an admin client reads the offsets of groups. If the coordinator that it
        remembers has moved, the answer NOT_COORDINATOR crashes the process (librdkafka issue 5040).
        A new client searches for the coordinator right before it asks.
        """
        if time.monotonic() - self._made_s > REMEMBERED_S:
            self.replace()


class ReconnectingProducer(ReconnectingClient[Producer]):
    """The same for a producer without transactions. Records that it has not sent are dropped."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        """
        Args:
            config: Complete client configuration.
        """
        super().__init__(new_producer, config)

    def replace(self) -> None:
        """Use a new producer for the next record; the old one writes nothing after it."""
        self.client.purge(blocking=False)
        super().replace()


class StallDetector:
    """Distinguishes a consumer with nothing to read from one that finds no broker any more."""

    def __init__(self, consumer: Consumer, config: Mapping[str, Any]) -> None:
        """
        Args:
            consumer: Used on the thread that calls these methods.
            config: Configuration of the consumer, also for a second one that checks whether the
                cluster answers.
        """
        self._consumer, self._config = consumer, dict(config)
        self._since = time.monotonic()
        self._was_lost = False

    def broken(self, now: float) -> None:
        """Note that something was read."""
        self._since, self._was_lost = now, False

    def is_stalled(self, now: float, topic: str) -> bool:
        """
        Return True if, twice in a row, another client was answered and this one was not.

        The check runs after each 10 s in which nothing was read, and waits for 2 s at most.

        Args:
            now: Monotonic seconds.
            topic: A subscribed topic, so that the answer is short.
        """
        if now - self._since < SILENT_S:
            return False
        self._since = now
        was_lost = self._was_lost
        self._was_lost = not _is_answered(self._consumer, topic) and self._another_is_answered(
            topic
        )
        return was_lost and self._was_lost

    def _another_is_answered(self, topic: str) -> bool:
        other = new_consumer(self._config)  # it joins no group
        try:
            return _is_answered(other, topic)
        finally:
            other.close()


def let_go(clients: list[Any]) -> None:
    """Drop the last references to clients on a thread: their destructors can block."""
    threading.Thread(target=clients.clear, daemon=True).start()


def _is_answered(consumer: Consumer, topic: str) -> bool:
    try:
        return bool(consumer.list_topics(topic, timeout=ASK_S).brokers)
    except KafkaException:
        return False
