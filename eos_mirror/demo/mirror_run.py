"""`eos-mirror run` in a separate process: its configuration, its events, and its lag."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

from eos_mirror.core.flow import Flow
from eos_mirror.core.records import TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.errors import MirrorError
from eos_mirror.kafka.groups import CommittedOffsets
from eos_mirror.kafka.metadata import ClusterMetadata
from eos_mirror.kafka.retry import retrying
from eos_mirror.testing.entry import environ_for
from eos_mirror.testing.processes import spawn
from eos_mirror.testing.waiting import wait_until

FLOW: Final = Flow("A", "B")
RATE_WINDOW: Final = 2
ANSWER: Final = timedelta(seconds=30)

CONFIG: Final = """\
clusters = A, B
A.bootstrap.servers = {source}
B.bootstrap.servers = {target}

A->B.enabled = true
A->B.topics = {topic}

# one broker on each side
replication.factor = 1
internal.topic.replication.factor = 1
emit.heartbeats.enabled = false
emit.checkpoints.enabled = false

tasks.max = 2
runtime = {runtime}
spark.master = local[2]
summary.interval.seconds = 1
"""

Event = Mapping[str, Any]


class MirrorRun:
    """
    One `eos-mirror run`, which never outlives this process. One thread uses it.

    Its events are lines of JSON in `run.events`, its messages are in `run.log`.
    """

    def __init__(self, config: Path, *, pause_at: str) -> None:
        """
        Args:
            config: An mm2.properties; the two files are written into its folder.
            pause_at: Where the first process of task 0 pauses itself, such as `flushed:3`.
        """
        self._talk = config.with_name("run.log")
        events = config.with_name("run.events")
        command = [sys.executable, "-m", "eos_mirror.cli.main", "run", str(config), "--verbose"]
        with events.open("wb") as stdout, self._talk.open("wb") as stderr:
            self._process = spawn(
                command,
                environ={**os.environ, **environ_for(pause_at=pause_at)},
                stdout=stdout,
                stderr=stderr,
            )
        self._file = events.open(encoding="utf-8")
        self._unfinished = ""
        self._events: list[Event] = []

    def found(self, name: str, **fields: object) -> list[Event]:
        """Return the events so far with this name and these fields."""
        *lines, self._unfinished = (self._unfinished + self._file.read()).split("\n")
        self._events.extend(json.loads(line) for line in lines if line.startswith("{"))
        return [
            event
            for event in self._events
            if event["event"] == name and fields.items() <= event.items()
        ]

    def wait_for(self, name: str, *, within: timedelta, count: int = 1, **fields: object) -> Event:
        """
        Wait for the count-th such event and return it.

        Raises:
            MirrorError: The run exited without it; carries its last message.
            TimeoutError: The event did not come in time.
        """
        wait_until(
            lambda: self.has_ended or len(self.found(name, **fields)) >= count,
            within=within,
            what=f"the event {name} {fields or ''}",
        )
        found = self.found(name, **fields)
        if len(found) < count:
            raise self.ended_early()
        return found[count - 1]

    @property
    def has_ended(self) -> bool:
        """Return whether the process has exited."""
        return self._process.poll() is not None

    def ended_early(self) -> MirrorError:
        """Return an error with the exit code and the last message; --keep keeps all messages."""
        lines = self._talk.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        last = lines[-1].removeprefix("eos-mirror: ") if lines else "it printed nothing"
        return MirrorError(f"eos-mirror run exited with code {self._process.poll()}: {last}")

    def stop(self, *, within: timedelta) -> int:
        """
        Send SIGTERM, wait and return the exit code.

        Raises:
            TimeoutError: The process did not exit in time.
        """
        self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(within.total_seconds())
        except subprocess.TimeoutExpired as exc:
            raise TimeoutError(f"eos-mirror run did not stop within {within}") from exc

    def close(self) -> None:
        """Kill the run in any state; a task that paused itself dies with its driver."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._file.close()

    def total(self, counter: str) -> int:
        """Return the sum of a counter over all summaries of the flow."""
        return sum(int(summary[counter]) for summary in self.found("flow.summary"))

    def best_rate(self) -> float:
        """Return the best rate so far. See the function `best_rate`."""
        return best_rate(self.found("flow.summary"))


def best_rate(summaries: Sequence[Event]) -> float:
    """
    Return records per second in the best `RATE_WINDOW` summary intervals; 0 if there are too few.

    Tasks report up to half a second late, so a single interval could show too high a rate.
    """
    times = [datetime.fromisoformat(summary["time"]) for summary in summaries]
    records = [int(summary["records"]) for summary in summaries]
    return max(
        (
            sum(records[end - RATE_WINDOW + 1 : end + 1])
            / (times[end] - times[end - RATE_WINDOW]).total_seconds()
            for end in range(RATE_WINDOW, len(summaries))
        ),
        default=0.0,
    )


def write_config(path: Path, *, source: str, target: str, topic: str, runtime: str) -> None:
    """Write an mm2.properties for one flow; `source` and `target` are bootstrap servers."""
    text = CONFIG.format(source=source, target=target, topic=topic, runtime=runtime)
    path.write_text(text, encoding="utf-8")


class Lag:
    """Measures how far the target lags. One thread uses it."""

    def __init__(self, source: Mapping[str, str], target: Mapping[str, str], *, topic: str) -> None:
        """
        Args:
            source: librdkafka configuration of the source; `target` has the target's.
        """
        self._source = ClusterMetadata(source, side=Side.SOURCE)
        self._shadow = CommittedOffsets(target, FLOW.shadow_group, side=Side.TARGET)
        # requested first: a client that is not connected yet may list offsets 3 s late
        numbers = range(self._source.topics([topic])[topic].partitions)
        self._upstream = [TopicPartition(topic, n) for n in numbers]
        self._remotes = [TopicPartition(f"{FLOW.source}.{topic}", n) for n in numbers]

    def offsets_left(self) -> int:
        """
        Return the upstream offsets from the shadow offsets to the ends of the source partitions.

        Raises:
            MirrorError: A cluster did not answer.
        """
        ends = self._source.ends(self._upstream)
        shadows = retrying(partial(self._shadow.read, self._remotes), within=ANSWER)
        reached = {
            remote.partition: shadow.position.next_offset for remote, shadow in shadows.items()
        }
        return sum(
            max(0, end - reached.get(partition.partition, 0)) for partition, end in ends.items()
        )
