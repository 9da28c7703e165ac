"""Run the product as a user does, and read its events and its positions."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from eos_mirror.core.flow import Flow
from eos_mirror.core.records import TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.kafka.groups import CommittedOffsets
from eos_mirror.kafka.metadata import ClusterMetadata
from eos_mirror.kafka.retry import retrying
from eos_mirror.testing import wait_until
from eos_mirror.testing.external import Cluster

Event = Mapping[str, Any]
STOPPED = "T"


def state_of(pid: int) -> str | None:
    """Return the letter of a process's state; None when the process is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return None


USUAL: Mapping[str, object] = {
    "replication.factor": 1,
    "internal.topic.replication.factor": 1,
    "checkpoints.topic.replication.factor": 1,
    "heartbeats.topic.replication.factor": 1,
    "runtime": "local",
    "refresh.topics.interval.seconds": 1,
    "tasks.max": 1,
    # the clusters are shared: every flow would mirror the heartbeats of all the others
    "emit.heartbeats.enabled": "false",
    "heartbeats.replication.enabled": "false",
    "emit.checkpoints.enabled": "false",
    "emit.offset-syncs.enabled": "false",
    "offset-syncs.topic.replication.factor": 1,
    "sync.topic.configs.enabled": "false",
    "sync.topic.acls.enabled": "false",
    # tests configure one side for themselves; a copy still accepts the records of its topic
    "config.properties.exclude": "(?!(max.message.bytes|cleanup.policy)$).*",
}
"""Configuration that tests use unless they override it."""


