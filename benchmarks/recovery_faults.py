"""The faults that a flow is exposed to, one function per kind."""

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from benchmarks.recovery_flow import Deadline, Stage
from benchmarks.recovery_witness import ALL, FLOW, PARTITIONS, REMOTE
from eos_mirror.testing import wait_until
from eos_mirror.testing.processes import identity, is_running

SESSION_MS = 6000
BROKER_SESSION_MS = 2500
"""The controller elects other leaders after this time; Kafka's default is 9 s."""
WATCHED_TOPICS = (REMOTE, FLOW.claims_topic, "__transaction_state", "__consumer_offsets")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """
    A fault that happened.

    Attributes:
        at: Monotonic time in seconds at which the measurement starts.
        affected: Partitions that lose their writer.
        victims: Processes of tasks that must be replaced; they may stay alive for a moment.
        elected_at: When every partition and coordinator of a killed broker had another leader.
    """

    at: float
    affected: frozenset[int] = ALL
    victims: frozenset[int] = frozenset()
    elected_at: float | None = None


Act = Callable[[Stage, Deadline], Hit]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """
    A kind of fault.

    Attributes:
        act: Causes the fault, and repairs what it broke; may raise TimeoutError.
        from_start: The figure is the time from `Hit.at` to the end of the silence, not its
            length: tasks without a driver continue for a moment.
        brokers: Number of brokers of the target.
        broker_settings: Settings of these brokers.
        settings: Settings of the mirror, in addition to those of every kind.
        standalone: Needs a standalone Spark cluster.
    """

    name: str
    act: Act
    from_start: bool = False
    brokers: int = 1
    broker_settings: Mapping[str, object] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict)
    standalone: bool = False

    @property
    def notes(self) -> Mapping[str, object]:
        """Settings that the figure depends on."""
        return {**self.settings, **self.broker_settings}

    @property
    def runtimes(self) -> Sequence[str]:
        """The runtimes in which the fault can happen."""
        return ("spark",) if self.standalone else ("local", "spark")


def kill_task(stage: Stage, _: Deadline) -> Hit:
    """Send SIGKILL to the process of a task."""
    victim, orphaned = _any_task(stage)
    at = monotonic()
    os.kill(victim, signal.SIGKILL)
    return Hit(at=at, affected=orphaned, victims=frozenset({victim}))


def stop_task(stage: Stage, deadline: Deadline) -> Hit:
    """Send SIGSTOP to the process of a task; SIGKILL once another task mirrors its partitions."""
    victim, orphaned = _any_task(stage)
    sleeper = identity(victim)

    def is_replaced() -> bool:
        return stage.is_flowing(orphaned) and not orphaned & stage.owners().get(victim, set())

    at = monotonic()
    os.kill(victim, signal.SIGSTOP)
    try:
        wait_until(is_replaced, within=deadline.left, what="another owner of its partitions")
        stage.wait_for_records(deadline, orphaned)
    finally:
        if is_running(sleeper):
            with suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)
    return Hit(at=at, affected=orphaned, victims=frozenset({victim}))


def kill_executor(stage: Stage, _: Deadline) -> Hit:
    """Send SIGKILL to the executor JVM of a task; each task has its own."""
    victim, orphaned = _any_task(stage)
    jvm = _parent(_parent(victim, b"pyspark.daemon"), b"java")
    at = monotonic()
    os.kill(jvm, signal.SIGKILL)
    return Hit(at=at, affected=orphaned, victims=frozenset({victim}))


def kill_driver(stage: Stage, _: Deadline) -> Hit:
    """Send SIGKILL to the run, and start it again immediately."""
    at = monotonic()
    stage.kill_driver()
    return Hit(at=at)


def restart_driver(stage: Stage, _: Deadline) -> Hit:
    """Send SIGTERM to the run, and start it again once it has exited; measure from that start."""
    return Hit(at=stage.restart_driver())


def kill_target(stage: Stage, deadline: Deadline) -> Hit:
    """
    Send SIGKILL to the leader of a partition, and start it again when all partitions get records.

    Its start would take the CPU time that the others need.
    """
    target, partition = stage.target, stage.dice.randrange(PARTITIONS)
    node = target.leader_of(REMOTE, partition)
    if node is None:
        raise TimeoutError(f"{REMOTE}-{partition} has no leader before the fault")
    at = monotonic()
    target.kill(node)
    wait_until(
        lambda: not any({node, None} & target.leaders(topic) for topic in WATCHED_TOPICS),
        within=deadline.left,
        what=f"other leaders and coordinators than broker {node}",
    )
    elected_at = monotonic()
    stage.wait_for_records(deadline)
    target.start_node(node)
    for topic in WATCHED_TOPICS:
        target.wait_isr(topic, within=deadline.left)
    return Hit(at=at, elected_at=elected_at)


def _any_task(stage: Stage) -> tuple[int, frozenset[int]]:
    """Choose the process of a task; return it and the partitions that it owns."""
    owners = stage.owners()
    victim = stage.dice.choice([pid for pid in stage.pids() if pid in owners])
    return victim, owners[victim]


def _parent(pid: int, command: bytes) -> int:
    """Return the parent of a process; its command line must contain `command`."""
    parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    assert command in Path(f"/proc/{parent}/cmdline").read_bytes()
    return parent


KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(name="task.kill", act=kill_task),
        Kind(name="task.stop", act=stop_task, settings={"session.timeout.ms": SESSION_MS}),
        Kind(name="executor.kill", act=kill_executor, standalone=True),
        Kind(name="driver.kill", act=kill_driver, from_start=True),
        Kind(
            name="target.kill",
            act=kill_target,
            brokers=3,
            broker_settings={"broker.session.timeout.ms": BROKER_SESSION_MS},
        ),
        Kind(name="restart", act=restart_driver, from_start=True),
    )
}
"""Every kind of fault by its name."""
