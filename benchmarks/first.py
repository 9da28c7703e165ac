"""
The first record after a start: of a flow that is new, and of a flow that ran before.

The topic has a record in every partition before each start, so that nothing else is waited for.
"""

import time
from typing import Any

from confluent_kafka import Producer

from benchmarks.contest import Contest, new_name, running_peer
from benchmarks.peers import Peer
from benchmarks.processes import cpu_s, descendants
from benchmarks.reader import Reader

PARTITIONS = 8


def measure_first(contest: Contest, peer: Peer) -> dict[str, Any]:
    """
    Start a peer twice, and return the times until a read_committed reader gets a record.

    Raises:
        PeerFailedError: Nothing arrived.
    """
    job = contest.job(new_name("first"))
    contest.source.create_topic(job.topic, PARTITIONS)
    if peer.needs_topic:
        contest.target.create_topic(job.remote, PARTITIONS)
    reader = Reader(contest.target, job.remote, partitions=PARTITIONS)
    _one_each(contest, job.topic)
    began = time.monotonic()
    with running_peer(peer, job) as process:
        reader.wait_for_the_first(process)
        first_s, first_cpu_s = time.monotonic() - began, _spent(process.pid)
        for _ in range(1, PARTITIONS):
            reader.wait_for_more(process)
    _one_each(contest, job.topic)
    began = time.monotonic()
    with running_peer(peer, job) as process:
        reader.wait_for_more(process)
        again_s, again_cpu_s = time.monotonic() - began, _spent(process.pid)
    reader.close()
    for cluster, topic in ((contest.source, job.topic), (contest.target, job.remote)):
        cluster.admin().delete_topics([topic])[topic].result(60)
    return {
        "first_start_s": first_s,
        "first_start_cpu_s": first_cpu_s,
        "again_s": again_s,
        "again_cpu_s": again_cpu_s,
    }


def _one_each(contest: Contest, topic: str) -> None:
    producer = Producer(contest.source.client_config())
    for partition in range(PARTITIONS):
        producer.produce(topic, b"first", b"first", partition)
    if left := producer.flush(60):
        raise RuntimeError(f"{left} records were not acknowledged in 60 s")


def _spent(pid: int) -> float:
    return sum(map(cpu_s, [pid, *descendants(pid)]))
