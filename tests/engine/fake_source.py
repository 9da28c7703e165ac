"""Fakes of `ports.Source` and `ports.SourceMetadata`, over the fake source cluster."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import takewhile

from eos_mirror.core.records import DecodedRun, Headers, Position, TopicPartition
from eos_mirror.errors import ProducerFenced, RecordRefused, SourceDataLost, SourceUnavailable
from eos_mirror.ports import KnownTopic, Polled, RebalanceListener
from tests.engine.gate import Clock, Gate
from tests.engine.requests import Requests
from tests.engine.source_cluster import SourceCluster, SourceEntry
from tests.engine.source_group import Change, GroupCoordinator, News

"""Few, so that a transaction takes several polls."""


@dataclass(slots=True)
class Reading:
    """The progress of the reader of one partition."""

    position: int
    end_told: int | None = None
    is_silent: bool = False


class FakeSource:
    """
    A static member of the group that reads the logs.

    A poll that brings a rebalance returns what was read before it, like the client library.
    """

    def __init__(
        self,
        cluster: SourceCluster,
        coordinator: GroupCoordinator,
        listener: RebalanceListener,
        *,
        slot: int,
        gate: Gate,
        clock: Clock,
    ) -> None:
        self._cluster = cluster
        self._coordinator = coordinator
        self._listener = listener
        self._slot = slot
        self._gate = gate
        self._clock = clock
        self._member = coordinator.join(slot)
        self._topics: list[str] = []
        self._reading: dict[TopicPartition, Reading] = {}
        self.committed: dict[TopicPartition, Position] = {}

    def subscribe(self, topics: Sequence[str]) -> None:
        """See the port."""
        self._gate("subscribe")
        if list(topics) == self._topics:
            self._coordinator.rejoin(self._member)
        self._topics = list(topics)

    def poll(self, *, wait: timedelta) -> Polled:
        """See the port."""
        self._gate("poll")
        if self._member.polls_until_heartbeat > 0:
            self._member.polls_until_heartbeat -= 1
            return self._read()
        self._check_member()
        polled = self._read()
        had_news = bool(self._member.inbox)
        while self._member.inbox:
            self._tell(self._member.inbox.popleft())
        if not had_news and not (polled.runs or polled.ends or polled.faults):
            self._clock.advance(wait.total_seconds())
        return polled

    def _check_member(self) -> None:
        if self._member.is_fenced:
            raise ProducerFenced("poll the source: FENCED_INSTANCE_ID")

    def _tell(self, news: News) -> None:
        partitions = list(news.partitions)
        match news.change:
            case Change.GRANTED:
                self._member.held.update(partitions)
                self._listener.on_granted(partitions)
            case Change.REVOKED:
                self._listener.on_revoked(partitions)
                self._drop(partitions)
                self._coordinator.let_go(self._member, partitions)
            case Change.LOST:
                self._listener.on_lost(partitions)
                self._drop(partitions)

    def _drop(self, partitions: Sequence[TopicPartition]) -> None:
        self._member.held.difference_update(partitions)
        for partition in partitions:
            self._reading.pop(partition, None)

    def _read(self) -> Polled:
        polled = Polled(more_pending=self._cluster.is_slow and self._is_behind())
        if polled.more_pending:
            return polled
        for partition in sorted(self._reading):
            if partition in self._cluster.logs and not self._reading[partition].is_silent:
                self._read_one(partition, self._reading[partition], polled)
        return polled

    def _is_behind(self) -> bool:
        logs = self._cluster.logs
        return any(logs[p].visible(one.position) for p, one in self._reading.items() if p in logs)

    def _read_one(self, partition: TopicPartition, reading: Reading, polled: Polled) -> None:
        log = self._cluster.logs[partition]
        if not log.start <= reading.position <= log.end:
            reading.is_silent = True
            polled.faults[partition] = SourceDataLost(f"{partition}: not in the log")
            return
        found = log.visible(reading.position)
        if found:
            chunk = found[: self._cluster.chunk_records]
            reading.position = chunk[-1].offset + 1
            good = list(takewhile(_can_be_carried, chunk))
            if good:
                polled.runs.append(_run_of(partition, good))
            if len(good) < len(chunk):
                polled.faults[partition] = RecordRefused(
                    f"{partition} next_offset={chunk[len(good)].offset}: timestamp 0"
                )
        if len(found) <= self._cluster.chunk_records:
            reading.position = max(reading.position, log.stable)
            if reading.end_told != reading.position:
                reading.end_told = polled.ends[partition] = reading.position

    def assign(self, positions: Mapping[TopicPartition, Position]) -> None:
        """See the port."""
        self._gate("assign")
        for partition, position in positions.items():
            assert partition not in self._reading, f"{partition} was assigned twice"
            self._reading[partition] = Reading(position.next_offset)

    def unassign(self, partitions: Sequence[TopicPartition]) -> None:
        """See the port."""
        self._gate("unassign")
        for partition in partitions:
            self._reading.pop(partition, None)

    def commit(self, positions: Mapping[TopicPartition, Position]) -> None:
        """See the port."""
        self._gate("advise")
        self.committed.update(positions)

    def close(self) -> None:
        """See the port. The last rebalance is a revocation, and the slot keeps its partitions."""
        self._gate("close")
        if self._member.held:
            self._listener.on_revoked(sorted(self._member.held))


def _can_be_carried(entry: SourceEntry) -> bool:
    """Return False for timestamp 0: the client library treats it as no timestamp."""
    return entry.record is not None and entry.record.timestamp_ms != 0


def _run_of(partition: TopicPartition, entries: Sequence[SourceEntry]) -> DecodedRun:
    records = [entry.record for entry in entries if entry.record is not None]
    headers: list[Headers | None] = [
        None if r.headers is None else list(r.headers) for r in records
    ]
    return DecodedRun(
        partition=partition,
        offsets=[entry.offset for entry in entries],
        timestamps=[record.timestamp_ms for record in records],
        keys=[record.key for record in records],
        values=[record.value for record in records],
        headers=headers,
        leader_epoch=entries[-1].leader_epoch,
        size_bytes=sum(len(record.value or b"") for record in records),
    )


class FakeSourceMetadata:
    """Answers requests about the logs."""

    def __init__(self, cluster: SourceCluster, gate: Gate, clock: Clock) -> None:
        self._cluster = cluster
        self._requests = Requests(gate, clock, lost=SourceUnavailable)

    def topics(self, names: Sequence[str]) -> Mapping[str, KnownTopic]:
        """See the port."""
        return self._requests.ask("describe topics", lambda: self._topics(names))

    def _topics(self, names: Sequence[str]) -> dict[str, KnownTopic]:
        ids, count = self._cluster.topic_ids, self._cluster.partition_count
        return {
            n: KnownTopic(
                topic_id=ids[n],
                partitions=count(n),
                leaderless=frozenset(p for t, p in self._cluster.leaderless if t == n),
            )
            for n in names
            if n in ids
        }

    def start_offset(self, partition: TopicPartition, start: str) -> int:
        """See the port."""
        return self._requests.ask("start offset", lambda: self._start_offset(partition, start))

    def _start_offset(self, partition: TopicPartition, start: str) -> int:
        if partition in self._cluster.leaderless:
            raise SourceUnavailable(f"list offsets of {partition}: LEADER_NOT_AVAILABLE")
        log = self._cluster.logs[partition]
        kind, _, value = start.partition(":")
        if kind == "timestamp":
            at_ms = int(datetime.fromisoformat(value).timestamp() * 1000)
            for entry in log.visible(log.start):
                if entry.record is not None and entry.record.timestamp_ms >= at_ms:
                    return entry.offset
        if kind in {"offset", "last"}:
            wanted = int(value) if kind == "offset" else log.stable - int(value)
            return min(max(wanted, log.start), log.stable)
        return log.start if kind in {"earliest", "group"} else log.stable

    def log_start(self, partition: TopicPartition) -> int:
        """See the port."""
        return self._requests.ask("log start", lambda: self._cluster.logs[partition].start)
