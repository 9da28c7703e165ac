"""
Compares peers: in each round, every peer copies the same topic, one after another.

Progress is the sum of the last stable offsets of the copy, which works for every peer. For an
exactly-once peer it includes one commit marker per partition and transaction: with commits every
100 ms, less than a thousandth. A copy is complete when it has not grown for a while. Its digest
must then be that of the source: a copy that is not exact has no rate.
"""

import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from benchmarks.cells import Cell
from benchmarks.lane_share import lane_figures
from benchmarks.peers import ADDED, Job, Peer, PeerFailedError
from benchmarks.processes import cpu_s, descendants, machine_cpu_s, peak_rss_mb
from benchmarks.rate import broker_pid
from benchmarks.records import Digest, digest
from benchmarks.source_topics import filled
from benchmarks.steady import Sample, steady_state, warm_tail
from eos_mirror.core.records import TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.kafka.metadata import ClusterMetadata
from eos_mirror.testing import KafkaCluster, Security

LOOK_EVERY_S = 0.2
STILL_S = 2.0
"""A copy that has not grown for this long is complete, or never will be."""
COPIED_WITHIN_S = 300.0
STOPPED_WITHIN_S = 20.0

Distant = Mapping[Side, str]
Found = TypeVar("Found")
Turn = TypeVar("Turn")


class NotExactError(Exception):
    """The copy is not the source."""


@dataclass(frozen=True, kw_only=True)
class Contest:
    """
    Two clusters, and the digests of the topics on the source.

    Attributes:
        folder: Receives the configurations and logs of the peers.
        distant: Bootstrap servers of the delaying proxies, by the side that they are in front of.
        originals: Digest that a copy of each topic must have.
    """

    source: KafkaCluster
    target: KafkaCluster
    folder: Path
    distant: Distant = field(default_factory=dict)
    originals: dict[str, Digest] = field(default_factory=dict)
    _aliases: Iterator[str] = field(default_factory=lambda: map("p{}".format, itertools.count(1)))

    @contextmanager
    def topics(self, cell: Cell, peers: Sequence[Peer]) -> Iterator[None]:
        """
        Fill what these peers copy, and read it once, so that it is in memory for every peer.

        Raises:
            ValueError: The batches are not what the cell says.
        """
        cells = list(dict.fromkeys(cell.sized(own_lane=peer.own_lane) for peer in peers))
        for one in cells:
            found = filled(self.source, one)
            sys.stderr.write(f"{one.topic}: {one.records:,} records; {found}\n")
            added = ADDED if cell.decoded else None
            self.originals[one.topic] = digest(self.source, one.topic, added=added)
        yield
        for one in cells:
            self.source.admin().delete_topics([one.topic])[one.topic].result(30)

    def job(self, topic: str, *, far: Side | None = None, **more: Any) -> Job:
        """
        Return a new job under an unused alias; `more` is passed to `Job`.

        Args:
            far: The side that is only reached through the delaying proxy.
        """
        at = {Side.SOURCE: self.source, Side.TARGET: self.target}
        addresses = {side: cluster.bootstrap for side, cluster in at.items()}
        if far is not None:
            addresses[far] = self.distant[far]
        return Job(
            source=addresses[Side.SOURCE],
            target=addresses[Side.TARGET],
            topic=topic,
            alias=next(self._aliases),
            folder=self.folder,
            source_login=login_of(self.source),
            target_login=login_of(self.target),
            **more,
        )

    def last_words(self) -> str:
        """Return the end of the log of the peer that ran last."""
        logs = sorted(self.folder.glob("*.log"), key=lambda path: path.stat().st_mtime)
        return logs[-1].read_text(errors="replace")[-2_000:] if logs else ""

    def copy(self, peer: Peer, cell: Cell, **more: Any) -> dict[str, Any]:
        """
        Let one peer copy its topic, and return its figures; `more` is passed to `job`.

        Raises:
            NotExactError: The copy differs from the source.
            PeerFailedError: The peer did not complete the copy.
            ValueError: The steady state was too short to measure.
        """
        job, started_at, samples = self._copied(peer, cell, more)
        total, _ = self.originals[job.topic]
        figures = _figures(samples, total, cell.partitions, started_at)
        return figures | lane_figures(peer, job.log)

    def warm_up(self, peer: Peer, cell: Cell, **more: Any) -> None:
        """
        Let one peer copy the topic without measuring; the copy may be short.

        Raises:
            NotExactError: The copy differs from the source.
            PeerFailedError: The peer did not complete the copy.
        """
        self._copied(peer, cell, more)

    def _copied(
        self, peer: Peer, cell: Cell, more: Mapping[str, Any]
    ) -> tuple[Job, float, list[Sample]]:
        """Return the job, when the peer started, and samples of the growing copy."""
        topic = cell.sized(own_lane=peer.own_lane).topic
        job = self.job(topic, codec=cell.codec, decoded=cell.decoded, **more)
        if peer.needs_topic:
            self.target.create_topic(job.remote, cell.partitions)
        total, _ = self.originals[topic]
        with running_peer(peer, job) as process:
            started_at = time.monotonic()
            watch = Watch(self, process, job.remote, partitions=cell.partitions)
            samples = list(watch.until_whole(total))
            process.terminate()  # it exits while its copy is read
            found = digest(self.target, job.remote)
        if found != self.originals[topic]:
            raise NotExactError(f"{peer.name}: {job.remote} differs from {topic}")
        self.target.admin().delete_topics([job.remote])[job.remote].result(30)
        return job, started_at, samples


