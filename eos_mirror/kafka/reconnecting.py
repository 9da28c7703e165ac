"""
Clients for as long as their process lives.

librdkafka forgets the brokers that an answer to Metadata does not name. After an answer that names
none it may look for none again (its issue 5301; seen with 2.16.0): whoever asks hears _TRANSPORT,
and whoever reads waits in silence, for ever. Such an answer comes while all brokers are fenced: of
a cluster that starts, or whose only broker stood still. A new client finds what this one cannot.
"""

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from confluent_kafka import Consumer, KafkaException, Producer

SILENT_S = 10.0
ASK_S = 1.0

C = TypeVar("C")


class ReconnectingClient(Generic[C]):
    """
    A client that is replaced when no broker answered it.

    Also in an outage that it would have got over: a new one costs a connection.
    """

    def __init__(self, kind: Callable[[dict[str, Any]], C], config: Mapping[str, Any]) -> None:
        """
        Args:
            kind: AdminClient, or Consumer for one that joins no group.
            config: Complete client configuration.
        """
        self._kind, self._config = kind, dict(config)
        self._lock = threading.Lock()
        self._before: C | None = None  # other threads may wait for its answers
        self.client = kind(self._config)
        """For one question; the next one asks here again."""

    def replace(self) -> None:
        """Have the next question asked by a new client."""
        with self._lock:
            old, self._before, self.client = [self._before], self.client, self._kind(self._config)
        let_go(old)


class ReconnectingProducer(ReconnectingClient[Producer]):
    """The same for a producer without transactions. What it had not sent by then never is."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        """
        Args:
            config: Complete client configuration.
        """
        super().__init__(Producer, config)

    def replace(self) -> None:
        """Have the next record written by a new producer; none of this one comes behind it."""
        self.client.purge(blocking=False)
        super().replace()


class StallDetector:
    """Tells a consumer that has nothing to read from one that finds no broker any more."""

    def __init__(self, consumer: Consumer, config: Mapping[str, Any]) -> None:
        """
        Args:
            consumer: Used on the thread that asks here.
            config: Of the consumer, for another one that asks whether anybody answers.
        """
        self._consumer, self._config = consumer, dict(config)
        self._since = time.monotonic()
        self._was_lost = False

    def broken(self, now: float) -> None:
        """Something was read."""
        self._since, self._was_lost = now, False

    def is_stalled(self, now: float, topic: str) -> bool:
        """
        Whether, twice in a row, another client was answered and this one was not.

        Asks after every 10 s without anything, and waits for two at most.

        Args:
            now: Monotonic seconds.
            topic: One that is subscribed, so that the answer is short.
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
        other = Consumer(self._config)  # it joins nothing
        try:
            return _is_answered(other, topic)
        finally:
            other.close()


def let_go(clients: list[Any]) -> None:
    """Drop clients that nobody else refers to on a thread: their destructors can block."""
    threading.Thread(target=clients.clear, daemon=True).start()


def _is_answered(consumer: Consumer, topic: str) -> bool:
    try:
        return bool(consumer.list_topics(topic, timeout=ASK_S).brokers)
    except KafkaException:
        return False
