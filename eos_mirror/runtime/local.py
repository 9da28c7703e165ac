"""Tasks as child processes of the driver: `runtime = local`."""

import subprocess
import sys
from contextlib import suppress
from datetime import timedelta

from eos_mirror.runtime.launcher import Running
from eos_mirror.runtime.outcome import Ending, ending_of
from eos_mirror.runtime.spec import TaskSpec


class LocalRunning:
    """A child process."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def wait(self, within: timedelta) -> Ending | None:
        """Return how it ended, judged by its exit code."""
        try:
            return ending_of(self._process.wait(within.total_seconds()))
        except subprocess.TimeoutExpired:
            return None

    def kill(self) -> None:
        """Send SIGKILL, which also works on a stopped process."""
        self._process.kill()


class LocalLauncher:
    """
    Starts children that die with the driver.

    Each leads a session of its own. So Ctrl-C at the terminal reaches only the driver, which
    stops the tasks over the control channel.
    """

    def __init__(self) -> None:
        self._waiting: list[subprocess.Popen[bytes]] = []

    def warm_up(self, count: int, entry: str) -> None:
        """
        Start interpreters that load the entry and wait; `launch` uses them first.

        The calling thread has to outlive them.
        """
        module, _, _ = entry.partition(":")
        self._waiting += [_spawn(module) for _ in range(count)]

    def launch(self, spec: TaskSpec) -> Running:
        """Hand the spec to a child over its stdin."""
        try:
            process = self._waiting.pop()
        except IndexError:
            process = _spawn()
        if process.stdin is not None:
            with suppress(BrokenPipeError), process.stdin as stdin:  # dead: its exit code says why
                stdin.write(spec.to_json().encode())
        return LocalRunning(process)

    def close(self) -> None:
        """Kill the children that still wait."""
        while self._waiting:
            process = self._waiting.pop()
            process.kill()
            process.communicate()


def _spawn(*modules: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 (our interpreter, our modules)
        [sys.executable, "-m", "eos_mirror.runtime.child", *modules],
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
