"""
One thread per task slot: submits the task, watches it, and submits it again when it dies.

STARTING --HELLO--> RUNNING --death--> BACKOFF --delay--> STARTING
    any of them --stop()--> STOPPING --gone--> STOPPED
    STARTING, RUNNING --FATAL--> FAILED;  --finished--> STOPPED
    STOPPED, FAILED --start()--> STARTING
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

from eos_mirror.errors import fields_of
from eos_mirror.runtime.control import EventSink
from eos_mirror.runtime.launcher import Launcher, Running
from eos_mirror.runtime.leases import Command, Leases
from eos_mirror.runtime.outcome import Ending, Outcome
from eos_mirror.runtime.spec import TaskSpec

FIRST_BACKOFF = timedelta(milliseconds=200)
MAX_BACKOFF = timedelta(seconds=20)

_POLL = timedelta(milliseconds=200)
_KILL_REPEAT = timedelta(seconds=1)
_KILL_WAIT = timedelta(seconds=10)

MakeSpec = Callable[[int, str], TaskSpec]
"""Makes the spec for (slot, submission); called before every submission, so it may change."""


class State(StrEnum):
    """The state of a task slot."""

    STARTING = "STARTING"
    RUNNING = "RUNNING"
    BACKOFF = "BACKOFF"
    STOPPING = "STOPPING"
    STOPPED = "STOPPED"
    FAILED = "FAILED"


MOVES: Mapping[State, frozenset[State]] = {
    State.STARTING: frozenset(
        {State.RUNNING, State.BACKOFF, State.STOPPING, State.STOPPED, State.FAILED}
    ),
    State.RUNNING: frozenset({State.BACKOFF, State.STOPPING, State.STOPPED, State.FAILED}),
    State.BACKOFF: frozenset({State.STARTING, State.STOPPED}),
    State.STOPPING: frozenset({State.STOPPED}),
    State.STOPPED: frozenset({State.STARTING}),
    State.FAILED: frozenset({State.STARTING}),
}
"""Every legal move from one state to others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotStatus:
    """
    A task slot, as its supervisor sees it.

    Attributes:
        reason: Why it is in that state; may be empty.
        submission: The newest submission; None before the first.
        restarts: Number of processes that were replaced.
        pid, host: Where the process runs; None before its HELLO.
        loop_age_s: Seconds since the task last proved that its loop is alive; None before the
            first submission.
        events_dropped: Number of log events that the process had to drop.
    """

    slot: int
    state: State
    reason: str
    submission: str | None
    restarts: int
    pid: int | None
    host: str | None
    loop_age_s: float | None
    events_dropped: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """
    How long a supervisor waits.

    Attributes:
        start: From the submission to HELLO. Then the submission is killed and repeated: there is
            no free slot, or the worker cannot reach the control server.
        shutdown: From STOP to the end of the task. Then the task is killed.
        healthy: A task that ran this long restarts without delay when it dies.
        may_restart: While it returns False, a task that died is not started again.
    """

    start: timedelta = timedelta(seconds=60)
    shutdown: timedelta = timedelta(seconds=30)
    healthy: timedelta = timedelta(seconds=10)
    may_restart: Callable[[], bool] = lambda: True


DEFAULT_PATIENCE = Patience()


def backoff(failures_count: int) -> timedelta:
    """Return the delay of a restart after this many consecutive failures; none after the first."""
    if failures_count <= 1:
        return timedelta(0)
    doublings = min(failures_count - 2, 16)
    return min(FIRST_BACKOFF * (1 << doublings), MAX_BACKOFF)