def _figures(
    samples: Sequence[Sample], total: int, partitions: int, started_at: float
) -> dict[str, Any]:
    steady = steady_state(samples, total=total)
    tail = warm_tail(samples, total=total)
    first = next(one for one in samples if one.records)
    markers = samples[-1].records - total
    return {
        "rate": steady.rate,
        "tail_rate": tail.rate,
        "cpu_s": dict(steady.cpu_s),
        "tail_cpu_s": dict(tail.cpu_s),
        "first_s": first.at - started_at,
        "first_cpu_s": first.cpu_s["mirror"],
        "rss_mb": samples[-1].peak_rss_mb,
        "task_rss_mb": samples[-1].task_rss_mb,
        "seconds": steady.seconds,
        "per_transaction": total * partitions / markers if markers > 0 else 0.0,
    }


def new_name(name: str) -> str:
    """Return an unused topic name: brokers may still be deleting the previous topic."""
    return f"{name}-{uuid4().hex[:8]}"


class Watch:
    """Samples a growing copy and the processes that write it."""

    def __init__(
        self,
        contest: Contest,
        process: "subprocess.Popen[bytes]",
        remote: str,
        *,
        partitions: int,
    ) -> None:
        self._process = process
        self._brokers = {
            "source": broker_pid(contest.source),
            "target": broker_pid(contest.target),
        }
        self._metadata = ClusterMetadata(contest.target.client_config(), side=Side.TARGET)
        self._remote = remote
        self._partitions = partitions
        self._is_there = False
        self._spent: dict[int, float] = {}
        self._peaks: dict[int, float] = {}

    def until_whole(self, total: int) -> Iterator[Sample]:
        """
        Yield samples until the copy is complete.

        Raises:
            PeerFailedError: The peer exited, or took too long.
        """
        began = grown_at = time.monotonic()
        before = 0
        while before < total or time.monotonic() - grown_at < STILL_S:
            if self._process.poll() is not None or time.monotonic() - began > COPIED_WITHIN_S:
                raise PeerFailedError(f"{self._remote}: {before} of {total}, and no more")
            sample = self.look()
            if sample.records > before:
                before, grown_at = sample.records, sample.at
            yield sample
            time.sleep(LOOK_EVERY_S)

    def look(self) -> Sample:
        """Take one sample."""
        children = descendants(self._process.pid)
        for pid in [self._process.pid, *children]:
            self._spent[pid] = max(cpu_s(pid), self._spent.get(pid, 0.0))
            self._peaks[pid] = max(peak_rss_mb(pid), self._peaks.get(pid, 0.0))
        spent = {role: cpu_s(pid) for role, pid in self._brokers.items()}
        spent["mirror"] = sum(self._spent.values())
        busy, steal = machine_cpu_s()
        others = busy - sum(spent.values()) - time.process_time()
        return Sample(
            at=time.monotonic(),
            ends=self._ends(),
            cpu_s={**spent, "others": others, "steal": steal},
            peak_rss_mb=sum(self._peaks.values()),
            task_rss_mb=max(self._peaks[pid] for pid in children or [self._process.pid]),
        )

    def _ends(self) -> list[int]:
        self._is_there = self._is_there or self._remote in self._metadata.topics([self._remote])
        if not self._is_there:
            return [0] * self._partitions
        wanted = [TopicPartition(self._remote, p) for p in range(self._partitions)]
        ends = self._metadata.ends(wanted)
        return [ends[partition] for partition in wanted]


