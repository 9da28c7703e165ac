"""How the fakes' clients send a request: through a gate, with a fate, and with retries."""

from collections.abc import Callable
from typing import TypeVar

from eos_mirror.core.records import TopicPartition
from eos_mirror.errors import MirrorError, ProducerFenced, RestartTask, TargetUnavailable
from tests.engine.coordinator import Code, Refused
from tests.engine.gate import Clock, Fate, Gate
from tests.engine.refusing import RefusedBatch

T = TypeVar("T")

RETRY_S = 0.1
"""Pause before a client retries."""


class NotAcknowledged(TargetUnavailable):
    """A remote partition has no leader, or too few replicas in sync for a write."""

    def __init__(self, remote: TopicPartition) -> None:
        super().__init__(f"not acknowledged in time: {remote}")
        self.remote = remote


class Requests:
    """The connection from one client to the cluster."""

    def __init__(
        self, gate: Gate, clock: Clock, lost: type[MirrorError] = TargetUnavailable
    ) -> None:
        """
        Args:
            lost: The error to raise when a request or its answer is lost.
        """
        self.gate = gate
        self.clock = clock
        self._lost = lost

    def ask(self, what: str, request: Callable[[], T]) -> T:
        """
        Send one request.

        Raises:
            Refused: The broker refused it.
            MirrorError: The request or its answer was lost.
        """
        return self.with_fate(self.gate(what), what, request)

    def with_fate(self, fate: Fate, what: str, request: Callable[[], T]) -> T:
        """Send one request that has passed its gate."""
        if fate is Fate.NOT_SENT:
            raise self._lost(f"{what}: the request was lost")
        if fate is Fate.REFUSED:
            raise RefusedBatch("MSG_SIZE_TOO_LARGE")
        answer = request()
        if fate is Fate.NOT_ANSWERED:
            raise self._lost(f"{what}: the answer was lost")
        return answer

    def insist(self, what: str, request: Callable[[], T], *, within_s: float) -> T:
        """Retry a request while the coordinator is busy, as the client library does."""
        deadline = self.clock() + within_s
        while True:
            try:
                return self.ask(what, request)
            except Refused as exc:
                if exc.code is not Code.CONCURRENT or self.clock() >= deadline:
                    raise refusal(exc, what) from exc
            self.clock.advance(RETRY_S)


def refusal(exc: Refused, what: str) -> RestartTask:
    """Return the error that the classes of kafka/ raise for it."""
    if exc.code is Code.FENCED:
        return ProducerFenced(f"{what}: {exc.code.name}")
    if exc.code is Code.CONCURRENT:
        return TargetUnavailable(f"{what}: {exc.code.name}")
    return RestartTask(f"{what}: {exc.code.name}")
