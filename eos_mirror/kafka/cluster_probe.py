"""Finds out whether a cluster answers, and if not, why."""

import logging
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from enum import Enum
from typing import Any, Final, NamedTuple

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from eos_mirror.errors import LoginImpossible
from eos_mirror.kafka.any_broker import ask_any_broker, is_answered
from eos_mirror.kafka.client import new_admin
from eos_mirror.kafka.client_log import CLOSED_CONNECTIONS, logger_for
from eos_mirror.kafka.deadline import GRACE_S, Deadline
from eos_mirror.kafka.reconnecting import ONE_LOGIN, let_go

POLL_S = 0.05
SOON: Final = timedelta(seconds=1)
LISTED: Final = timedelta(seconds=2)
"""A refusal is noticed as late as this, because the client blocks meanwhile."""

_BROKER = re.compile(r"^(?:FAIL )?(?:\[\S+\] \[\S+\]: )?\S+/\S+: ")
_WHEN = re.compile(r" \(after \d+ms in state .*\)$")
_ADVICE = re.compile(r", verify that .*$")
"""It names the setting as librdkafka calls it."""

_ADDRESS = re.compile(r"\bipv[46]#")


class Refusal(Enum):
    """What a cluster, or the connection to it, refuses; waiting does not help."""

    LOGIN = "login"
    TOKEN = "token"  # noqa: S105 (the cause, not a secret)
    CERTIFICATE = "certificate"


REFUSALS: Final = {
    KafkaError._AUTHENTICATION: Refusal.LOGIN,  # noqa: SLF001 (the names of local errors)
    KafkaError.SASL_AUTHENTICATION_FAILED: Refusal.LOGIN,
    KafkaError._SSL: Refusal.CERTIFICATE,  # noqa: SLF001
}


class Silence(NamedTuple):
    """
    Why a cluster gave no answer.

    Attributes:
        cause: What the client saw last; empty if it saw nothing.
        refusal: What was refused; None if nothing was.
    """

    cause: str
    refusal: Refusal | None = None


class ClusterProbe:
    """Asks one cluster for its brokers, with a client of its own. For one thread."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        """
        Args:
            config: Client settings for connection and security.
        """
        self._config = config
        self._seen = _Seen()
        self._was_refused = False
        self._admin: AdminClient | None = None

    def ask(self, deadline: Deadline) -> Silence | None:
        """
        Return None if the cluster answers before the deadline, otherwise why it does not.

        A refusal ends the wait: the same client would be refused again. After a silence the next
        question has a new client. After a refused login it tries to log in once.
        """
        if self._admin is None:
            config = {
                **self._config,
                **(ONE_LOGIN if self._was_refused else {}),
                "log_level": CLOSED_CONNECTIONS,
                "error_cb": self._seen.refused,
            }
            try:
                self._admin = new_admin(config, logger=logger_for(self._seen))
            except LoginImpossible as exc:
                return Silence(str(exc), Refusal.TOKEN)
        self._admin.poll(0)
        self._seen.forget()  # what happened since the last question is over
        if self._is_answered(self._admin, deadline):
            if self._was_refused:  # this client would wait long before it connects again
                self.renew()
            self._was_refused = False
            return None
        self._admin.poll(0)
        self.renew()
        self._was_refused = self._seen.refusal is Refusal.LOGIN
        return Silence(self._seen.cause, self._seen.refusal)

    def _is_answered(self, admin: AdminClient, deadline: Deadline) -> bool:
        """
        Return True as soon as a broker answers, False when the time is up or something is refused.

        librdkafka sends the question to the controller that the metadata names: any broker, also
        one that has just died. So the brokers that are connected are asked for their topics, too.
        """
        soon = Deadline(SOON)
        answer = ask_any_broker(admin, within_s=deadline.all_s)
        while not (answer.done() or deadline.is_over or self._seen.refusal):
            admin.poll(POLL_S)
            if soon.is_over:
                with suppress(KafkaException):
                    admin.list_topics(timeout=deadline.left_s(at_most=LISTED))
                    return True
        if answer.done() or not self._seen.refusal:
            with suppress(TimeoutError):
                return is_answered(answer, within_s=GRACE_S)
        return False

    def renew(self) -> None:
        """Connect, and log in, again for the next question."""
        let_go([self._admin])
        self._admin = None


class _Seen(logging.Handler):
    """Keeps the last failure that a client logs, and the first refusal."""

    def __init__(self) -> None:
        super().__init__()
        self.cause = ""
        self.refusal: Refusal | None = None

    def forget(self) -> None:
        """Keep nothing of what was seen so far."""
        self.cause, self.refusal = "", None

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a failed connection. The line names the client, the thread and the broker first."""
        text = record.getMessage()
        if text.startswith("FAIL") and self.refusal is None:
            self.cause = _cause(text)

    def refused(self, error: KafkaError) -> None:
        """Keep an error of the client, if it is a refusal."""
        refusal = REFUSALS.get(error.code())
        if refusal and self.refusal is None:
            self.refusal, self.cause = refusal, _cause(error.str())


def _cause(text: str) -> str:
    """Return a failure without the names of client and broker, and without the client's state."""
    return _ADVICE.sub("", _ADDRESS.sub("", _WHEN.sub("", _BROKER.sub("", text))))
