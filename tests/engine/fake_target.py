"""Fakes of `ports.Target` and `ports.ClaimsLog`, over the fake cluster."""

from collections.abc import Collection, Mapping, Sequence

from eos_mirror.core.claims import Claim, ClaimRecord, parse_claim
from eos_mirror.core.records import TopicPartition
from eos_mirror.core.topic_limits import TopicLimits
from eos_mirror.errors import RestartTask, TargetUnavailable
from eos_mirror.ports import (
    UNSTABLE,
    KnownTopic,
    PartitionEnd,
    ShadowOffset,
    TransactionalProducer,
    Unstable,
)
from tests.engine.fake_producer import FakeProducer
from tests.engine.gate import Clock, Gate
from tests.engine.own_lane_producer import OwnLaneProducer
from tests.engine.requests import Requests
from tests.engine.target_cluster import TargetCluster, newest_by_key

FENCE_S = 5.0


class FakeTarget:
    """The cluster as one task sees it."""

    def __init__(
        self,
        cluster: TargetCluster,
        gate: Gate,
        clock: Clock,
        *,
        require_stable: bool = True,
        own_lane: bool = False,
    ) -> None:
        """
        Args:
            own_lane: Its producers behave as those of our own lane.
        """
        self._own_lane = own_lane
        self._cluster = cluster
        self._requests = Requests(gate, clock)
        self._require_stable = require_stable
        self.producers: list[FakeProducer] = []

    def new_producer(self, transactional_id: str) -> TransactionalProducer:
        """See the port."""
        producer = FakeProducer(
            self._cluster, self._requests, transactional_id, repeats=not self._own_lane
        )
        self.producers.append(producer)
        return OwnLaneProducer(producer) if self._own_lane else producer

    def fence(self, transactional_ids: Collection[str]) -> set[str]:
        """See the port. Fences one id after the other, always in the same order."""
        return {txid for txid in sorted(transactional_ids) if self._fence_one(txid)}

    def _fence_one(self, transactional_id: str) -> bool:
        coordinator = self._cluster.coordinator
        try:
            self._requests.insist(
                "fence", lambda: coordinator.init(transactional_id), within_s=FENCE_S
            )
        except RestartTask:
            return False
        return True

    def shadow_offsets(
        self, remotes: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, ShadowOffset | Unstable | None]:
        """See the port."""
        group = self._cluster.group
        return self._requests.ask(
            "fetch offsets",
            lambda: {r: group.fetch(r, require_stable=self._require_stable) for r in remotes},
        )

    def topics(self, names: Sequence[str]) -> Mapping[str, KnownTopic]:
        """See the port."""
        counts = self._requests.ask("partitions", self._cluster.partition_counts)
        return {
            topic: KnownTopic(
                topic_id=topic,
                partitions=counts[topic],
                leaderless=frozenset(p for t, p in self._cluster.leaderless if t == topic),
                shrunk={p: (1, 3) for t, p in self._cluster.shrunk if t == topic},
            )
            for topic in names
            if topic in counts
        }

    def limits(self, topics: Collection[str]) -> Mapping[str, TopicLimits]:
        """See the port."""
        known = self._requests.ask("limits", self._cluster.partition_counts)
        return {topic: self._cluster.limits_of(topic) for topic in topics if topic in known}

    def check_login(self) -> None:
        """See the port. There are no passwords."""

    def ends(self, remotes: Sequence[TopicPartition]) -> Mapping[TopicPartition, PartitionEnd]:
        """See the port. Sends two requests, the one for stable ends first."""
        logs = self._cluster.logs
        if any(remote not in logs for remote in remotes):
            raise RestartTask("list offsets: unknown partition")
        if self._cluster.leaderless & set(remotes):
            raise TargetUnavailable("list offsets: LEADER_NOT_AVAILABLE")
        stable = self._requests.ask("ends", lambda: {r: logs[r].stable for r in remotes})
        written = self._requests.ask(
            "high watermarks", lambda: {r: logs[r].written for r in stable}
        )
        return {r: PartitionEnd(stable=stable[r], written=written[r]) for r in remotes}

    def first_offsets(
        self, starts: Mapping[TopicPartition, int], *, committed: bool
    ) -> Mapping[TopicPartition, Sequence[int]]:
        """See the port."""
        logs = self._cluster.logs
        return self._requests.ask(
            "look",
            lambda: {r: logs[r].first(at, committed=committed) for r, at in starts.items()},
        )

    def map_entries(self, topic: str) -> Mapping[str, bytes] | Unstable:
        """See the port."""
        log = self._cluster.logs[self._cluster.map_partition]
        stable = self._requests.ask("end of the map", lambda: log.stable)
        if stable < self._requests.ask("high watermark of the map", lambda: log.written):
            return UNSTABLE
        visible = self._requests.ask("read the map", log.visible)
        entries = newest_by_key(visible)
        return {key: value for key, value in entries.items() if key.startswith(f'["{topic}",')}


class FakeClaims:
    """A reader and writer of the claims topic with a cache of its own."""

    def __init__(self, cluster: TargetCluster, gate: Gate, clock: Clock) -> None:
        self._cluster = cluster
        self._requests = Requests(gate, clock)
        self._next_offset = 0
        self._live: dict[str, ClaimRecord] = {}

    def append(self, claims: Sequence[Claim]) -> Mapping[str, int]:
        """See the port. Claims of other tasks may come in between."""
        return {claim.key: self._write(claim.key, claim.value) for claim in claims}

    def tombstone(self, keys: Sequence[str]) -> None:
        """See the port."""
        for key in sorted(keys):
            self._write(key, None)

    def _write(self, key: str, value: str | None) -> int:
        what = "claim" if value is not None else "tombstone"
        return self._requests.ask(what, lambda: self._cluster.append_claim(key, value))

    def read_through(self, offset: int | None) -> Mapping[str, ClaimRecord]:
        """See the port."""
        wanted = self._requests.ask("read the claims", lambda: self._cluster.claims_end)
        for record in self._cluster.claims:
            if record.offset < self._next_offset:
                continue
            if record.value is None:
                self._live.pop(record.key, None)
            else:
                claim = parse_claim(record.key, record.value)
                self._live[record.key] = ClaimRecord(claim=claim, offset=record.offset)
        self._next_offset = self._cluster.claims_end
        if offset is not None and offset >= wanted:
            raise TargetUnavailable(f"claims not readable through offset {offset}")
        return self._live