class Supervisor:
    """
    Keeps one slot running.

    Invariants:
        A. A slot has at most one submission that can get a lease.
        B. State moves only along MOVES.
        C. The thread that launches a task outlives it (PDEATHSIG refers to the thread).
    """

    def __init__(
        self,
        slot: int,
        launcher: Launcher,
        *,
        leases: Leases,
        make_spec: MakeSpec,
        on_event: EventSink,
        patience: Patience = DEFAULT_PATIENCE,
    ) -> None:
        self.slot = slot
        self._launcher = launcher
        self._leases = leases
        self._make_spec = make_spec
        self._on_event = on_event
        self._patience = patience
        self._state = State.STOPPED
        self._reason = ""
        self._submissions_count = 0
        self._restarts_count = 0
        self._failures_count = 0
        self._running_since_s: float | None = None
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def state(self) -> State:
        """The current state."""
        return self._state

    def start(self) -> None:
        """Submit the task and supervise it; also after STOPPED or FAILED."""
        self._stopping.clear()
        self._failures_count = 0
        self._thread = threading.Thread(
            target=self._run, name=f"supervisor-{self.slot}", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Ask the task to finish. Returns immediately; `join` waits."""
        self._stopping.set()
        self._leases.command(self.slot, Command.STOP)

    def restart(self) -> None:
        """Replace the process: by a RESTART command if the task runs, otherwise by `start`."""
        if self._thread is None or not self._thread.is_alive():
            self.start()
        elif not self._stopping.is_set():
            self._leases.command(self.slot, Command.RESTART)

    def join(self) -> None:
        """Wait for the end; at most for the shutdown patience and the time of a kill."""
        if self._thread is not None:
            self._thread.join()

    def status(self) -> SlotStatus:
        """Return a snapshot of the slot."""
        lease = self._leases.view(self.slot)
        holder = lease.holder if lease else None
        return SlotStatus(
            slot=self.slot,
            state=self._state,
            reason=self._reason,
            submission=lease.submission if lease else None,
            restarts=self._restarts_count,
            pid=holder.pid if holder else None,
            host=holder.host if holder else None,
            loop_age_s=lease.beat.loop_age_s if lease else None,
            events_dropped=lease.beat.events_dropped if lease else 0,
        )

    def _run(self) -> None:
        try:
            final = self._keep_running()
        except Exception as exc:  # noqa: BLE001 - top of a thread: shown as the state of the slot
            final = Ending(Outcome.FATAL, **fields_of(exc))
        failed = final.outcome is Outcome.FATAL and not self._stopping.is_set()
        self._move(State.FAILED if failed else State.STOPPED, final.reason)
        self._tell("task.failed" if failed else "task.stopped", **_why(final))

    def _keep_running(self) -> Ending:
        while True:
            ending = self._submit()
            if self._stopping.is_set() or ending.outcome is not Outcome.RESTART:
                return ending
            delay = self._count(ending)
            self._move(State.BACKOFF, ending.reason)
            self._tell("task.restarting", **_why(ending), delay_s=delay.total_seconds())
            if self._stopping.wait(delay.total_seconds()) or not self._is_allowed():
                return Ending(Outcome.STOPPED)

    def _is_allowed(self) -> bool:
        """Wait until the task may start again; return False if it has to stop meanwhile."""
        while not self._patience.may_restart():
            if self._stopping.wait(_POLL.total_seconds()):
                return False
        return True

    def _count(self, ending: Ending) -> timedelta:
        """Count a death, and return the delay before the next submission."""
        self._restarts_count += 1
        lived_s = time.monotonic() - (self._running_since_s or time.monotonic())
        if lived_s > self._patience.healthy.total_seconds():
            self._failures_count = 0
        if ending.reason:
            self._failures_count += 1
        return backoff(self._failures_count) if ending.reason else timedelta(0)

    def _submit(self) -> Ending:
        """Run one submission, from launch to end."""
        submission = f"{self.slot}.{self._submissions_count}"
        self._submissions_count += 1
        self._running_since_s = None
        self._move(State.STARTING, self._reason)
        self._leases.expect(self.slot, submission)
        try:
            running = self._launcher.launch(self._make_spec(self.slot, submission))
        except OSError as exc:
            return Ending(Outcome.RESTART, f"cannot launch: {exc}")
        return self._attend(running)

    def _attend(self, running: Running) -> Ending:
        launched_s = time.monotonic()
        while (ended := running.wait(_POLL)) is None:
            if self._stopping.is_set():
                return self._end(running)
            fault = self._fault(launched_s)
            if fault is not None:
                self._kill(running)
                return Ending(Outcome.RESTART, fault)
        return self._said() or ended

    def _fault(self, launched_s: float) -> str | None:
        """Return why the submission has to be killed; None if it does not."""
        lease = self._leases.view(self.slot)
        if lease is not None and lease.holder is not None:
            if self._state is State.STARTING:
                self._running_since_s = time.monotonic()
                self._move(State.RUNNING, "")
                self._tell("task.started", pid=lease.holder.pid, host=lease.holder.host)
            return self._leases.expired(self.slot)
        if time.monotonic() - launched_s > self._patience.start.total_seconds():
            return (
                f"no HELLO within {self._patience.start.total_seconds():g} s: no free slot for "
                "the task, or its worker cannot reach the control server"
            )
        return None

    def _end(self, running: Running) -> Ending:
        """Stop the task and wait; kill it when the shutdown patience is over."""
        self._move(State.STOPPING, "")
        self._leases.command(self.slot, Command.STOP)
        lease = self._leases.view(self.slot)
        if lease is None or lease.holder is None:
            self._kill(running)
            return Ending(Outcome.STOPPED)
        ended = running.wait(self._patience.shutdown)
        if ended is None:
            self._kill(running)
            patience_s = self._patience.shutdown.total_seconds()
            return Ending(Outcome.STOPPED, f"killed: it did not stop within {patience_s:g} s")
        return self._said() or ended

    def _kill(self, running: Running) -> None:
        deadline_s = time.monotonic() + _KILL_WAIT.total_seconds()
        running.kill()
        while running.wait(_KILL_REPEAT) is None and time.monotonic() < deadline_s:
            running.kill()

    def _said(self) -> Ending | None:
        """Return the BYE of the submission, if there was one."""
        lease = self._leases.view(self.slot)
        return lease.ending if lease else None

    def _move(self, to: State, reason: str) -> None:
        if to not in MOVES[self._state]:
            raise RuntimeError(f"task {self.slot}: no move from {self._state} to {to}")
        self._state = to
        self._reason = reason

    def _tell(self, name: str, **fields: Any) -> None:
        lease = self._leases.view(self.slot)
        submission = lease.submission if lease else None
        self._on_event(name, {"task": self.slot, "submission": submission, **fields})


def _why(ending: Ending) -> dict[str, str]:
    return {"cause": ending.cause, "reason": ending.reason}