def login_of(cluster: KafkaCluster) -> Mapping[str, str]:
    """Return what a client of the cluster needs besides its address, in Java's names."""
    settings = dict(cluster.java_properties())
    del settings["bootstrap.servers"]
    return {} if cluster.spec.security is Security.PLAINTEXT else settings


@contextmanager
def running_peer(peer: Peer, job: Job) -> "Iterator[subprocess.Popen[bytes]]":
    """Run a peer; neither it nor its child processes outlive the block."""
    process = peer.start(job)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(STOPPED_WITHIN_S)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def take_turns(
    ways: Mapping[str, Callable[[Peer], dict[str, Any]]], peers: Sequence[Peer], rounds: int
) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """
    Return the figures of each round, by way and peer; report progress on stderr.

    Each round measures every peer in every way. The order changes from round to round, so that
    the after-effects of one measurement do not always fall on the same peer.

    Args:
        ways: Functions that measure a peer, by name.

    Raises:
        PeerFailedError: A peer that must not fail has failed, or another one twice in one round.
    """
    found: dict[str, dict[str, list[dict[str, Any]]]] = {
        way: {peer.name: [] for peer in peers} for way in ways
    }
    turns = list(product(ways, peers))
    for number in range(1, rounds + 1):
        for way, peer in in_the_order_of(number, turns):
            figures, failures = tried(peer, ways[way], way)
            figures["failures"] = failures
            found[way][peer.name].append(figures)
            first = next(iter(figures))
            sys.stderr.write(
                f"{way}: {peer.name} {number}/{rounds}: {first} {figures[first]:,.2f}\n"
            )
    return found


def in_the_order_of(number: int, turns: Sequence[Turn]) -> list[Turn]:
    """
    Order by 0, 1, -1, 2, -2 and so on, shifted by one in each round (E. J. Williams, 1949).

    Over as many rounds as there are entries: if their number is even, each comes directly after
    every other one once; if it is odd, after half of them twice.
    """
    zigzag = [(place + 1) // 2 * (1 if place % 2 else -1) for place in range(len(turns))]
    return [turns[(step + number - 1) % len(turns)] for step in zigzag]


def tried(peer: Peer, attempt: Callable[[Peer], Found], what: str) -> tuple[Found, int]:
    """
    Return the result of the attempt, and how often the peer failed before it.

    Raises:
        PeerFailedError: A peer that must not fail has failed, or another one twice.
    """
    try:
        return attempt(peer), 0
    except PeerFailedError as exc:
        if not peer.may_fail:
            raise
        sys.stderr.write(f"{what}: {peer.name} failed, and runs once more: {exc}\n")
        return attempt(peer), 1
