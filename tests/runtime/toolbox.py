"""What the runtime tests share: a stage with a control server and a herd, and waiting."""

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from eos_mirror.runtime.control import ControlServer
from eos_mirror.runtime.herd import Herd
from eos_mirror.runtime.launcher import Launcher
from eos_mirror.runtime.leases import Leases
from eos_mirror.runtime.local import LocalLauncher
from eos_mirror.runtime.spec import TaskSpec
from eos_mirror.runtime.supervisor import Patience, SlotStatus, State

T = TypeVar("T")

QUICK = Patience(
    start=timedelta(seconds=20), shutdown=timedelta(seconds=5), healthy=timedelta(seconds=30)
)


def eventually(probe: Callable[[], T], *, within_s: float = 10.0) -> T:
    """Return the first true answer of the probe; fail after the deadline."""
    deadline_s = time.monotonic() + within_s
    while not (answer := probe()):
        assert time.monotonic() < deadline_s, f"not within {within_s} s"
        time.sleep(0.01)
    return answer


def alive(pid: int) -> bool:
    """Return whether the process runs; a zombie does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def parent_of(pid: int, command: bytes) -> int:
    """Return the parent of a process; its command line must contain `command`."""
    parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    assert command in Path(f"/proc/{parent}/cmdline").read_bytes()
    return parent


def children_of(pid: int, command: bytes) -> list[int]:
    """Return living children of a process that run a command whose line contains this."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
            line = (stat.parent / "cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(parent) == pid and state != "Z" and command in line:
            found.append(int(stat.parent.name))
    return found


@dataclass
class Stage:
    """A control server, the events that it received, and a method that starts herds."""

    ttl: timedelta = timedelta(seconds=30)
    events: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    reports: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.leases = Leases(ttl=self.ttl)
        self.server = ControlServer(self.leases, on_event=self.on_event, on_report=self.on_report)
        self.server.start()
        self.herds: list[Herd] = []

    def on_event(self, name: str, fields: Mapping[str, Any]) -> None:
        """Keep an event."""
        self.events.append((name, fields))

    def on_report(self, _slot: int, submission: str, report: Mapping[str, Any]) -> None:
        """Keep the newest report of a submission."""
        self.reports[submission] = report

    def reported(self, herd: Herd, slot: int = 0) -> Mapping[str, Any]:
        """Return the newest submission's last report of a slot; empty before the first report."""
        return self.reports.get(herd.statuses()[slot].submission or "", {})

    def heard(self, name: str) -> list[Mapping[str, Any]]:
        """Return the fields of every event of that name."""
        return [fields for heard, fields in list(self.events) if heard == name]

    def spec(self, entry: str, *, slot: int = 0, submission: str = "0.0") -> TaskSpec:
        """Return a spec for a toy entry."""
        return TaskSpec(
            slot=slot,
            submission=submission,
            control_host=self.server.host,
            control_port=self.server.port,
            key=self.server.key,
            entry=f"tests.runtime.entries:{entry}",
            config={"password": "hunter2"},
        )

    def herd(
        self,
        *entries: str,
        launcher: Launcher | None = None,
        patience: Patience = QUICK,
    ) -> Herd:
        """Start a herd with one slot per entry."""
        herd = Herd(
            len(entries),
            launcher or LocalLauncher(),
            server=self.server,
            make_spec=lambda slot, submission: self.spec(
                entries[slot], slot=slot, submission=submission
            ),
            on_event=self.on_event,
            patience=patience,
        )
        herd.start()
        self.herds.append(herd)
        return herd

    def close(self) -> None:
        """Stop what was started."""
        for herd in self.herds:
            herd.stop_all()
        self.server.stop()


def running_pid(
    stage: Stage, herd: Herd, slot: int = 0, *, other_than: int = 0, within_s: float = 10.0
) -> int:
    """Return the pid of the slot once it runs and its loop has reported."""

    def probe() -> int:
        status = herd.statuses()[slot]
        is_running = status.state is State.RUNNING and status.pid != other_than
        return status.pid or 0 if is_running and stage.reported(herd, slot) else 0

    return eventually(probe, within_s=within_s)


def started_pid(herd: Herd, slot: int = 0, *, within_s: float = 10.0) -> int:
    """Return the pid of the slot once it has sent HELLO."""
    return eventually(lambda: herd.statuses()[slot].pid or 0, within_s=within_s)


def reaches(herd: Herd, state: str, slot: int = 0, *, within_s: float = 10.0) -> SlotStatus:
    """Return the status of the slot once it is in that state."""
    eventually(lambda: herd.statuses()[slot].state.value == state, within_s=within_s)
    return herd.statuses()[slot]


def kill_hard(pid: int) -> None:
    """Send SIGKILL."""
    os.kill(pid, 9)
