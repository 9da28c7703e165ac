"""New partitions are requested again while the controller can place none."""

from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from eos_mirror.core.side import Side
from eos_mirror.errors import TooFewBrokers
from eos_mirror.kafka.by_topic import ALL_FENCED, refusals
from eos_mirror.kafka.client import new_admin
from eos_mirror.kafka.reconnecting import ReconnectingClient
from eos_mirror.kafka.topics import CREATE


def answers(*refused: str) -> list[dict[str, Future[None]]]:
    """Return the answers to one request after another; an empty text is no refusal."""
    return [{"orders": answer(text)} for text in refused]


def answer(text: str) -> "Future[None]":
    """Return the answer for one topic."""
    future: Future[None] = Future()
    if text:
        error = KafkaError(KafkaError.INVALID_REPLICATION_FACTOR, text)
        future.set_exception(KafkaException(error))
    else:
        future.set_result(None)
    return future


@pytest.fixture
def client() -> ReconnectingClient[Any]:
    """Return a client of a cluster that is not asked."""
    return ReconnectingClient(new_admin, {"bootstrap.servers": "127.0.0.1:1"}, early=False)


def test_fenced_brokers_are_no_refusal(client: ReconnectingClient[Any]) -> None:
    """The request is repeated until a broker is there."""
    given = iter(answers(f"{ALL_FENCED}, or have all their log directories cordoned.", ""))
    assert refusals(CREATE, lambda: next(given), side=Side.TARGET, of=client) == {}
    assert next(given, None) is None


def test_too_few_brokers_are_a_refusal_at_once(client: ReconnectingClient[Any]) -> None:
    """More replicas than brokers is refused: waiting does not help."""
    given = iter(answers("because only 1 broker(s) are registered.", ""))
    found = refusals(CREATE, lambda: next(given), side=Side.TARGET, of=client)
    assert isinstance(found["orders"], TooFewBrokers)
    assert next(given, None) is not None
