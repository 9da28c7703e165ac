"""
One request about many topics, with a separate answer for each.

A refusal of one topic says nothing about the others. If the cluster does not answer at all, that
concerns all of them.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from eos_mirror.core.side import Side
from eos_mirror.errors import (
    ConfigError,
    MirrorError,
    NotAuthorized,
    RetriableError,
    SourceUnavailable,
    TargetUnavailable,
    TooFewBrokers,
)
from eos_mirror.kafka.deadline import GRACE_S
from eos_mirror.kafka.errors import translated
from eos_mirror.kafka.reconnecting import ReconnectingClient
from eos_mirror.kafka.retry import retrying

NOT_ALLOWED = frozenset(
    {KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED}
)

ALL_FENCED = "All brokers are currently fenced"
"""In the text of INVALID_REPLICATION_FACTOR: the controller has not heard from any broker for 9 s,
for example because a machine stood still. Their next heartbeats end it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """
    A request about topics.

    Attributes:
        what: The action, for the message of a refusal, such as "create topic".
        right: The operation that must be granted.
        within: How long the cluster may take.
        harmless: Error codes that count neither as an answer nor as a refusal.
    """

    what: str
    right: str
    within: timedelta
    harmless: Collection[int] = ()


def by_topic(
    request: Request, answers: Mapping[str, Any], *, side: Side, of: ReconnectingClient[Any]
) -> tuple[dict[str, Any], dict[str, MirrorError]]:
    """
    Return the answers of the cluster, and the error of each topic that it refused.

    Args:
        answers: Futures by topic.
        side: Which cluster it is; selects SourceUnavailable or TargetUnavailable.
        of: The client that asked; replaced when no broker answered it.

    Raises:
        SourceUnavailable, TargetUnavailable: The cluster did not answer. Ask again.
        RetriableError: All brokers are fenced, so no partition can be placed. Ask again.
    """
    found: dict[str, Any] = {}
    refused: dict[str, MirrorError] = {}
    for topic, answer in answers.items():
        try:
            with (
                translated(f"{request.what} {topic}", side=side, of=of),
                _explained(request, topic),
            ):
                found[topic] = answer.result(request.within.total_seconds() + GRACE_S)
        except (SourceUnavailable, TargetUnavailable, RetriableError):
            raise
        except MirrorError as exc:
            refused[topic] = exc
    return found, refused


def refusals(
    request: Request,
    ask: Callable[[], Mapping[str, Any]],
    *,
    side: Side,
    of: ReconnectingClient[Any],
) -> dict[str, MirrorError]:
    """
    Request new partitions, again while all brokers are fenced; return the refusals as `by_topic`.

    Args:
        ask: Sends the request; returns futures by topic.
    """
    try:
        return retrying(
            lambda _: by_topic(request, ask(), side=side, of=of)[1], when=RetriableError
        )
    except RetriableError as exc:
        unavailable = SourceUnavailable if side is Side.SOURCE else TargetUnavailable
        raise unavailable(str(exc)) from exc


@contextmanager
def _explained(request: Request, topic: str) -> Iterator[None]:
    """
    Raise errors that say which right to grant, or which entry to exclude.

    A source of another version may have config entries that this cluster does not know.
    """
    try:
        yield
    except KafkaException as exc:
        error, where = exc.args[0], f"{request.what} {topic}"
        if error.code() in request.harmless:
            return
        if error.code() in NOT_ALLOWED:
            why = f"{error.name()}, {request.right} is not granted"
            raise NotAuthorized(f"{where}: {why}") from exc
        if error.code() == KafkaError.INVALID_REPLICATION_FACTOR:
            if ALL_FENCED in error.str():
                raise RetriableError(f"{where}: {error.str()}") from exc
            raise TooFewBrokers(f"{where}: {error.name()} ({error.str()})") from exc
        if error.code() == KafkaError.INVALID_CONFIG:
            raise ConfigError(
                f"{where}: {error.str()}. Exclude the entry from remote topics with "
                f"config.properties.exclude"
            ) from exc
        raise