def write_file(
    path: Path,
    clusters: Mapping[str, Cluster],
    flows: Iterable[Flow],
    keys: Mapping[str, object],
) -> Path:
    """
    Write an mm2.properties file; `keys` override the usual ones.

    The environment variable EOS_MIRROR_TEST_DATA_PATH sets `data.path` where `keys` do not.
    """
    chosen = os.environ.get("EOS_MIRROR_TEST_DATA_PATH")
    usual = {**USUAL, "data.path": chosen} if chosen else USUAL
    lines = [
        f"clusters = {', '.join(clusters)}",
        *(f"{alias}.bootstrap.servers = {one.bootstrap}" for alias, one in clusters.items()),
        *(f"{flow}.enabled = true" for flow in flows),
        *(f"{key} = {value}" for key, value in {**usual, **keys}.items()),
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def write_config(
    folder: Path, *, flow: Flow, source: Cluster, target: Cluster, **extra: object
) -> Path:
    """Write an mm2.properties file for one flow; `extra` keys have `_` for `.` and override."""
    return write_file(
        folder / f"{flow.name}.properties",
        {flow.source: source, flow.target: target},
        [flow],
        {key.replace("_", "."): value for key, value in extra.items()},
    )


class Mirror:
    """One `eos-mirror run` in its own process."""

    def __init__(self, config: Path, *arguments: str, env: Mapping[str, str] | None = None) -> None:
        self.events: list[Event] = []
        self.process = subprocess.Popen(
            [sys.executable, "-m", "eos_mirror.cli.main", "run", config, "--verbose", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONFAULTHANDLER": "1", **(env or {})},
            start_new_session=True,  # as a service, without a terminal
        )
        self.errors: list[str] = []
        self._readers = [
            threading.Thread(target=self._read_events, daemon=True),
            threading.Thread(target=self._read_errors, daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def _read_events(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.events.append(json.loads(line))

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        self.errors.extend(self.process.stderr)

    def found(self, name: str, **fields: object) -> list[Event]:
        """Return the events so far with this name and these fields."""
        return [
            event
            for event in list(self.events)
            if event["event"] == name and fields.items() <= event.items()
        ]

    def wait_for(
        self, name: str, *, count: int = 1, within_s: float = 60, **fields: object
    ) -> Event:
        """Wait until there are `count` such events; return the `count`-th one."""
        wait_until(
            lambda: len(self.found(name, **fields)) >= count or self.process.poll() is not None,
            within=timedelta(seconds=within_s),
            what=f"{name} {fields}",
        )
        found = self.found(name, **fields)
        assert len(found) >= count, f"exited without {name}: {self.events[-5:]} {self.errors}"
        return found[count - 1]

    def pid(self, task: int = 0) -> int:
        """Return the process id of a task, as of its last start."""
        self.wait_for("task.started", task=task)
        return int(self.found("task.started", task=task)[-1]["pid"])

    def stop(self, *, within_s: float = 45) -> int:
        """Send SIGTERM and return the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.wait(within_s=within_s)

    def wait(self, *, within_s: float = 60) -> int:
        """Return the exit code; fail with the stacks of all threads if there is none in time."""
        try:
            code = self.process.wait(within_s)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGABRT)
            self.process.wait(10)
            self._join()
            pytest.fail(f"still running after {within_s} s: {self.events[-9:]} {self.errors[-60:]}")
        self._join()
        return code

    def _join(self) -> None:
        for reader in self._readers:
            reader.join(5)

    def kill(self) -> None:
        """Kill the process if it still runs."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(10)

    def close(self) -> None:
        """Kill the driver and its stopped tasks, which would keep the pipes open indefinitely."""
        self.kill()
        for started in self.found("task.started"):
            if state_of(started["pid"]) == STOPPED:
                os.kill(started["pid"], signal.SIGKILL)
        for reader in self._readers:
            reader.join(10)
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()


@contextmanager
def mirror(config: Path, *arguments: str, env: Mapping[str, str] | None = None) -> Iterator[Mirror]:
    """Run a mirror that does not outlive the block; a failure shows its last events."""
    running = Mirror(config, *arguments, env=env)
    try:
        yield running
    except BaseException as exc:
        exc.add_note(f"{running.events[-30:]} {running.errors[-5:]}")
        raise
    finally:
        running.close()


MOST_IN_A_BATCH = 250
"""Records in a batch that tests produce: a transaction of our own lane ends between two batches."""


def produce(cluster: Cluster, topic: str, count: int, *, partitions: int, start: int = 0) -> None:
    """Produce numbered records, round robin, with keys and some headers."""
    producer = Producer(
        {**cluster.client_config(), "linger.ms": 5, "batch.num.messages": MOST_IN_A_BATCH}
    )
    for i in range(start, start + count):
        producer.produce(
            topic,
            b"value-%07d" % i,
            b"key-%d" % i,
            i % partitions,
            headers=[("n", b"%d" % i)] if i % 7 == 0 else None,
        )
        if i % 10_000 == 0:
            producer.poll(0)
    assert producer.flush(30) == 0


class FlowView:
    """Offsets of a flow on both clusters, read from outside."""

    def __init__(self, flow: Flow, source: Cluster, target: Cluster) -> None:
        self.flow = flow
        self.source = ClusterMetadata(source.client_config(), side=Side.SOURCE)
        self.target = ClusterMetadata(target.client_config(), side=Side.TARGET)
        self.admin: AdminClient = self.target.admin
        self._shadows = CommittedOffsets(
            target.client_config(), flow.shadow_group, side=Side.TARGET
        )
        self._upstream = CommittedOffsets(
            source.client_config(), flow.source_group, side=Side.SOURCE
        )

    def ends(self, topic: str, partitions: int) -> dict[int, int]:
        """Return the last stable offsets on the source, by partition."""
        wanted = [TopicPartition(topic, p) for p in range(partitions)]
        return {p.partition: end for p, end in self.source.ends(wanted).items()}

    def positions(self, remote: str, partitions: int) -> dict[int, int]:
        """Return the committed shadow offsets; -1 for a partition without one."""
        return _numbers(self._shadows, remote, partitions)

    def source_positions(self, topic: str, partitions: int) -> dict[int, int]:
        """Return the committed offsets of the source group; -1 for a partition without one."""
        return _numbers(self._upstream, topic, partitions)

    def wait_caught_up(
        self, topic: str, remote: str, *, partitions: int, within_s: float = 60
    ) -> None:
        """Wait until every shadow offset is at the end of its source partition."""
        ends = self.ends(topic, partitions)
        wait_until(
            lambda: all(
                position >= ends[p] for p, position in self.positions(remote, partitions).items()
            ),
            within=timedelta(seconds=within_s),
            what=f"shadow offsets of {remote} at {ends}",
        )


def _numbers(offsets: CommittedOffsets, topic: str, partitions: int) -> dict[int, int]:
    wanted = [TopicPartition(topic, p) for p in range(partitions)]
    found = retrying(partial(offsets.read, wanted))
    return {p.partition: found[p].position.next_offset if p in found else -1 for p in wanted}


def topics_of(cluster: Cluster) -> set[str]:
    """Return the names of all topics."""
    return set(cluster.admin().list_topics(timeout=10).topics)


EVERY_SECOND = {"summary_interval_seconds": 1}
CHECKS = 4
"""A flow logs this many summaries while it checks its topics as often."""


def wait_for_checks(running: Mirror) -> None:
    """Wait until a flow with `EVERY_SECOND` has checked its topics several more times."""
    running.wait_for("flow.summary", count=len(running.found("flow.summary")) + CHECKS)
