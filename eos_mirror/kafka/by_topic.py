"""
One request about many topics, answered for each of them by itself.

A cluster that refuses one topic says nothing about the others. Whether it answers at all is a
question about all of them.
"""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from eos_mirror.errors import (
    ConfigError,
    MirrorError,
    NotAuthorized,
    SourceUnavailable,
    TargetUnavailable,
)
from eos_mirror.kafka.errors import translated
from eos_mirror.kafka.reconnecting import ReconnectingClient

NOT_ALLOWED = frozenset(
    {KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """
    What is asked for.

    Attributes:
        what: For the message of a refusal, such as "create topic".
        right: The operation that must be granted.
        within: How long the cluster may take.
        harmless: Codes of errors that are neither an answer nor a refusal.
    """

    what: str
    right: str
    within: timedelta
    harmless: Collection[int] = ()


def by_topic(
    request: Request, answers: Mapping[str, Any], *, source: bool, of: ReconnectingClient[Any]
) -> tuple[dict[str, Any], dict[str, MirrorError]]:
    """
    What the cluster answered, and which topics it refused and why.

    Args:
        answers: Futures by topic.
        source: The source cluster was asked, not the target.
        of: The client that asked; replaced when no broker answered it.

    Raises:
        SourceUnavailable, TargetUnavailable: The cluster did not answer. Ask again.
    """
    found: dict[str, Any] = {}
    refused: dict[str, MirrorError] = {}
    for topic, answer in answers.items():
        try:
            with (
                translated(f"{request.what} {topic}", source=source, of=of),
                _explained(request, topic),
            ):
                found[topic] = answer.result(request.within.total_seconds() + 1)
        except (SourceUnavailable, TargetUnavailable):
            raise
        except MirrorError as exc:
            refused[topic] = exc
    return found, refused


@contextmanager
def _explained(request: Request, topic: str) -> Iterator[None]:
    """A source of another version may have entries that this cluster does not know."""
    try:
        yield
    except KafkaException as exc:
        error, where = exc.args[0], f"{request.what} {topic}"
        if error.code() in request.harmless:
            return
        if error.code() in NOT_ALLOWED:
            why = f"{error.name()}, {request.right} is not granted"
            raise NotAuthorized(f"{where}: {why}") from exc
        if error.code() == KafkaError.INVALID_CONFIG:
            raise ConfigError(
                f"{where}: {error.str()}. Leave the entry out of remote topics with "
                f"config.properties.exclude"
            ) from exc
        raise
