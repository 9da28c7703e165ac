"""
Translates client errors into our errors, in one table.

`.fatal()`, `.retriable()` and `.txn_requires_abort()` are not used: different calls set different
flags for the same fault. The code decides.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from eos_mirror.core.records import TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.core.suspects import Refusal
from eos_mirror.errors import (
    MirrorError,
    NotAuthorized,
    ProducerFenced,
    RefusedByTarget,
    RestartTask,
    SourceUnavailable,
    TargetUnavailable,
    TopicDenied,
)
from eos_mirror.kafka.reconnecting import LOGIN_REFUSED, ReconnectingClient

FENCED = frozenset(
    {
        KafkaError._FENCED,  # noqa: SLF001 (the library's public names for local errors)
        KafkaError.PRODUCER_FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
        KafkaError.FENCED_INSTANCE_ID,
    }
)
DENIED = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)
UNREACHABLE = frozenset(
    {
        KafkaError._TRANSPORT,  # noqa: SLF001
        KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
        KafkaError._TIMED_OUT,  # noqa: SLF001
        KafkaError._RESOLVE,  # noqa: SLF001
        KafkaError._DESTROY_BROKER,  # noqa: SLF001 (a broker left the metadata while it was asked)
        KafkaError._NOENT,  # noqa: SLF001 (no leader is known)
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.NOT_COORDINATOR,
        KafkaError.CONCURRENT_TRANSACTIONS,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.OFFSET_NOT_AVAILABLE,
    }
)

UNANSWERED = frozenset(
    {
        KafkaError._TRANSPORT,  # noqa: SLF001
        KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
        KafkaError._TIMED_OUT,  # noqa: SLF001
        KafkaError._DESTROY_BROKER,  # noqa: SLF001
    }
)
"""Codes of a client that reached no broker; the others in UNREACHABLE come from brokers."""

REFUSED = frozenset(
    {
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.RECORD_LIST_TOO_LARGE,
        KafkaError.INVALID_MSG_SIZE,
        KafkaError.INVALID_TIMESTAMP,
        KafkaError.INVALID_RECORD,
        KafkaError.POLICY_VIOLATION,
        KafkaError._INVALID_DIFFERENT_RECORD,  # noqa: SLF001
    }
)
"""The target, or the client itself, refused the batch: nothing of it was stored."""

_REFUSED_WHERE = re.compile(r"ProduceRequest for (\S+) \[(\d+)\] with (\d+) message")
"""Finds the partition and the batch size in the text of a refusal that a later call reports."""


def as_mirror_error(error: KafkaError, what: object, *, side: Side) -> MirrorError:
    """
    Translate a client error.

    Args:
        what: What was being done, for the message.
        side: Which cluster it is; selects SourceUnavailable or TargetUnavailable.
    """
    code = error.code()
    text = f"{what}: {error.name()} ({error.str()})"
    if code in DENIED:
        denied = TopicDenied if code == KafkaError.TOPIC_AUTHORIZATION_FAILED else NotAuthorized
        return denied(f"{text}. Grant {_right(code, side=side)} with kafka-acls.sh")
    if code in LOGIN_REFUSED:
        text = f"{text}: the login was refused. Correct the credentials for this cluster"
    if code in FENCED:
        return ProducerFenced(text)
    if code in REFUSED and (where := _REFUSED_WHERE.search(error.str())):
        remote = TopicPartition(where[1], int(where[2]))
        refusal = Refusal(code=error.name(), reason=error.str(), records=int(where[3]))
        return RefusedByTarget(text, refused={remote: refusal})
    if code in UNREACHABLE or code in LOGIN_REFUSED:
        return SourceUnavailable(text) if side is Side.SOURCE else TargetUnavailable(text)
    return RestartTask(text)


def _right(code: int, *, side: Side) -> str:
    if code == KafkaError.TOPIC_AUTHORIZATION_FAILED:
        return "READ on the topic" if side is Side.SOURCE else "READ and WRITE on the topic"
    if code == KafkaError.GROUP_AUTHORIZATION_FAILED:
        return "READ on the group"
    if code == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
        return "WRITE on the transactional ids of the flow"
    return "what is missing"


@contextmanager
def translated(
    what: object, *, side: Side = Side.TARGET, of: ReconnectingClient[Any] | None = None
) -> Iterator[None]:
    """
    Translate every exception of the client in the block into our errors.

    SystemError is also caught: the binding raises it when a fatal error meets a delivery callback.
    The client is then as dead as after a KafkaException.

    Args:
        what: What is done, for the message; becomes text only if something fails.
        side: Which cluster it is; selects SourceUnavailable or TargetUnavailable.
        of: The client that asks; replaced when no broker answered it.

    Raises:
        NotAuthorized: A right is missing or was withdrawn.
        RefusedByTarget: A batch was refused, so the transaction cannot be committed.
        RestartTask: Anything else. The cluster did not answer (SourceUnavailable or
            TargetUnavailable), the producer was fenced (ProducerFenced), or the client failed.
    """
    try:
        yield
    except KafkaException as exc:
        if of is not None and exc.args[0].code() in UNANSWERED:
            of.replace()
        raise as_mirror_error(exc.args[0], what, side=side) from exc
    except SystemError as exc:
        raise RestartTask(f"{what}: the client failed fatally ({exc})") from exc
    except TimeoutError as exc:  # of a future that the client did not resolve in its own time
        if of is not None:
            of.replace()
        fault = SourceUnavailable if side is Side.SOURCE else TargetUnavailable
        raise fault(f"{what}: no answer") from exc
