"""
Who may run: one lease per task slot, kept in the driver.

Leases shorten the time in which two copies of a task live. They are not what makes copies
harmless: the fencing on the target does that.
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
"""A shorter one turns a pause of the driver into an outage; correctness does not depend on it."""

READ_PERIOD = timedelta(milliseconds=500)
"""How often the lease clock is read at the least; supervisors and heartbeats do it faster."""


class Command(StrEnum):
    """What the driver answers to a task."""

    RUN = "RUN"
    STOP = "STOP"
    RESTART = "RESTART"
    REJECT = "REJECT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Applicant:
    """
    A process that asks for a lease.

    Attributes:
        process: Random, made by the process itself: tells a reconnect from a second copy.
    """

    slot: int
    submission: str
    process: str
    pid: int
    host: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """
    What one heartbeat says.

    Attributes:
        loop_age_s: Since the task last proved that its loop turns. The heartbeat has a thread
            of its own and would outlive a deadlocked loop.
    """

    loop_age_s: float
    events_dropped: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseView:
    """
    A lease as it is now.

    Attributes:
        holder: None until the newest submission has said HELLO.
        ending: None until its BYE.
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
    The book of leases. Every method may be called from any thread.

    Invariants:
        A. Only the newest submission of a slot can get or keep a lease.
        B. A submission is leased to one process, ever; a second copy is turned away.
        C. Time in which the driver itself stood still does not count against a task.
    """

    def __init__(
        self, *, ttl: timedelta = DEFAULT_TTL, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.ttl = ttl
        self._clock = PatientClock(READ_PERIOD, clock)
        self._lock = threading.Lock()
        self._leases: dict[int, _Lease] = {}

    def expect(self, slot: int, submission: str) -> None:
        """Make this the newest submission of the slot; every earlier one is stale from now (A)."""
        with self._lock:
            self._leases[slot] = _Lease(submission=submission)

    def command(self, slot: int, command: Command) -> None:
        """Tell the holder with its next heartbeat. Holds until the next `expect`."""
        with self._lock:
            if slot in self._leases:
                self._leases[slot].command = command

    def admit(self, applicant: Applicant) -> str | None:
        """Grant or renew a lease; the reason why not, otherwise (A, B)."""
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
        """Take a heartbeat. A stale process is told to stop, always (A)."""
        with self._lock:
            lease = self._held_by(applicant)
            if lease is None:
                return Command.STOP
            lease.heard_s = self._clock.read()
            lease.beat = beat
            return lease.command

    def close(self, applicant: Applicant, ending: Ending) -> None:
        """Take a BYE. That of a stale process changes nothing."""
        with self._lock:
            lease = self._held_by(applicant)
            if lease is not None and lease.ending is None:
                lease.ending = ending
                lease.beat = _NO_BEAT

    def expired(self, slot: int) -> str | None:
        """Why the holder counts as dead; None while it lives or before its HELLO (C)."""
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
        """The slot as it is now; None before the first `expect`."""
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
        """Whether this process has the lease of its slot; not so a stale one (A)."""
        with self._lock:
            return self._held_by(applicant) is not None

    def _held_by(self, applicant: Applicant) -> _Lease | None:
        lease = self._leases.get(applicant.slot)
        if lease is None or lease.holder is None or lease.holder.process != applicant.process:
            return None
        return lease
