"""
The whole mirror is killed under load, and immediately started again.

`next` is the time from the kill, which is also the time of the new start, to the first record that
a read_committed reader gets from the new mirror. `caught up` is the time until the reader lags no
more than before.
"""

import os
import signal
import subprocess
import time
from contextlib import suppress
from typing import Any

from benchmarks.contest import Contest, NotExactError, new_name, running_peer
from benchmarks.load import Load
from benchmarks.peers import Peer, PeerFailedError
from benchmarks.processes import descendants
from benchmarks.reader import Reader
from benchmarks.records import digest

PARTITIONS = 8
VALUE_BYTES = 1_000
WARM_UP_S, AFTER_S = 15.0, 10.0
ECHO_S = 0.5
"""By then, all that the killed mirror committed has arrived; no mirror starts this fast."""
NEAR_MS = 1_000.0
AGAIN_WITHIN_S = 120.0


def measure_kill(contest: Contest, peer: Peer, rate: int) -> dict[str, Any]:
    """
    Kill a peer once under load, and return the times until it resumes and catches up.

    Raises:
        NotExactError: Records are missing or duplicated.
        PeerFailedError: The peer did not resume.
    """
    job = contest.job(new_name("killed"))
    contest.source.create_topic(job.topic, PARTITIONS)
    if peer.needs_topic:
        contest.target.create_topic(job.remote, PARTITIONS)
    load = Load(
        contest.source, job.topic, partitions=PARTITIONS, rate=rate, value_bytes=VALUE_BYTES
    )
    reader = Reader(contest.target, job.remote, partitions=PARTITIONS)
    with load.running():
        with running_peer(peer, job) as process:
            reader.wait_for_the_first(process)
            _until_near(reader, process)
            list(reader.latencies(WARM_UP_S))
            _kill(process)
        killed_at = time.monotonic()
        with running_peer(peer, job) as process:
            list(reader.latencies(ECHO_S))
            reader.wait_for_more(process)
            next_s = time.monotonic() - killed_at
            _until_near(reader, process)
            near_s = time.monotonic() - killed_at
            list(reader.latencies(AFTER_S))
            load.end()
            _until_silent(reader)
    reader.close()
    found = digest(contest.target, job.remote)
    if found != digest(contest.source, job.topic):
        raise NotExactError(f"{peer.name}: {job.remote} differs after the kill")
    for cluster, topic in ((contest.source, job.topic), (contest.target, job.remote)):
        cluster.admin().delete_topics([topic])[topic].result(60)
    return {"next_s": next_s, "near_s": near_s, "records": found[0]}


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """Kill the whole process tree; a child that gets no signal exits with its parent."""
    for pid in [process.pid, *descendants(process.pid)]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()


def _until_near(reader: Reader, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + AGAIN_WITHIN_S
    while not any(age_ms < NEAR_MS for age_ms in reader.latencies(0.1)):
        if process.poll() is not None or time.monotonic() > deadline:
            raise PeerFailedError("the mirror does not catch up with the load")


def _until_silent(reader: Reader) -> None:
    while list(reader.latencies(2.0)):
        pass
