"""
Kills a task with kill -9 at the worst moment: records are sent, their shadow offsets are not.

The first process of task 0 pauses itself there. So Kafka's own tool can show that its transaction
is really open before the process is killed.
"""

import os
import signal
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Final

from eos_mirror.core.claims import MODE_KEY, Claim, parse_claim
from eos_mirror.demo.mirror_run import FLOW, MirrorRun
from eos_mirror.demo.story import Story
from eos_mirror.kafka.topic_reader import read_compacted
from eos_mirror.testing.cluster import KafkaCluster
from eos_mirror.testing.processes import run
from eos_mirror.testing.waiting import wait_until

PAUSE_POINT: Final = "flushed:3"
TASK: Final = 0
START: Final = timedelta(seconds=60)
RECOVERY: Final = timedelta(seconds=60)
ONGOING: Final = "Ongoing"
PROC: Final = Path("/proc")
PS_TIMEOUT_S: Final = 10.0


def crash_in_transaction(target: KafkaCluster, mirror: MirrorRun, story: Story) -> list[str]:
    """
    Kill the first process of a task in its transaction, and wait for its successor.

    Args:
        mirror: A run that pauses a task at `PAUSE_POINT`.

    Returns:
        The transactional ids of that process with an open transaction on the target.

    Raises:
        MirrorError: The run exited early.
        TimeoutError: The task was not paused, or no process took over.
    """
    pid = int(mirror.wait_for("task.started", within=START, task=TASK)["pid"])
    with story.during(f"task {TASK} runs in process {pid}", lambda: "waiting for the worst moment"):
        wait_until(
            lambda: is_paused(pid) or mirror.has_ended,
            within=START,
            what=f"process {pid} in a transaction",
        )
        if mirror.has_ended:
            raise mirror.ended_early()
        claims = claims_of(target.client_config(), pid)
        states = transaction_states(target.tool("TransactionsCommand", "list").stdout)
    opened = sorted(
        {c.transactional_id for c in claims if states.get(c.transactional_id) == ONGOING}
    )
    story.tell(
        "this task has sent records, and has not committed them; kafka-transactions.sh list:",
        *(f"{name}  {states[name]}" for name in opened),
        *_describe(claims),
    )
    os.kill(pid, signal.SIGKILL)
    with story.during(f"kill -9 {pid}"):
        successor = _wait_for_successor(mirror, opened)
    story.tell(
        f"process {successor} took over, fenced the dead writer, and claims its partitions:",
        *_describe(claims_of(target.client_config(), successor)),
    )
    return opened


def _wait_for_successor(mirror: MirrorRun, opened: Sequence[str]) -> int:
    """Return the pid of the successor, once it has fenced these transactional ids."""
    for name in opened:
        mirror.wait_for("incarnation.fenced", within=RECOVERY, transactional_id=name)
    successor = mirror.wait_for("task.started", within=RECOVERY, count=2, task=TASK)
    return int(successor["pid"])


def is_paused(pid: int) -> bool:
    """Return whether a process is stopped by SIGSTOP."""
    if PROC.is_dir():
        try:
            stat = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return False
        return stat.rpartition(")")[2].split()[0] == "T"
    shown = run(["/bin/ps", "-o", "state=", "-p", str(pid)], timeout_s=PS_TIMEOUT_S)
    return shown.stdout.strip().startswith("T")


def claims_of(target: Mapping[str, str], pid: int) -> list[Claim]:
    """
    Return the live claims of a process, by target partition.

    Args:
        target: librdkafka's configuration.
    """
    entries = read_compacted(target, FLOW.claims_topic, group=FLOW.shadow_group)
    claims = (parse_claim(key, value.decode()) for key, value in entries.items() if key != MODE_KEY)
    return sorted(
        (claim for claim in claims if claim.host.endswith(f":{pid}")),
        key=lambda claim: claim.remote,
    )


def transaction_states(listing: str) -> dict[str, str]:
    """Return state by transactional id, from the output of `kafka-transactions.sh list`."""
    rows = (line.split() for line in listing.splitlines())
    return {row[0]: row[-1] for row in rows if row and row[0] != "TransactionalId"}


def _describe(claims: Sequence[Claim]) -> list[str]:
    return [f"claim on {claim.remote} by {claim.transactional_id}" for claim in claims]
