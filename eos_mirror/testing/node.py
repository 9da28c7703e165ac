"""One Kafka process: a broker, a controller or both."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path

from eos_mirror.testing.errors import ClusterFailed
from eos_mirror.testing.processes import identity, spawn
from eos_mirror.testing.run_folder import NODE_PROCESS
from eos_mirror.testing.spec import properties_text

LOG_TAIL_LINES = 12
TERMINATION = timedelta(seconds=30)

CAUSES = {
    "Address already in use": "another program took one of its ports",
    "UnsupportedClassVersionError": "this Java is too old; install Java 17",
    "OutOfMemoryError": "its heap is too small; raise `heap`",
    "Could not reserve enough space": "this machine has not enough memory",
    "meta.properties": "its log folder was not formatted",
}


class Node:
    """A Kafka process with its folder. Not thread-safe."""

    def __init__(self, node_id: int, *, folder: Path, command: Sequence[str]) -> None:
        """
        Args:
            command: The command line without the path of the configuration, its last argument.
        """
        self.node_id = node_id
        self.folder = folder
        self.log = folder / "server.log"
        self.config = folder / "server.properties"
        self.data = folder / "data"
        self._temporary = folder / "tmp"
        self._command = [*command, str(self.config)]
        self._process: subprocess.Popen[bytes] | None = None

    def prepare(
        self,
        properties: Mapping[str, str],
        *,
        meta: Mapping[str, str],
        files: Mapping[str, bytes],
    ) -> None:
        """Write the configuration and a formatted log folder with these files."""
        self._temporary.mkdir(parents=True)
        self.data.mkdir()
        self.config.write_text(properties_text(properties), encoding="utf-8")
        (self.data / "meta.properties").write_text(properties_text(meta), encoding="utf-8")
        for name, content in files.items():
            (self.data / name).parent.mkdir(exist_ok=True)
            (self.data / name).write_bytes(content)
        self.log.touch()

    @property
    def running(self) -> bool:
        """Return whether the process exists; this includes a paused one."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """
        Start the process, without waiting until it is ready.

        Raises:
            ClusterFailed: The node is already running.
        """
        if self.running:
            raise ClusterFailed(f"node {self.node_id} is already running")
        # a killed JVM leaves copies of native libraries in its temporary folder
        java, *rest = self._command
        command = [java, f"-Djava.io.tmpdir={self._temporary}", *rest]
        with self.log.open("ab") as log:
            self._process = spawn(command, stdout=log)
        process = identity(self._process.pid)
        (self.folder / NODE_PROCESS).write_text(process, encoding="utf-8")

    def kill(self) -> None:
        """Kill the process, as a power cut would, and wait for its exit."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def terminate(self) -> None:
        """
        Request a controlled shutdown, and wait for the exit.

        Raises:
            ClusterFailed: The process did not exit in time; it was killed.
        """
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(timeout=TERMINATION.total_seconds())
        except subprocess.TimeoutExpired:
            self.kill()
            raise ClusterFailed(f"node {self.node_id} ignored SIGTERM\n{self.log_tail()}") from None

    def pause(self) -> None:
        """Freeze the process: connections stay open, and nothing answers once this returns."""
        process = self._running_process()
        process.send_signal(signal.SIGSTOP)
        # threads run on for a moment; the parent is notified when the last one has stopped
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self) -> None:
        """Resume a frozen process."""
        self._running_process().send_signal(signal.SIGCONT)

    def log_tail(self) -> str:
        """Return the last lines of the log."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(lines[-LOG_TAIL_LINES:])

    def obituary(self) -> str:
        """Return why the process exited, as far as its log shows."""
        log = self.log.read_text(encoding="utf-8", errors="replace")
        cause = next((text for mark, text in CAUSES.items() if mark in log), "see its log")
        code = self._process.returncode if self._process else None
        return f"node {self.node_id} exited with code {code}: {cause}\n{self.log_tail()}"

    @property
    def lost_its_port(self) -> bool:
        """Return whether another program took a port between our check and the broker's start."""
        return b"Address already in use" in self.log.read_bytes()

    def _running_process(self) -> subprocess.Popen[bytes]:
        if self._process is None or not self.running:
            raise ClusterFailed(f"node {self.node_id} is not running")
        return self._process
