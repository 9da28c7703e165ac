"""
The control server in the driver: tasks connect to it, never the reverse.

| op | a task sends | the answer |
| --- | --- | --- |
| HELLO | slot, submission, process, pid, host | cmd RUN, ttl_s, orders; or cmd REJECT, why |
| HEARTBEAT | loop_age_s, reports, events, events_dropped | cmd RUN, STOP or RESTART; new orders |
| BYE | outcome, error, reports, events | cmd STOP |

Lines are signed (channel.py) but not encrypted: orders, reports and events hold no secrets.
The tasks define what orders and reports contain (tasks/messages.py).
"""

import secrets
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from eos_mirror.runtime.channel import Channel, End
from eos_mirror.runtime.leases import Applicant, Beat, Command, Leases
from eos_mirror.runtime.outcome import Ending, Outcome

EventSink = Callable[[str, Mapping[str, Any]], None]
"""Receives a log event (name, fields). Called from many threads; must not raise or block."""

ReportSink = Callable[[int, str, Mapping[str, Any]], None]
"""Receives a report (slot, submission, report). Called from many threads; must not block."""

HANDSHAKE_TIMEOUT = timedelta(seconds=5)
"""A peer that sends nothing is disconnected after this time."""

_ACCEPT_POLL = timedelta(milliseconds=200)


@dataclass(slots=True)
class _Session:
    """One connection: the task at the other end, and the version of the orders it has."""

    channel: Channel
    applicant: Applicant | None = None
    orders_version: int = field(default=-1)


class ControlServer:
    """
    Serves one herd of tasks: one thread per connection.

    Attributes:
        key: Hex, random per server; goes into every `TaskSpec`.
        leases: The leases of the tasks: which process may run.

    Invariant A: no message of a peer has an effect unless it is signed with the key.
    """

    def __init__(
        self,
        leases: Leases,
        *,
        on_event: EventSink,
        on_report: ReportSink,
        bind: str = "127.0.0.1",
        advertise: str = "",
    ) -> None:
        """
        Listen on a free port of `bind`.

        Args:
            leases: The leases to grant and renew.
            on_event: Receives the events of the tasks, with the field `task` added.
            on_report: Receives the reports of tasks that hold a lease, in order for each task.
            bind: Address to listen on.
            advertise: Host name at which tasks reach the server; `bind` if empty.
        """
        self.key = secrets.token_hex(32)
        self.leases = leases
        self._on_event = on_event
        self._on_report = on_report
        self._lock = threading.Lock()
        self._orders: tuple[int, Mapping[str, Any]] = (0, {})
        self._channels: set[Channel] = set()
        self._stopping = threading.Event()
        self._listener = socket.create_server((bind, 0), backlog=128)
        self._listener.settimeout(_ACCEPT_POLL.total_seconds())
        self.host = advertise or bind
        self.port: int = self._listener.getsockname()[1]
        self._acceptor = threading.Thread(target=self._accept, name="control", daemon=True)

    def start(self) -> None:
        """Start accepting connections."""
        self._acceptor.start()

    def stop(self) -> None:
        """Close the port and every connection. Tasks that still run become orphans."""
        self._stopping.set()
        self._acceptor.join()
        self._listener.close()
        with self._lock:
            channels = list(self._channels)
        for channel in channels:
            channel.close()

    def set_orders(self, orders: Mapping[str, Any]) -> None:
        """Replace the orders of every task; each gets them with its next heartbeat."""
        with self._lock:
            self._orders = (self._orders[0] + 1, dict(orders))

    def _accept(self) -> None:
        while not self._stopping.is_set():
            try:
                sock, _ = self._listener.accept()
            except TimeoutError:
                continue
            threading.Thread(
                target=self._serve, args=(sock,), name="control-task", daemon=True
            ).start()

    def _serve(self, sock: socket.socket) -> None:
        with sock:
            sock.settimeout(HANDSHAKE_TIMEOUT.total_seconds())
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                with Channel(sock, end=End.DRIVER, key=self.key) as channel:
                    self._converse(channel)
            except OSError:
                pass  # a stranger, or the task is gone: its lease will expire

    def _converse(self, channel: Channel) -> None:
        with self._lock:
            self._channels.add(channel)
        session = _Session(channel)
        try:
            while not self._stopping.is_set():
                channel.send(self._answer(session, channel.receive()))
        finally:
            with self._lock:
                self._channels.discard(channel)

    def _answer(self, session: _Session, message: Mapping[str, Any]) -> dict[str, Any]:
        if message["op"] == "HELLO":
            return self._hello(session, message)
        if session.applicant is None:
            raise ConnectionError("no HELLO")
        self._pass_on(session.applicant, message)
        if message["op"] == "BYE":
            ending = Ending(Outcome(message["outcome"]), message["reason"], message["cause"])
            self.leases.close(session.applicant, ending)
            return {"cmd": Command.STOP}
        beat = Beat(loop_age_s=message["loop_age_s"], events_dropped=message["events_dropped"])
        return {"cmd": self.leases.renew(session.applicant, beat), **self._news(session)}

    def _hello(self, session: _Session, message: Mapping[str, Any]) -> dict[str, Any]:
        applicant = Applicant(
            slot=message["slot"],
            submission=message["submission"],
            process=message["process"],
            pid=message["pid"],
            host=message["host"],
        )
        refusal = self.leases.admit(applicant)
        if refusal is not None:
            return {"cmd": Command.REJECT, "why": refusal}
        session.applicant = applicant
        session.channel.set_timeout(self.leases.ttl)
        ttl_s = self.leases.ttl.total_seconds()
        return {"cmd": Command.RUN, "ttl_s": ttl_s, **self._news(session)}

    def _news(self, session: _Session) -> dict[str, Any]:
        version, orders = self._orders
        if version == session.orders_version:
            return {}
        session.orders_version = version
        return {"orders": orders}

    def _pass_on(self, applicant: Applicant, message: Mapping[str, Any]) -> None:
        """Forward events first: a report may cause log events, which belong after them."""
        for name, fields in message["events"]:
            self._on_event(name, {**fields, "task": applicant.slot})
        if self.leases.is_held_by(applicant):
            for report in message["reports"]:
                self._on_report(applicant.slot, applicant.submission, report)
