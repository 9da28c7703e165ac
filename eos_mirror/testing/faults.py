"""Faults: which request each one affects, and what happens to the request."""

import struct
import threading
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum, IntEnum, auto

from eos_mirror.testing.waiting import wait_until

HEADER = struct.Struct(">ihhih")
"""Length, api key, version, correlation id and length of the client id."""


class Api(IntEnum):
    """Requests that a fault can affect, by Kafka's api key."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    INIT_PRODUCER_ID = 22
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    TXN_OFFSET_COMMIT = 28


class Action(Enum):
    """
    What happens to the request.

    DELAY_REQUEST: the broker gets it after `delay`.
    DELAY_RESPONSE: the client gets the answer after `delay`.
    DROP_RESPONSE: carried out, never answered; the connection stays.
    CUT_AFTER_REQUEST: carried out, the connection is cut immediately.
    CUT_BEFORE_RESPONSE: carried out to the end, the connection is cut instead of the answer.
    HOLD_REQUEST: the broker gets it at `release`; later requests of the connection wait.
    STEAL_REQUEST: the connection is cut, and the broker gets the request at `release`, when the
        client has already sent another: a late duplicate.
    HIDE_BROKERS: for METADATA only: the answer names no broker, as while all are fenced.
    """

    DELAY_REQUEST = auto()
    DELAY_RESPONSE = auto()
    DROP_RESPONSE = auto()
    CUT_AFTER_REQUEST = auto()
    CUT_BEFORE_RESPONSE = auto()
    HOLD_REQUEST = auto()
    STEAL_REQUEST = auto()
    HIDE_BROKERS = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The header of a request."""

    api: int
    version: int
    correlation_id: int
    client_id: str | None


def parse_request(frame: bytes) -> Request:
    """Parse the header of a request frame, including its length."""
    _, api, version, correlation_id, length = HEADER.unpack_from(frame)
    name = frame[HEADER.size : HEADER.size + length].decode() if length >= 0 else None
    return Request(api=api, version=version, correlation_id=correlation_id, client_id=name)


class Fault:
    """One fault. Thread-safe."""

    def __init__(
        self,
        api: Api,
        action: Action,
        *,
        delay: timedelta | None = None,
        skip: int = 0,
        times: int | None = 1,
        client_id: str | None = None,
    ) -> None:
        """
        Args:
            delay: Length of the delay; None: until `release`.
            skip: Let this many matching requests pass first.
            times: Affect this many requests; None: all.
            client_id: Affect only requests of this client.
        """
        self.api, self.action = api, action
        self._delay_s = delay.total_seconds() if delay else None
        self._skip, self._left, self._client_id = skip, times, client_id
        self._released = threading.Event()
        self._lock = threading.Lock()
        self._hits = 0

    @property
    def hits(self) -> int:
        """Return how often the fault has happened, not how often it matched."""
        with self._lock:
            return self._hits

    def wait_hit(self, *, within: timedelta = timedelta(seconds=30)) -> None:
        """Wait until the fault has happened at least once. Raises TimeoutError."""
        what = f"{self.action.name} of {self.api.name}"
        wait_until(lambda: self.hits > 0, within=within, what=what)

    def release(self) -> None:
        """Let held or delayed requests and answers pass."""
        self._released.set()

    def takes(self, request: Request) -> bool:
        """Return whether the fault affects this request; counts it against `skip` and `times`."""
        other_client = self._client_id is not None and request.client_id != self._client_id
        if request.api != self.api or other_client:
            return False
        with self._lock:
            if self._skip:
                self._skip -= 1
                return False
            if self._left is None:
                return True
            self._left -= 1
            return self._left >= 0

    def hit(self) -> None:
        """Count a hit; the proxy calls this when the fault happens."""
        with self._lock:
            self._hits += 1

    def wait_release(self) -> None:
        """Wait for the delay, or until `release`."""
        self._released.wait(self._delay_s)
