"""The clusters and processes that can be broken, and the functions that break them."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from eos_mirror.core.records import TopicPartition
from eos_mirror.testing import Fault, KafkaCluster, wait_until
from eos_mirror.testing.processes import identity, is_running
from tests.chaos.restarting_driver import RestartingDriver
from tests.chaos.site import FLOW, POINTS, SESSION_S, Site, remote

HIT_WITHIN = timedelta(seconds=10)
IN_SYNC = timedelta(seconds=20)
CONFIGURED_WITHIN_S = 60.0
WATCHED_TOPICS = ("__transaction_state", "__consumer_offsets")
STOPPED = "T"


@dataclass(slots=True, kw_only=True)
class ChaosTargets:
    """
    Everything that can be broken.

    Attributes:
        ledger: Lock that the load holds during each of its transactions.
    """

    site: Site
    restarting: RestartingDriver
    ledger: threading.Lock = field(default_factory=threading.Lock)
    healing: threading.Event = field(default_factory=threading.Event)
    frozen: set[str] = field(default_factory=set)

    def order(self, verb: str, *arguments: str) -> bool:
        """Run a verb of operators; return whether it reported that it is done."""
        command = [sys.executable, "-m", "eos_mirror.cli.main", verb, str(self.site.config)]
        done = subprocess.run(
            [*command, str(FLOW), *arguments], capture_output=True, timeout=120, check=False
        )
        return done.returncode == 0

    def hold(self, seconds: float) -> None:
        """Wait for this long, or until everything is being healed."""
        self.healing.wait(seconds)

    def heal(self) -> None:
        """Undo all faults that are still active, also those of an interrupted nemesis."""
        self.healing.set()
        for proxy in self.site.proxies.values():
            proxy.heal()
            proxy.clear()
        for who in list(self.frozen):
            self.thaw(who)
        for point in POINTS:
            self.site.flag(point).unlink(missing_ok=True)

    def thaw(self, who: str) -> None:
        """Resume a frozen process if it is still the same one."""
        if is_running(who):
            os.kill(int(who.split(maxsplit=1)[0]), signal.SIGCONT)
        self.frozen.discard(who)


Act = Callable[[ChaosTargets, random.Random], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """
    A kind of fault.

    Attributes:
        place: Faults in one place never overlap; faults in different places do.
        weight: Its frequency relative to the other kinds.
    """

    name: str
    place: str
    act: Act
    weight: float = 1.0
    runtimes: Sequence[str] = ("local", "spark")


def any_task(targets: ChaosTargets, dice: random.Random) -> int | None:
    """Return the process id of a live task of the newest driver; None if there is none."""
    pids = targets.restarting.tasks()
    return pids[dice.choice(sorted(pids))] if pids else None


def any_broker(targets: ChaosTargets, dice: random.Random) -> int:
    """Return the id of a random broker of the target."""
    return dice.choice(list(targets.site.target.spec.broker_ids))


def pause_s(dice: random.Random) -> float:
    """Return a pause; half of them exceed the session timeout, so that another task takes over."""
    return dice.choice(
        [
            dice.uniform(0.1, 1),
            dice.uniform(1, SESSION_S),
            *[dice.uniform(SESSION_S, 3 * SESSION_S) for _ in range(2)],
        ]
    )


def freeze(targets: ChaosTargets, pid: int, length_s: float) -> None:
    """Stop a process for this long, then resume it; it may have stopped itself."""
    who = identity(pid)
    targets.frozen.add(who)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)
    targets.hold(length_s)
    targets.thaw(who)


def stopped_by_themselves(targets: ChaosTargets) -> list[int]:
    """Return the stopped tasks that `freeze` did not stop."""
    frozen = {int(who.split(maxsplit=1)[0]) for who in list(targets.frozen)}
    return [
        pid
        for pid in targets.restarting.survivors()
        if pid not in frozen and _state(pid) == STOPPED
    ]


def _state(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return ""


def wait_for(
    targets: ChaosTargets, condition: Callable[[], bool], within: timedelta, what: str
) -> None:
    """Wait until the condition holds or everything is being healed. Raises TimeoutError."""
    wait_until(lambda: condition() or targets.healing.is_set(), within=within, what=what)


def pause_broker(
    targets: ChaosTargets, cluster: KafkaCluster, node: int, dice: random.Random
) -> bool:
    """Stop a broker with SIGSTOP for 0.5 to 8 s."""
    length_s = dice.uniform(0.5, 8)
    cluster.pause(node)
    targets.hold(length_s)
    cluster.resume(node)
    return True


@contextmanager
def configured_copy(
    targets: ChaosTargets, topic: str, strange: Mapping[str, str], usual: Mapping[str, str]
) -> Iterator[None]:
    """Set the `strange` entries on the copy of a topic during the block, and `usual` after it."""
    copy = remote(TopicPartition(topic, 0)).topic
    _configure(targets, copy, strange)
    try:
        yield
    finally:
        _configure(targets, copy, usual)


def _configure(targets: ChaosTargets, topic: str, config: Mapping[str, str]) -> None:
    """Set these entries; retry while another fault keeps the target from answering."""
    deadline_s = time.monotonic() + CONFIGURED_WITHIN_S
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in config.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    while True:
        admin = targets.site.target.admin()
        answers = admin.incremental_alter_configs([resource], request_timeout=30)
        try:
            answers[resource].result(31)
        except KafkaException:
            if time.monotonic() > deadline_s:
                raise
        else:
            return


def settle(targets: ChaosTargets) -> None:
    """Wait until the broker is in sync again: the guarantee does not cover two lost brokers."""
    for topic in WATCHED_TOPICS:
        with suppress(TimeoutError):
            targets.site.target.wait_isr(topic, within=IN_SYNC)


def strike(targets: ChaosTargets, fault: Fault, *, hold_s: float) -> bool:
    """Arm one fault in front of every broker; it hits the first request that matches."""
    for proxy in targets.site.proxies.values():
        proxy.inject(fault)
    with suppress(TimeoutError):
        wait_for(targets, lambda: fault.hits > 0, HIT_WITHIN, "a request to strike")
    struck = fault.hits > 0
    if struck:
        targets.hold(hold_s)
    for proxy in targets.site.proxies.values():
        proxy.clear()
    return struck


def kill_below_driver(targets: ChaosTargets, mark: bytes) -> bool:
    """Kill the first descendant of the driver that has a command word with this ending."""
    driver = targets.restarting.driver
    for pid in descendants(driver) if driver is not None else []:
        with suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if any(word.endswith(mark) for word in words):
                os.kill(pid, signal.SIGKILL)
                return True
    return False


def descendants(pid: int) -> list[int]:
    """Return every descendant of this process, parents first."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                stat = (entry / "stat").read_text().rpartition(")")[2].split()
                children.setdefault(int(stat[1]), []).append(int(entry.name))
    found: list[int] = []
    queue = [pid]
    while queue:
        below = children.get(queue.pop(0), [])
        found += below
        queue += below
    return found
