"""One `eos-mirror run` in a process of its own, as a user starts it."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from time import monotonic
from typing import Any

from eos_mirror.core.flow import Flow
from eos_mirror.testing import KafkaCluster, wait_until

ROOT = Path(__file__).parent.parent
STOP_WITHIN_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A log event, and the monotonic time in seconds at which its line was read."""

    at: float
    fields: Mapping[str, Any]


class Mirror:
    """A running mirror and its log events so far."""

    def __init__(self, config: Path, *arguments: str, code: Path = ROOT) -> None:
        """
        Args:
            code: Folder of the source tree to run.
        """
        self.events: list[Event] = []
        self.started_at = monotonic()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "eos_mirror.cli.main", "run", config, "--verbose", *arguments],
            stdout=subprocess.PIPE,
            text=True,
            cwd=code,
            env={**os.environ, "PYTHONPATH": str(code)},
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.events.append(Event(at=monotonic(), fields=json.loads(line)))

    def wait_for(self, name: str, *, count: int = 1, within_s: float = 120) -> list[Event]:
        """
        Wait for the first `count` events of this name, and return them.

        Raises:
            RuntimeError: The mirror exited without them.
        """
        wait_until(
            lambda: len(self.found(name)) >= count or self.process.poll() is not None,
            within=timedelta(seconds=within_s),
            what=name,
        )
        found = self.found(name)
        if len(found) < count:
            raise RuntimeError(f"the mirror exited without {name}: {self.events[-3:]}")
        return found[:count]

    def found(self, name: str) -> list[Event]:
        """Events so far with this name."""
        return [event for event in list(self.events) if event.fields["event"] == name]

    @property
    def task_pids(self) -> list[int]:
        """Processes of the tasks that have connected to the driver."""
        return [int(event.fields["pid"]) for event in self.found("task.started")]

    def ended_well(self) -> bool:
        """Wait until it exits; return whether it exited with 0 and never restarted a task."""
        code = self.process.wait(STOP_WITHIN_S)
        self._reader.join(STOP_WITHIN_S)
        return code == 0 and not self.found("task.restarting")

    def stop(self) -> bool:
        """Send SIGTERM; return `ended_well`."""
        self.process.send_signal(signal.SIGTERM)
        return self.ended_well()


@contextmanager
def running(config: Path, *arguments: str, code: Path = ROOT) -> Iterator[Mirror]:
    """Run a mirror that does not outlive the block."""
    mirror = Mirror(config, *arguments, code=code)
    try:
        yield mirror
    finally:
        if mirror.process.poll() is None:
            mirror.process.kill()
            mirror.process.wait()


def write_config(
    folder: Path,
    flow: Flow,
    *,
    source: KafkaCluster,
    target: KafkaCluster,
    topic: str,
    settings: Mapping[str, object],
) -> Path:
    """Write an mm2.properties with one flow of one topic, and return its path."""
    keys: dict[str, object] = {
        "clusters": f"{flow.source}, {flow.target}",
        f"{flow.source}.bootstrap.servers": source.bootstrap,
        f"{flow.target}.bootstrap.servers": target.bootstrap,
        f"{flow}.enabled": "true",
        "topics": topic,
        "replication.factor": 1,
        "internal.topic.replication.factor": 1,
        "transaction.boundary.interval.ms": 100,
        "emit.heartbeats.enabled": "false",
        "emit.checkpoints.enabled": "false",
        **settings,
    }
    path = folder / f"{flow.name}.properties"
    path.write_text("".join(f"{key} = {value}\n" for key, value in keys.items()))
    return path
