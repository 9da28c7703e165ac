"""Keeps one `eos-mirror run` running, as systemd would, and reads its log events and stderr."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import IO, Any

from eos_mirror.testing.processes import identity, is_running, spawn

STARTED_AGAIN_AFTER_S = 1.0
STOP_WITHIN_S = 90.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """
    A log event.

    Attributes:
        at: Monotonic seconds at which its line was read.
        run: Number of the driver process that wrote it, from 0.
    """

    at: float
    run: int
    fields: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The name of the event."""
        return str(self.fields["event"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """
    The exit of a driver process.

    Attributes:
        wanted: The signal that the nemesis sent; None if it exited by itself.
    """

    at: float
    run: int
    code: int
    wanted: int | None


class RestartingDriver:
    """
    Starts the driver again whenever it exits, until `stop`.

    Invariant: there is at most one live driver. One thread at a time calls the methods.
    """

    def __init__(self, config: Path, env: Mapping[str, str]) -> None:
        self.events: list[Heard] = []
        self.exits: list[Exit] = []
        self.errors: list[tuple[int, str]] = []
        self._command = [sys.executable, "-m", "eos_mirror.cli.main", "run", str(config)]
        self._env = {**os.environ, "PYTHONFAULTHANDLER": "1", **env}
        self._tasks: list[tuple[int, int, str]] = []
        self._runs = 0
        self._wanted: int | None = None
        self._closing = threading.Event()
        self._ended = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None

    # ------------------------------------------------------------------ processes

    def start(self) -> None:
        """Start a driver; return immediately."""
        run, self._runs = self._runs, self._runs + 1
        self._wanted = None
        self._ended = threading.Event()
        self._process = process = spawn(
            [*self._command, "--verbose"],
            environ=self._env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stdout is not None
        assert process.stderr is not None
        for target, arguments in (
            (self._read_events, (run, process.stdout)),
            (self._read_errors, (run, process.stderr)),
            (self._mind, (run, process, self._ended)),
        ):
            threading.Thread(target=target, args=arguments, daemon=True).start()

    def replace(self, number: int) -> bool:
        """Signal the driver to exit and start another; return False if there is none."""
        process = self._process
        if process is None or process.poll() is not None:
            return False
        self._signal(number)
        self.start()
        return True

    def stop(self) -> int:
        """Send SIGTERM and return the exit code. No driver is started again."""
        self._closing.set()
        self._signal(signal.SIGTERM)
        assert self._process is not None
        return int(self._process.returncode)

    def dump(self) -> None:
        """Abort every task; the stack of each of its threads is added to `errors`."""
        for pid in self.survivors():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGABRT)

    def close(self) -> None:
        """Kill the driver if it is still alive."""
        self._closing.set()
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait(10)

    @property
    def driver(self) -> int | None:
        """The process id of the live driver; None if there is none."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    def tasks(self) -> dict[int, int]:
        """Return the process id by task, for the live tasks of the newest driver."""
        newest = self._runs - 1
        last = {slot: who for run, slot, who in list(self._tasks) if run == newest}
        return {slot: _pid(who) for slot, who in last.items() if is_running(who)}

    def survivors(self) -> list[int]:
        """Return the process ids of all live tasks of all drivers."""
        return sorted({_pid(who) for _, _, who in list(self._tasks) if is_running(who)})

    def _signal(self, number: int) -> None:
        assert self._process is not None
        self._wanted = number
        self._process.send_signal(number)
        if not self._ended.wait(STOP_WITHIN_S):
            self._process.kill()
            self._ended.wait(10)

    def _mind(self, run: int, process: subprocess.Popen[bytes], ended: threading.Event) -> None:
        code = process.wait()
        wanted = self._wanted
        self.exits.append(Exit(at=monotonic(), run=run, code=code, wanted=wanted))
        ended.set()
        if wanted is not None or self._closing.wait(STARTED_AGAIN_AFTER_S):
            return
        if self._process is process:  # no other thread has started one
            self.start()

    # ------------------------------------------------------------------ log events and stderr

    def found(self, name: str, **fields: object) -> list[Heard]:
        """Return the events so far with this name and these fields."""
        return [
            heard
            for heard in list(self.events)
            if heard.name == name and fields.items() <= heard.fields.items()
        ]

    def _read_events(self, run: int, stdout: IO[bytes]) -> None:
        with stdout:
            for line in stdout:
                self._hear(run, line)

    def _hear(self, run: int, line: bytes) -> None:
        try:
            heard = Heard(at=monotonic(), run=run, fields=json.loads(line))
        except json.JSONDecodeError:
            self.errors.append((run, f"not an event: {line.decode(errors='replace')}"))
            return
        if heard.name == "task.started":
            who = identity(int(heard.fields["pid"]))
            self._tasks.append((run, int(heard.fields["task"]), who))
        self.events.append(heard)

    def _read_errors(self, run: int, stderr: IO[bytes]) -> None:
        with stderr:
            for line in stderr:
                self.errors.append((run, line.decode(errors="replace").rstrip()))


def _pid(who: str) -> int:
    return int(who.split(maxsplit=1)[0])
