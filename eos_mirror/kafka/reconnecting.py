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
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, Generic, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from eos_mirror.errors import LoginImpossible
from eos_mirror.kafka.aws_msk_iam import waits_for_a_token
from eos_mirror.kafka.client import new_consumer, new_producer

SILENT_S = 10.0
ASK_S = 1.0
REMEMBERED_S = 1.0
"""For this long a coordinator is assumed to stay. A new client costs a connection, so callers that
poll must not get one each time."""

LOGIN_REFUSED: Final = frozenset(
    {
        KafkaError._AUTHENTICATION,  # noqa: SLF001 (the library's public name)
        KafkaError.SASL_AUTHENTICATION_FAILED,
    }
)
"""An outage, not the lack of a right: brokers refuse every login while their directory is away."""

LOGIN_AGAIN_S: Final = 10.0
"""A refused login is repeated after this time at the soonest: a directory may lock the account."""

ONE_LOGIN: Final = {"reconnect.backoff.ms": 14_000, "reconnect.backoff.max.ms": 14_000}
"""For a client that is probably refused: it tries again after a second. By default it does after
0.2 s, because librdkafka counts a connection as a success before it has logged in."""

ONE_LOGIN_S: Final = 3.0
ASK_LOGIN_S: Final = 0.2
RECENT_S: Final = 3.0
REMEMBERED_REFUSAL_S: Final = 30.0
"""For this long, a client that is made for the first time logs in as after a refusal."""

REFUSED: Final = "the cluster refused the login; it is repeated after 10 s"

C = TypeVar("C", bound=Any)


class Login:
    """Whether a client was refused the login. A client that held its owner would never be freed."""

    def __init__(self) -> None:
        self._refused_s = self._alone_s = float("-inf")

    def note(self, error: KafkaError) -> None:
        """Note an error: the `error_cb` of a client, which calls it when it is polled."""
        if error.code() in LOGIN_REFUSED:
            self._refused_s = time.monotonic()
        elif error.code() == KafkaError._ALL_BROKERS_DOWN:  # noqa: SLF001 (the same)
            self._alone_s = time.monotonic()

    @property
    def is_refused(self) -> bool:
        """True if a broker has refused the login. Connections to other brokers may remain."""
        return self._refused_s > float("-inf")

    @property
    def is_shut_out(self) -> bool:
        """True if no connection is left, and the login is refused."""
        return min(self._refused_s, self._alone_s) > time.monotonic() - RECENT_S

    def is_refused_now(self, client: Any, within_s: float = ONE_LOGIN_S) -> bool:
        """Wait until the login of a new client is accepted or refused; return True if refused."""
        ends_s = time.monotonic() + within_s
        while time.monotonic() < ends_s and not self.is_refused:
            with suppress(KafkaException):
                client.list_topics(timeout=ASK_LOGIN_S)
                return False
            client.poll(0)
        return self.is_refused


class ReconnectingClient(Generic[C]):
    """
    A client that is replaced when no broker answered it.

    It is replaced even in an outage that it would have survived: a new one costs a connection.

    A client that was refused the login is dropped: it would repeat the login several times a
    second, whatever its settings are. For 10 s there is no client. Then a new one logs in, and is
    used if that succeeds.
    """

    def __init__(
        self, kind: Callable[[dict[str, Any]], C], config: Mapping[str, Any], *, early: bool = True
    ) -> None:
        """
        Args:
            kind: Makes an admin client, or a consumer that joins no group.
            config: Complete client configuration.
            early: Connect now, and not with the first request.
        """
        self._kind, self._config = kind, dict(config)
        self._lock = threading.Lock()
        self._before: C | None = None  # other threads may wait for its answers
        self._made_s = time.monotonic()
        self._login = Login()
        self._refused_s = _refused_s(self._servers)
        self._client = self._early() if early and self._refused_s is None else None
        _clients.add(self)

    def _early(self) -> C | None:
        """
        Make a client before it is needed, so that it connects meanwhile.

        The first request of one that is not connected may take 3 s (seen with offsets). One that
        waits for a token when it is made also connects then.
        """
        return None if waits_for_a_token(self._config) else self._make()

    def _make(self, **cautious: int) -> C:
        return self._kind({**self._config, **cautious, "error_cb": self._login.note})

    @property
    def client(self) -> C:
        """
        Return a client for one request; the next request may need another one.

        Raises:
            LoginImpossible: The cluster refuses the login.
        """
        with self._lock:
            if self._client is None and self._refused_s is not None:
                self._client, self._made_s = self._log_in(self._refused_s), time.monotonic()
            elif self._client is None:
                self._client, self._made_s = self._make(), time.monotonic()
            return self._client

    def _log_in(self, refused_s: float) -> C:
        """Make a client that has logged in; not within 10 s of a refusal."""
        if time.monotonic() - refused_s < LOGIN_AGAIN_S:
            raise LoginImpossible(REFUSED)
        made = [self._make(**ONE_LOGIN)]
        if self._login.is_refused_now(made[0]):
            self._was_refused()
            let_go(made)  # a variable would keep it for as long as the error is kept
            raise LoginImpossible(REFUSED)
        self._refused_s = None
        return made[0]

    def replace(self) -> None:
        """Use a new client for the next request; after a refused login, none for 10 s."""
        if not self.drop_refused():
            self._renew()

    def drop_refused(self) -> bool:
        """Drop the client if it was refused the login; return True if there is none now."""
        with self._lock:
            if self._client is not None:
                self._client.poll(0)  # calls `note`
            if self._login.is_refused:
                self._abandon()
                let_go([self._before, self._client])
                self._before = self._client = None
                self._was_refused()
            return self._client is None and self._refused_s is not None

    def check_login(self) -> None:
        """Raise LoginImpossible if the client was refused the login since it connected."""
        if self.drop_refused():
            raise LoginImpossible(REFUSED)

    def _was_refused(self) -> None:
        self._login, self._refused_s = Login(), time.monotonic()
        _refusals[self._servers] = self._refused_s

    @property
    def _servers(self) -> str:
        return str(self._config["bootstrap.servers"])

    def _abandon(self) -> None:
        """Prepare the client to be dropped."""

    def _renew(self) -> None:
        with self._lock:
            self._abandon()
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


_refusals: dict[str, float] = {}
"""When each cluster, by its address, last refused a login in this process."""


def _refused_s(servers: str) -> float | None:
    """Return when a cluster refused a login a moment ago; None if it did not."""
    refused_s = _refusals.get(servers, float("-inf"))
    return refused_s if time.monotonic() - refused_s < REMEMBERED_REFUSAL_S else None


_clients: "weakref.WeakSet[ReconnectingClient[Any]]" = weakref.WeakSet()


def drop_refused_clients() -> None:
    """Drop every client of this process that was refused the login, even if it is not used now."""
    for one in list(_clients):
        one.drop_refused()


class ReconnectingProducer(ReconnectingClient[Producer]):
    """The same for a producer without transactions. Records that it has not sent are dropped."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        """
        Args:
            config: Complete client configuration.
        """
        super().__init__(new_producer, config)

    def _abandon(self) -> None:
        """Let the producer write nothing after its successor."""
        if self._client is not None:
            self._client.purge(blocking=False)


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
        was_refused = _refused_s(self._config["bootstrap.servers"]) is not None
        cautious = ONE_LOGIN if was_refused else {}
        other = new_consumer({**self._config, **cautious})  # it joins no group
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
