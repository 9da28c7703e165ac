"""The fake target cluster: logs, transactions, the shadow group, the claims topic."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from eos_mirror.core.claims import Claim
from eos_mirror.core.flow import INTERNAL_PREFIX, Flow
from eos_mirror.core.records import TopicPartition
from eos_mirror.core.topic_limits import TopicLimits
from eos_mirror.ports import ShadowCommit, ShadowOffset
from tests.engine.coordinator import Code, Coordinator, Identity, Participant, Refused
from tests.engine.refusing import judge
from tests.engine.shadow_group import ShadowGroup
from tests.engine.target_log import Record, TargetLog

GROUP: Final = TopicPartition("__consumer_offsets", 0)


class Late(NamedTuple):
    """A copy of a request that is still in flight."""

    what: str
    arrive: Callable[[], None]


class ClaimsRecord(NamedTuple):
    """A record of the claims topic; without a value it is a tombstone."""

    offset: int
    key: str
    value: str | None


class TargetCluster:
    """Handles requests, one method each, atomically on arrival."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.group = ShadowGroup()
        self.logs: dict[TopicPartition, TargetLog] = {}
        self._participants: dict[TopicPartition, Participant] = {GROUP: self.group}
        self.coordinator = Coordinator(self._participants)
        self.claims: list[ClaimsRecord] = []
        self.claims_end = 0
        self.network: list[Late] = []
        self.limits: dict[str, TopicLimits] = {}
        self.leaderless: set[TopicPartition] = set()
        self.shrunk: set[TopicPartition] = set()
        self.forbidden: set[bytes] = set()
        """Values that every copy refuses, for a reason that cannot be foreseen."""
        self.map_partition = TopicPartition(flow.offset_map_topic, 0)
        self.create_topic(flow.offset_map_topic, 1)

    # ------------------------------------------------------------------ topics

    def create_topic(self, topic: str, partitions: int) -> None:
        """Create a topic of empty partitions."""
        for partition in range(partitions):
            name = TopicPartition(topic, partition)
            self.logs[name] = self._participants[name] = TargetLog()

    def delete_topic(self, topic: str) -> None:
        """Delete a topic with its records and its shadow offsets."""
        for name in [one for one in self.logs if one.topic == topic]:
            del self.logs[name], self._participants[name]
        self.group.forget_topic(topic)

    def partition_counts(self) -> dict[str, int]:
        """Return the number of partitions by topic."""
        counts: dict[str, int] = {}
        for name in self.logs:
            counts[name.topic] = counts.get(name.topic, 0) + 1
        return counts

    def can_write(self, remote: TopicPartition) -> bool:
        """Return whether a partition has a leader, and enough replicas in sync."""
        limits = self.limits.get(remote.topic)
        needs_two = limits is not None and limits.min_in_sync > 1
        return remote not in self.leaderless and not (needs_two and remote in self.shrunk)

    # ------------------------------------------------------------------ transactions

    def produce(self, who: Identity, remote: TopicPartition, records: Sequence[Record]) -> int:
        """Append to a partition of the open transaction; return the first record's offset."""
        self.coordinator.verify(who, remote)
        self.check_batch(remote, records)
        return self.logs[remote].append(who.pid, who.epoch, records)

    def check_batch(self, remote: TopicPartition, records: Sequence[Record]) -> None:
        """Raise RefusedBatch if the topic does not accept these records."""
        is_own = remote.topic.startswith(INTERNAL_PREFIX)
        refused = judge(records, self.limits_of(remote.topic), () if is_own else self.forbidden)
        if refused is not None:
            raise refused

    def limits_of(self, topic: str) -> TopicLimits:
        """Return Kafka's defaults, or the limits that were set."""
        return self.limits.get(topic, TopicLimits(max_message_bytes=1_048_588))

    def commit_offsets(self, who: Identity, offsets: Mapping[TopicPartition, ShadowCommit]) -> None:
        """Handle TxnOffsetCommit."""
        if any(remote not in self.logs for remote in offsets):
            raise Refused(Code.UNKNOWN_TOPIC)
        self.coordinator.verify(who, GROUP)
        self.group.append(who.pid, who.epoch, offsets)

    def send_later(self, what: str, request: Callable[[], None]) -> None:
        """Leave a copy of a request in the network. Nothing waits for its answer."""

        def arrive() -> None:
            try:
                request()
            except Refused:
                return

        self.network.append(Late(what, arrive))

    def write_markers(self) -> None:
        """Write all pending markers."""
        for txid, participant in self.coordinator.owed():
            self.coordinator.write_marker(txid, participant)

    # ------------------------------------------------------------------ what is decided

    def decided_records(self, remote: TopicPartition) -> list[tuple[int, Record]]:
        """Return the records that read_committed readers see, or will see after all markers."""
        return self.logs[remote].decided(self.coordinator.committed_pids())

    def decided_offsets(self) -> dict[TopicPartition, ShadowOffset]:
        """Return the shadow offsets that stable reads find, or will find."""
        return self.group.decided(self.coordinator.committed_pids())

    def decided_map(self) -> dict[str, bytes]:
        """Return the newest decided value by key of the offset map topic."""
        return newest_by_key(self.decided_records(self.map_partition))

    # ------------------------------------------------------------------ claims

    def append_claim(self, key: str, value: str | None) -> int:
        """Append one record to the claims topic; return its offset."""
        offset = self.claims_end
        self.claims.append(ClaimsRecord(offset, key, value))
        self.claims_end += 1
        return offset

    def compact_claims(self) -> None:
        """Drop claims that have a tombstone; their tombstones stay."""
        dead = {record.key for record in self.claims if record.value is None}
        self.claims = [r for r in self.claims if r.value is None or r.key not in dead]

    def live_claims(self) -> set[str]:
        """Return the keys of the claims without a tombstone."""
        live: dict[str, None] = {}
        for record in self.claims:
            if record.value is None:
                live.pop(record.key, None)
            else:
                live[record.key] = None
        return set(live)


def newest_by_key(records: Sequence[tuple[int, Record]]) -> dict[str, bytes]:
    """Return a compacted topic's values; a record without a value removes its key."""
    newest = {(record.key or b"").decode(): record.value for _, record in records}
    return {key: value for key, value in newest.items() if value is not None}


def claim_of(remote: TopicPartition, transactional_id: str, sequence: int = 1) -> Claim:
    """Return a claim, for tests that need one of their own."""
    return Claim(remote=remote, transactional_id=transactional_id, sequence=sequence)
