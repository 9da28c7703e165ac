"""Translates the errors of this package into ours, in one table."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from eos_mirror.core.side import Side
from eos_mirror.errors import (
    MirrorError,
    NotAuthorized,
    ProducerFenced,
    RestartTask,
    SourceUnavailable,
    TargetUnavailable,
    TopicDenied,
)
from eos_mirror.wire.errors import (
    CONCURRENT_TRANSACTIONS,
    DENIED,
    FENCED,
    GROUP_AUTHORIZATION_FAILED,
    ILLEGAL_SASL_STATE,
    NO_COORDINATOR,
    NOT_ENOUGH_REPLICAS,
    NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    NOT_LEADER,
    REQUEST_TIMED_OUT,
    SASL_AUTHENTICATION_FAILED,
    TOPIC_AUTHORIZATION_FAILED,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    UNSUPPORTED_SASL_MECHANISM,
    Refused,
    Unanswered,
    Unreachable,
    WireError,
)

UNAVAILABLE: Final = (
    NO_COORDINATOR
    | NOT_LEADER
    | {
        CONCURRENT_TRANSACTIONS,
        NOT_ENOUGH_REPLICAS,
        NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ILLEGAL_SASL_STATE,
        REQUEST_TIMED_OUT,
        SASL_AUTHENTICATION_FAILED,
        UNSUPPORTED_SASL_MECHANISM,
    }
)
"""The cluster cannot do this now."""

RIGHTS: Final = {
    GROUP_AUTHORIZATION_FAILED: "READ on the group",
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "WRITE on the transactional ids of the flow",
}


def as_mirror_error(exc: WireError, what: object, *, side: Side) -> MirrorError:
    """
    Translate an error.

    Args:
        what: What was being done, for the message.
        side: Which cluster it is; selects SourceUnavailable or TargetUnavailable.
    """
    text = f"{what}: {exc}"
    unavailable = SourceUnavailable if side is Side.SOURCE else TargetUnavailable
    if isinstance(exc, Unanswered | Unreachable):
        return unavailable(text)
    if not isinstance(exc, Refused):
        return RestartTask(text)
    if exc.code == SASL_AUTHENTICATION_FAILED:
        text = f"{text}: the login was refused. Correct the credentials for this cluster"
    if exc.code in DENIED:
        return _denied(exc.code, text, side=side)
    if exc.code in FENCED:
        return ProducerFenced(text)
    return unavailable(text) if exc.code in UNAVAILABLE else RestartTask(text)


def _denied(code: int, text: str, *, side: Side) -> NotAuthorized:
    if code == TOPIC_AUTHORIZATION_FAILED:
        right = "READ on the topic" if side is Side.SOURCE else "READ and WRITE on the topic"
        return TopicDenied(f"{text}. Grant {right} with kafka-acls.sh")
    return NotAuthorized(f"{text}. Grant {RIGHTS.get(code, 'what is missing')} with kafka-acls.sh")


@contextmanager
def translated(what: object, *, side: Side) -> Iterator[None]:
    """
    Translate the errors of this package in the block into ours.

    Raises:
        NotAuthorized: A right is missing or was withdrawn.
        RestartTask: Anything else. The cluster did not answer (SourceUnavailable or
            TargetUnavailable), the producer was fenced (ProducerFenced), or an answer was not one.
    """
    try:
        yield
    except WireError as exc:
        raise as_mirror_error(exc, what, side=side) from exc
