"""
The cost of a topic with many partitions: at start, idle, and under one load for all peers.

Every partition holds one record before the mirror starts. The start ends when all are copied.
"""

import time
from contextlib import ExitStack
from typing import Any

from confluent_kafka import Producer

from benchmarks.contest import Contest, Watch, new_name, running_peer
from benchmarks.load import Load
from benchmarks.peers import Job, Peer, PeerFailedError

VALUE_BYTES = 1_000
SETTLE_S, SECONDS = 10.0, 30.0
STARTED_WITHIN_S = 180.0
LOOK_EVERY_S = 0.2
LOG_ERRORS = 3
"""The client's log level: warnings are omitted."""


def measure_partitions(contest: Contest, peer: Peer, partitions: int, rate: int) -> dict[str, Any]:
    """
    Measure one peer with one topic.

    Args:
        rate: Records a second over all partitions; 0 is idle.

    Raises:
        PeerFailedError: The peer did not start.
    """
    job = contest.job(new_name(f"partitions-{partitions}"))
    contest.source.create_topic(job.topic, partitions)
    if peer.needs_topic:
        contest.target.create_topic(job.remote, partitions)
    _one_each(contest, job, partitions)
    with running_peer(peer, job) as process, ExitStack() as stack:
        started_at = time.monotonic()
        watch = Watch(contest, process, job.remote, partitions=partitions)
        while (first := watch.look()).records < partitions:
            if process.poll() is not None or first.at - started_at > STARTED_WITHIN_S:
                raise PeerFailedError(f"{peer.name}: {first.records} of {partitions}, and no more")
            time.sleep(LOOK_EVERY_S)
        if rate:
            load = Load(
                contest.source,
                job.topic,
                partitions=partitions,
                rate=rate,
                value_bytes=VALUE_BYTES,
            )
            stack.enter_context(load.running())
        time.sleep(SETTLE_S)
        before = watch.look()
        time.sleep(SECONDS)
        after = watch.look()
    for cluster, topic in ((contest.source, job.topic), (contest.target, job.remote)):
        cluster.admin().delete_topics([topic])[topic].result(60)
    lasted = after.at - before.at
    cores = {role: (after.cpu_s[role] - before.cpu_s[role]) / lasted for role in before.cpu_s}
    return {
        "all_s": first.at - started_at,
        "all_cpu_s": first.cpu_s["mirror"],
        "cores": cores,
        "rss_mb": after.peak_rss_mb,
    }


def _one_each(contest: Contest, job: Job, partitions: int) -> None:
    # A new leader may not answer yet, and the client would log thousands of warnings.
    producer = Producer({**contest.source.client_config(), "log_level": LOG_ERRORS})
    for partition in range(partitions):
        producer.produce(job.topic, b"first", b"first", partition)
    if left := producer.flush(60):
        raise RuntimeError(f"{left} records were not acknowledged in 60 s")
