"""The task's end of the control channel: connects, identifies the task, calls the driver."""

import os
import secrets
import socket
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from eos_mirror.runtime.channel import Channel, End
from eos_mirror.runtime.outcome import Ending
from eos_mirror.runtime.spec import TaskSpec

CALL_TIMEOUT = timedelta(seconds=2)
"""Timeout of one send or receive, and of connecting."""

Event = tuple[str, Mapping[str, Any]]
"""Name and fields of a log event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a task sends: reports and log events, each in order."""

    reports: Sequence[Mapping[str, Any]] = ()
    events: Sequence[Event] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """
    The driver's answer to a heartbeat.

    Attributes:
        command: RUN, STOP or RESTART.
        ttl_s: Duration of the lease; only after a (re)connect.
        orders: The orders, if they are new to this connection.
    """

    command: str
    ttl_s: float | None
    orders: Mapping[str, Any] | None


class RejectedError(ConnectionError):
    """The driver answered HELLO with REJECT: this process may not run."""


class Link:
    """
    A connection that is made when needed. Any thread may call; one call at a time.

    Invariant A: after any error the connection is dropped, and the next call sends HELLO again.
    """

    def __init__(self, spec: TaskSpec) -> None:
        self._spec = spec
        self._process = secrets.token_hex(8)
        self._lock = threading.Lock()
        self._channel: Channel | None = None

    def heartbeat(
        self,
        told: Told,
        *,
        loop_age_s: float,
        events_dropped: int,
    ) -> Answer:
        """
        Renew the lease, after a HELLO if there is no connection.

        Raises:
            RejectedError: This process may not run. Exit.
            OSError: No answer; try again until the lease expires.
        """
        message = {
            "op": "HEARTBEAT",
            "reports": told.reports,
            "loop_age_s": loop_age_s,
            "events": told.events,
            "events_dropped": events_dropped,
        }
        with self._lock:
            hello = None if self._channel else self._connect()
            answer = self._call(message)
        greeting = hello or {}
        return Answer(
            command=answer["cmd"],
            ttl_s=greeting.get("ttl_s"),
            orders=answer.get("orders", greeting.get("orders")),
        )

    def bye(
        self,
        ending: Ending,
        told: Told,
        *,
        within: timedelta,
    ) -> bool:
        """Send how the task ended; return True if the driver received it. Never raises."""
        message = {
            "op": "BYE",
            "outcome": ending.outcome,
            "reason": ending.reason,
            "cause": ending.cause,
            "reports": told.reports,
            "events": told.events,
        }
        if not self._lock.acquire(timeout=within.total_seconds()):
            return False
        try:
            if self._channel is None:
                self._connect()
            self._call(message)
        except OSError:
            return False
        finally:
            self._lock.release()
        return True

    def close(self) -> None:
        """Drop the connection."""
        with self._lock:
            self._drop()

    def _connect(self) -> dict[str, Any]:
        address = (self._spec.control_host, self._spec.control_port)
        sock = socket.create_connection(address, CALL_TIMEOUT.total_seconds())
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._channel = Channel(sock, end=End.TASK, key=self._spec.key)
        except OSError:
            sock.close()
            raise
        answer = self._call(
            {
                "op": "HELLO",
                "slot": self._spec.slot,
                "submission": self._spec.submission,
                "process": self._process,
                "pid": os.getpid(),
                "host": socket.gethostname(),
            }
        )
        if answer["cmd"] == "REJECT":
            self._drop()
            raise RejectedError(answer["why"])
        return answer

    def _call(self, message: Mapping[str, Any]) -> dict[str, Any]:
        if self._channel is None:
            raise ConnectionError("not connected")
        try:
            self._channel.send(message)
            return self._channel.receive()
        except OSError:
            self._drop()
            raise

    def _drop(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None
