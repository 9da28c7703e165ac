"""
End-to-end latency in ms: from a record's timestamp to a read_committed reader of the copy.

Everything runs on one machine and therefore reads one clock. Every peer keeps the timestamp.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.contest import Contest, new_name, running_peer
from benchmarks.load import Load
from benchmarks.peers import Peer, PeerFailedError
from benchmarks.processes import cpu_s, descendants
from benchmarks.rate import broker_pid
from benchmarks.reader import Reader
from eos_mirror.testing import KafkaCluster

PARTITIONS = 4
VALUE_BYTES = 1_000
WARM_UP_S, SECONDS = 20.0, 30.0
LINGER_MS = 0
"""The best value for latency, for peers whose producers get `linger.ms` from the configuration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """CPU seconds so far."""

    mirror: float
    target: float


def measure_latency(contest: Contest, peer: Peer, rate: int, tasks: int) -> dict[str, Any]:
    """
    Measure one peer under one load.

    Raises:
        PeerFailedError: Nothing arrived.
    """
    job = contest.job(new_name("latency"), linger_ms=LINGER_MS, tasks=tasks)
    contest.source.create_topic(job.topic, PARTITIONS)
    if peer.needs_topic:
        contest.target.create_topic(job.remote, PARTITIONS)
    load = Load(
        contest.source,
        job.topic,
        partitions=PARTITIONS,
        rate=rate,
        value_bytes=VALUE_BYTES,
        linger_ms=1,
    )
    with running_peer(peer, job) as process, load.running():
        reader = Reader(contest.target, job.remote, partitions=PARTITIONS)
        reader.wait_for_the_first(process)
        list(reader.latencies(WARM_UP_S))
        before = _spent(process.pid, contest.target)
        began = time.monotonic()
        found = sorted(reader.latencies(SECONDS))
        lasted = time.monotonic() - began
        after = _spent(process.pid, contest.target)
        reader.close()
    if not found:
        raise PeerFailedError(f"{job.remote}: nothing arrived in {SECONDS:.0f} s of measuring")
    contest.source.admin().delete_topics([job.topic])[job.topic].result(30)
    return {
        "p50_ms": _percentile(found, 0.5),
        "p90_ms": _percentile(found, 0.9),
        "p99_ms": _percentile(found, 0.99),
        "p999_ms": _percentile(found, 0.999),
        "max_ms": found[-1],
        "seen_rate": len(found) / lasted,
        "mirror_core": (after.mirror - before.mirror) / lasted,
        "target_core": (after.target - before.target) / lasted,
    }


def _percentile(ordered: Sequence[float], part: float) -> float:
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def _spent(pid: int, target: KafkaCluster) -> Spent:
    return Spent(
        mirror=sum(cpu_s(one) for one in [pid, *descendants(pid)]),
        target=cpu_s(broker_pid(target)),
    )
