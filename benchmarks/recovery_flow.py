"""A flow under load, and the functions that break it and that check whether it has recovered."""

import random
import signal
import subprocess
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from time import monotonic

from benchmarks.mirror import STOP_WITHIN_S, Event, Mirror
from benchmarks.recovery_witness import ALL, FLOW, Witness
from eos_mirror.core.claims import MODE_KEY, parse_claim
from eos_mirror.kafka.topic_reader import read_compacted
from eos_mirror.runtime.supervisor import DEFAULT_PATIENCE
from eos_mirror.testing import KafkaCluster, wait_until
from eos_mirror.testing.processes import start_time

TASKS = 2
STARTED = timedelta(seconds=120)
FLOWING = timedelta(seconds=0.5)
"""
Claims are read only when every partition got a record this recently: reading costs the brokers
CPU time.
"""
LAST_EVENTS = 20


class Deadline:
    """One time budget for all waits that a fault needs."""

    def __init__(self, within: timedelta) -> None:
        self._at = monotonic() + within.total_seconds()

    @property
    def left(self) -> timedelta:
        """The time that is left; never negative."""
        return timedelta(seconds=max(0.0, self._at - monotonic()))


@dataclass(slots=True, kw_only=True)
class Stage:
    """Everything that a fault can hit, and the witness that observes it. One thread uses it."""

    source: KafkaCluster
    target: KafkaCluster
    config: Path
    dice: random.Random
    mirror: Mirror
    witness: Witness
    before: list[Event] = field(default_factory=list)

    # ------------------------------------------------------------------ the mirror

    def kill_driver(self) -> None:
        """Kill the driver, and start it again immediately."""
        self.mirror.process.kill()
        self.mirror.process.wait()
        self._start()

    def restart_driver(self) -> float:
        """Stop the driver, start it again, and return the monotonic time of that start."""
        self.mirror.stop()
        self._start()
        return self.mirror.started_at

    def _start(self) -> None:
        self.before = [*self.before, *self.mirror.events][-LAST_EVENTS:]
        self.mirror = Mirror(self.config)

    def close(self) -> None:
        """Stop the mirror, whatever state it is in."""
        process = self.mirror.process
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(STOP_WITHIN_S)
            process.kill()
            process.wait()

    def last_events(self) -> list[Event]:
        """Return the last events of this driver and of the drivers before it."""
        return [*self.before, *self.mirror.events][-LAST_EVENTS:]

    # ------------------------------------------------------------------ tasks

    def started(self) -> Mapping[int, Event]:
        """Return the newest `task.started` event of each task."""
        return {int(e.fields["task"]): e for e in self.mirror.found("task.started")}

    def pids(self) -> list[int]:
        """Return the processes of the tasks since their last start, in the order of the tasks."""
        return [int(event.fields["pid"]) for _, event in sorted(self.started().items())]

    def owners(self) -> Mapping[int, frozenset[int]]:
        """Return the partitions by the process that has a live claim on them."""
        entries = read_compacted(
            self.target.client_config(), FLOW.claims_topic, group=FLOW.shadow_group
        )
        found: dict[int, set[int]] = {}
        for key, value in entries.items():
            if key != MODE_KEY:
                claim = parse_claim(key, value.decode())
                pid = int(claim.host.rpartition(":")[2])
                found.setdefault(pid, set()).add(claim.remote.partition)
        return {pid: frozenset(partitions) for pid, partitions in found.items()}

    def is_flowing(self, partitions: Iterable[int]) -> bool:
        """Whether each of these partitions got a record in the last half second."""
        return self.witness.saw_since(monotonic() - FLOWING.total_seconds(), partitions)

    def is_owned(self, *, without: frozenset[int]) -> bool:
        """Whether exactly the live tasks own all partitions, and none of them is in `without`."""
        pids = self.pids()
        if len(pids) < TASKS or without & set(pids):
            return False
        if not (all(map(start_time, pids)) and self.is_flowing(ALL)):
            return False
        owners = self.owners()
        return owners.keys() == set(pids) and frozenset().union(*owners.values()) == ALL

    # ------------------------------------------------------------------ health

    def wait_healthy(self, deadline: Deadline, *, without: frozenset[int] = frozenset()) -> None:
        """
        Wait until every partition has its owner and gets records from it.

        Args:
            without: Processes of tasks that must be replaced by then.

        Raises:
            TimeoutError: The deadline has passed.
        """
        wait_until(
            lambda: self.is_owned(without=without),
            within=deadline.left,
            what="an owner for every partition",
        )
        self.wait_for_records(deadline)

    def wait_for_records(self, deadline: Deadline, partitions: Iterable[int] = ALL) -> None:
        """Wait until each of these partitions gets one more record. Raises TimeoutError."""
        since, wanted = monotonic(), frozenset(partitions)
        wait_until(
            lambda: self.witness.saw_since(since, wanted),
            within=deadline.left,
            what=f"records on partitions {sorted(wanted)}",
        )

    def wait_settled(self) -> None:
        """Wait until every task has run so long that its next restart is not delayed."""
        settled_s = DEFAULT_PATIENCE.healthy.total_seconds()
        wait_until(
            lambda: all(monotonic() - e.at > settled_s for e in self.started().values()),
            within=STARTED,
            what="tasks that have run for a while",
        )
