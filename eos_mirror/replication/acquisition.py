"""
Acquires partitions: from granted by the group to owned by the loop.

granted (by the group) -> claimed (in the claims log) -> resolved (the shadow offset is stable).
Nothing here blocks for long, so the partitions that a task already owns continue.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from eos_mirror.core.messages import MirrorConfig
from eos_mirror.core.records import TopicPartition
from eos_mirror.core.topic_limits import MIN_IN_SYNC
from eos_mirror.errors import (
    MarkersLost,
    PartitionStopped,
    PositionLost,
    RightMissing,
)
from eos_mirror.ports import KnownTopic, TaskContext, Unstable
from eos_mirror.replication.adapters import Adapters
from eos_mirror.replication.config import MARKERS_LOST_AFTER
from eos_mirror.replication.partition import Claimed, Resolved

ASK_AGAIN_S = 0.02
FIRST_WAIT_S, LONGEST_WAIT_S = 1.0, 30.0
"""A partition that does not exist on the target yet, or has no leader, is checked again after this
pause. Without a leader, the pause doubles each time."""


class Claims(Protocol):
    """The right to write remote partitions."""

    def claim(self, remotes: Sequence[TopicPartition]) -> None:
        """Make this task the only writer of these partitions."""

    def release(self, remotes: Iterable[TopicPartition]) -> None:
        """Give up the right to write these partitions."""


class PositionReader(Protocol):
    """Finds where claimed partitions resume."""

    def resolve(
        self, claimed: Sequence[Claimed]
    ) -> Mapping[TopicPartition, Resolved | Unstable | PartitionStopped]:
        """Return by source partition where it resumes, `Unstable` to ask again, or why it stops."""


@dataclass(slots=True, kw_only=True)
class Progress:
    """Result of one step."""

    resolved: list[Resolved] = field(default_factory=list)
    stopped: dict[TopicPartition, PartitionStopped] = field(default_factory=dict)


@dataclass(slots=True)
class _Wait:
    """
    A granted partition that cannot be mirrored now: why, and until when it waits.

    Attributes:
        until: Monotonic seconds.
    """

    reason: str
    pause_s: float
    until: float


class Acquisition:
    """
    The partitions of a task between grant and ownership.

    Invariants:
        A: A partition is granted, or claimed, or not here at all.
        B: Only granted partitions wait: nothing is claimed that cannot be read and written.
    """

    def __init__(
        self,
        config: MirrorConfig,
        adapters: Adapters,
        context: TaskContext,
        *,
        claims: Claims,
        positions: PositionReader,
    ) -> None:
        self._config = config
        self._claims = claims
        self._target = adapters.target
        self._metadata = adapters.metadata
        self._positions = positions
        self._context = context
        self._now = adapters.now
        self._granted: set[TopicPartition] = set()
        self._again: set[TopicPartition] = set()
        self._waits: dict[TopicPartition, _Wait] = {}
        self._claimed: dict[TopicPartition, Claimed] = {}
        self._next_step = 0.0

    @property
    def pending(self) -> int:
        """Number of partitions that are granted or claimed."""
        return len(self._granted) + len(self._claimed)

    def pending_of(self, routes: Collection[str]) -> int:
        """
        Count pending partitions, without granted ones of other source topics than these.

        A static member that starts again is granted what it had, including partitions of topics
        that are gone. It will never own those.
        """
        return sum(one.topic in routes for one in self._granted) + len(self._claimed)

    @property
    def is_busy(self) -> bool:
        """True if a pending partition does not wait for anything slow."""
        return bool(self._claimed) or len(self._waits) < len(self._granted)

    @property
    def is_due(self) -> bool:
        """True if a step may make progress now."""
        return bool(self.pending) and self._now() >= self._next_step

    @property
    def waiting(self) -> Mapping[TopicPartition, str]:
        """Why partitions cannot be mirrored now, by source partition."""
        return {p: wait.reason for p, wait in self._waits.items() if wait.reason}

    def grant(self, partitions: Iterable[TopicPartition], *, again: bool = False) -> None:
        """
        Begin to acquire partitions that the group gave us. A claimed one keeps its claim.

        Args:
            again: They stopped, and are tried again even if the orders list them as stopped.
        """
        given = set(partitions) - self._claimed.keys()
        self._granted |= given
        for partition in given:
            self._waits.pop(partition, None)
        self._again = self._again | given if again else self._again - given
        self._next_step = 0.0

    def reclaim(self, claimed: Iterable[Claimed]) -> None:
        """Ask again for the positions of partitions that a new incarnation claimed."""
        self._claimed.update({one.source: one for one in claimed})
        self._next_step = 0.0

    def withdraw(self, partitions: Iterable[TopicPartition]) -> None:
        """Forget partitions that the group takes back, and release the claims on them."""
        gone = set(partitions)
        self._granted -= gone
        for partition in gone:
            self._waits.pop(partition, None)
        claimed = [self._claimed.pop(p) for p in gone if p in self._claimed]
        self._claims.release([one.remote for one in claimed])

    def withdraw_all(self) -> None:
        """Forget every partition, as the task ends."""
        self.withdraw([*self._granted, *self._claimed])

    def step(self, routes: Mapping[str, str]) -> Progress:
        """
        Claim granted partitions, and ask for the positions of claimed ones.

        Args:
            routes: Remote topic by source topic.

        Raises:
            RestartTask, FatalError: Exit the process.
        """
        progress = Progress()
        if self._granted:
            self._claim(routes, progress)
        if self._claimed:
            self._resolve(progress)
        self._next_step = self._now() + ASK_AGAIN_S if self._claimed else self._next_end()
        return progress

    def _next_end(self) -> float:
        """Return when the first wait is over. A partition without a route yet has none."""
        soon = self._now() + FIRST_WAIT_S
        ends = [self._waits[p].until if p in self._waits else soon for p in self._granted]
        return min(ends, default=soon)

    def _claim(self, routes: Mapping[str, str], progress: Progress) -> None:
        stopped = self._context.orders().stopped
        for partition in sorted(self._granted):
            if partition in stopped and partition not in self._again:
                self._granted.discard(partition)
                progress.stopped[partition] = PartitionStopped(stopped[partition])
        ready = self._ready(routes, progress)
        if not ready:
            return
        self._claims.claim([one.remote for one in ready])
        for one in ready:
            self._granted.discard(one.source)
            self._waits.pop(one.source, None)
        self._claimed.update({one.source: one for one in ready})

    def _ready(self, routes: Mapping[str, str], progress: Progress) -> list[Claimed]:
        """
        Return granted partitions that exist on both clusters; new ones wait for the topic sync.

        The driver sends a route only after its remote topic is known everywhere. So a remote topic
        that does not exist now was deleted.
        """
        now = self._now()
        wanted = sorted(p for p in self._granted if p.topic in routes and self._is_over(p))
        sources = self._metadata.topics(sorted({p.topic for p in wanted}))
        remotes = self._target.topics(sorted({routes[p.topic] for p in wanted}))
        ready = []
        for p in wanted:
            source, remote = sources.get(p.topic), remotes.get(routes[p.topic])
            if remote is None:
                self._granted.discard(p)
                progress.stopped[p] = PositionLost(
                    f"{self._config.flow} {p}: {routes[p.topic]} was deleted on the target while "
                    f"it was mirrored. docs/operations.md says how to start over."
                )
            elif denied := self._denied(p, source, remote, routes[p.topic]):
                self._granted.discard(p)
                progress.stopped[p] = denied
            elif source is None or p.partition >= remote.partitions:
                self._wait(p, "")  # the topic sync creates it, or removes the route
            elif p.partition in source.leaderless:
                self._wait(p, f"{p} has no leader on {self._config.flow.source}")
            elif p.partition in remote.leaderless:
                where = f"{TopicPartition(routes[p.topic], p.partition)} has no leader"
                self._wait(p, f"{where} on {self._config.flow.target}")
            else:
                ready.append(
                    Claimed(
                        source=p,
                        remote=TopicPartition(routes[p.topic], p.partition),
                        topic_id=source.topic_id,
                        partitions=source.partitions,
                        since=now,
                    )
                )
        return self._with_replicas(ready, remotes)

    def _with_replicas(
        self, ready: list[Claimed], remotes: Mapping[str, KnownTopic]
    ) -> list[Claimed]:
        """Return the partitions that have enough replicas in sync; the others wait."""
        shrunk = {
            one.remote: counts
            for one in ready
            if (counts := remotes[one.remote.topic].shrunk.get(one.remote.partition))
        }
        if not shrunk:
            return ready
        limits = self._target.limits({remote.topic for remote in shrunk})
        kept = []
        for one in ready:
            in_sync, replicas = shrunk.get(one.remote, (0, 0))
            limit = limits.get(one.remote.topic)
            least = 0 if limit is None else min(limit.min_in_sync, replicas)
            if in_sync < least:
                self._wait(
                    one.source,
                    f"{one.remote} has {in_sync} of {replicas} replicas in sync on "
                    f"{self._config.flow.target}, and {MIN_IN_SYNC} is {least}",
                )
            else:
                kept.append(one)
        return kept

    def _denied(
        self, p: TopicPartition, source: KnownTopic | None, remote: KnownTopic, copy: str
    ) -> RightMissing | None:
        """Return the fault if a right on the source topic, or on its copy, is missing."""
        flow = self._config.flow
        for topic, name, alias in ((source, p.topic, flow.source), (remote, copy, flow.target)):
            if topic is not None and topic.missing:
                rights = " and ".join(topic.missing)
                return RightMissing(
                    f"{flow} {p}: not authorized: {rights} on topic {name} ({alias}). "
                    f"Grant it with kafka-acls.sh; the partition resumes by itself."
                )
        return None

    def _is_over(self, partition: TopicPartition) -> bool:
        wait = self._waits.get(partition)
        return wait is None or self._now() >= wait.until

    def _wait(self, partition: TopicPartition, reason: str) -> None:
        """Check it again after a pause. A pause is reported, and grows, only if it has a reason."""
        before = self._waits.get(partition)
        is_same = before is not None and before.reason == reason
        pause_s = FIRST_WAIT_S
        if before is not None and is_same and reason:
            pause_s = min(2 * before.pause_s, LONGEST_WAIT_S)
        self._waits[partition] = _Wait(reason, pause_s, self._now() + pause_s)
        if reason and not is_same:
            fields = {"partition": str(partition), "reason": reason}
            self._context.event("partition.waiting", fields)

    def _resolve(self, progress: Progress) -> None:
        answers = self._positions.resolve(list(self._claimed.values()))
        for partition, answer in answers.items():
            one = self._claimed[partition]
            if isinstance(answer, Resolved):
                progress.resolved.append(answer)
            elif isinstance(answer, PartitionStopped):
                progress.stopped[partition] = answer
            elif self._now() - one.since >= MARKERS_LOST_AFTER.total_seconds():
                progress.stopped[partition] = self._markers_lost(one)
            else:
                continue
            del self._claimed[partition]
            if partition in progress.stopped:
                self._claims.release([one.remote])

    def _markers_lost(self, one: Claimed) -> MarkersLost:
        return MarkersLost(
            f"{self._config.flow} {one.source}: the shadow offset of {one.remote}, its last "
            f"records, or {self._config.flow.offset_map_topic} are still undecided "
            f"{MARKERS_LOST_AFTER.total_seconds():.0f} s after every earlier writer was fenced: "
            f"the target lost transaction markers. Find the producer id and epoch with "
            f"kafka-transactions.sh find-hanging --max-transaction-timeout 1, and decide with "
            f"__transaction_state what the markers would have said."
        )
