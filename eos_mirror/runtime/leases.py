"""
One lease per task slot, kept in the driver: its holder may run.

Leases shorten the time in which two copies of a task run. They do not make copies harmless: the
fencing on the target does that.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

from eos_mirror.runtime.clock import PatientClock
from eos_mirror.runtime.outcome import Ending

DEFAULT_TTL = timedelta(seconds=30)
"""A shorter lease turns a pause of the driver into an outage. Correctness does not need it."""

READ_PERIOD = timedelta(milliseconds=500)
"""Longest time between reads of the lease clock; supervisors and heartbeats read it faster."""


class Command(StrEnum):
    """The driver's answer to a task."""

    RUN = "RUN"
    STOP = "STOP"
    RESTART = "RESTART"
    REJECT = "REJECT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Applicant:
    """
    A process that asks for a lease.

    Attributes:
        process: Random id that the process made: distinguishes a reconnect from a second copy.
    """

    slot: int
    submission: str
    process: str
    pid: int
    host: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """
    The content of one heartbeat.

    Attributes:
        loop_age_s: Seconds since the task last proved that its loop is alive. The heartbeat has a
            thread of its own and would outlive a deadlocked loop.
    """

    loop_age_s: float
    events_dropped: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseView:
    """
    A snapshot of a lease.

    Attributes:
        holder: None until the newest submission has sent HELLO.
        ending: None until the holder has sent BYE.
    """

    submission: str
    holder: Applicant | None
    beat: Beat
    ending: Ending | None


_NO_BEAT = Beat(loop_age_s=0.0)


@dataclass(slots=True, kw_only=True)
class _Lease:
    submission: str
    command: Command = Command.RUN
    holder: Applicant | None = None
    heard_s: float = 0.0
    beat: Beat = field(default=_NO_BEAT)
    ending: Ending | None = None


class Leases:
    """
    The leases of all slots. Any thread may call every method.

    Invariants:
        A. Only the newest submission of a slot can get or keep a lease.
        B. A submission is leased to one process only; a second copy is rejected.
        C. Time in which the driver itself was paused does not count against a task.
    """

    def __init__(
        self, *, ttl: timedelta = DEFAULT_TTL, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.ttl = ttl
        self._clock = PatientClock(READ_PERIOD, clock)
        self._lock = threading.Lock()
        self._leases: dict[int, _Lease] = {}

    def expect(self, slot: int, submission: str) -> None:
        """Make this the newest submission of the slot; every earlier one becomes stale (A)."""
        with self._lock:
            self._leases[slot] = _Lease(submission=submission)

    def command(self, slot: int, command: Command) -> None:
        """Send the holder a command with each heartbeat, until the next `expect`."""
        with self._lock:
            if slot in self._leases:
                self._leases[slot].command = command

    def admit(self, applicant: Applicant) -> str | None:
        """Grant or renew a lease; return the reason if it is refused (A, B)."""
        with self._lock:
            lease = self._leases.get(applicant.slot)
            if lease is None or lease.submission != applicant.submission:
                return f"submission {applicant.submission} is not the newest"
            if lease.ending is not None or lease.command is not Command.RUN:
                return f"submission {applicant.submission} has ended or shall end"
            if lease.holder is None:
                lease.holder = applicant
            if lease.holder.process != applicant.process:
                return (
                    f"submission {applicant.submission} runs already as pid "
                    f"{lease.holder.pid} on {lease.holder.host}"
                )
            lease.heard_s = self._clock.read()
            return None

    def renew(self, applicant: Applicant, beat: Beat) -> Command:
        """Record a heartbeat and return the command. A stale process always gets STOP (A)."""
        with self._lock:
            lease = self._held_by(applicant)
            if lease is None:
                return Command.STOP
            lease.heard_s = self._clock.read()
            lease.beat = beat
            return lease.command

    def close(self, applicant: Applicant, ending: Ending) -> None:
        """Record a BYE. The BYE of a stale process changes nothing."""
        with self._lock:
            lease = self._held_by(applicant)
            if lease is not None and lease.ending is None:
                lease.ending = ending
                lease.beat = _NO_BEAT

    def expired(self, slot: int) -> str | None:
        """Return why the holder counts as dead; None while it lives or before its HELLO (C)."""
        now_s = self._clock.read()
        ttl_s = self.ttl.total_seconds()
        with self._lock:
            lease = self._leases.get(slot)
            if lease is None or lease.holder is None:
                return None
            silent_s = now_s - lease.heard_s
            if silent_s > ttl_s:
                return f"no heartbeat for {silent_s:.1f} s"
            if lease.beat.loop_age_s > ttl_s:
                return f"its loop stood still for {lease.beat.loop_age_s:.1f} s"
            return None

    def view(self, slot: int) -> LeaseView | None:
        """Return a snapshot of the slot; None before the first `expect`."""
        with self._lock:
            lease = self._leases.get(slot)
            if lease is None:
                return None
            return LeaseView(
                submission=lease.submission,
                holder=lease.holder,
                beat=lease.beat,
                ending=lease.ending,
            )

    def is_held_by(self, applicant: Applicant) -> bool:
        """Return True if this process holds the lease of its slot; a stale one does not (A)."""
        with self._lock:
            return self._held_by(applicant) is not None

    def _held_by(self, applicant: Applicant) -> _Lease | None:
        lease = self._leases.get(applicant.slot)
        if lease is None or lease.holder is None or lease.holder.process != applicant.process:
            return None
        return lease
