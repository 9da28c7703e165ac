"""The fake source cluster: logs with gaps, transactions, retention, and re-created topics."""

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

from eos_mirror.core.records import TopicPartition
from tests.engine.target_log import Record

TOPIC_ID_CHARACTERS: Final = 22


class Kind(Enum):
    """What an offset of the source holds; a compacted one holds nothing."""

    RECORD = auto()
    CONTROL = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceEntry:
    """What one offset holds, and its leader epoch."""

    offset: int
    kind: Kind
    record: Record | None
    transaction: int | None
    leader_epoch: int


@dataclass(slots=True)
class SourceLog:
    """
    One partition. `entries` keeps what retention deleted, because the oracle needs it.

    Attributes:
        start: First offset that can be read.
        end: High watermark.
        open: First offset of each open transaction.
        aborted: Transactions without visible records.
    """

    start: int = 0
    end: int = 0
    leader_epoch: int = 0
    entries: list[SourceEntry] = field(default_factory=list)
    open: dict[int, int] = field(default_factory=dict)
    aborted: set[int] = field(default_factory=set)

    @property
    def stable(self) -> int:
        """Last stable offset."""
        return min(self.open.values(), default=self.end)

    def append(self, record: Record, *, transaction: int | None = None) -> None:
        """Append a record, in a transaction or not."""
        if transaction is not None:
            self.open.setdefault(transaction, self.end)
        self._put(Kind.RECORD, record, transaction)

    def finish(self, transaction: int, *, commit: bool) -> None:
        """Append the marker of a transaction."""
        del self.open[transaction]
        if not commit:
            self.aborted.add(transaction)
        self._put(Kind.CONTROL, None, transaction)

    def skip(self, offsets: int) -> None:
        """Skip offsets, as if compaction had removed their records."""
        self.end += offsets

    def _put(self, kind: Kind, record: Record | None, transaction: int | None) -> None:
        self.entries.append(
            SourceEntry(
                offset=self.end,
                kind=kind,
                record=record,
                transaction=transaction,
                leader_epoch=self.leader_epoch,
            )
        )
        self.end += 1

    def visible(self, first: int) -> list[SourceEntry]:
        """Return what a read_committed reader sees from an offset on, expired or not."""
        return [
            entry
            for entry in self.entries
            if first <= entry.offset < self.stable
            and entry.kind is Kind.RECORD
            and entry.transaction not in self.aborted
        ]


CHUNK_RECORDS = 3


class SourceCluster:
    """
    Topics and their logs.

    Attributes:
        is_slow: More records are in flight, but polls do not return them for now.
        chunk_records: The most records of one partition that a poll returns.
    """

    def __init__(self) -> None:
        self.is_slow = False
        self.chunk_records = CHUNK_RECORDS
        self.logs: dict[TopicPartition, SourceLog] = {}
        self.leaderless: set[TopicPartition] = set()
        self.topic_ids: dict[str, str] = {}
        self._topics_made = 0

    def create_topic(self, topic: str, partitions: int) -> None:
        """Create empty logs, and a topic id that no topic had before."""
        self._topics_made += 1
        self.topic_ids[topic] = f"{self._topics_made:0{TOPIC_ID_CHARACTERS}d}"
        for partition in range(partitions):
            self.logs[TopicPartition(topic, partition)] = SourceLog()

    def delete_topic(self, topic: str) -> None:
        """Delete a topic and its logs."""
        del self.topic_ids[topic]
        for name in [one for one in self.logs if one.topic == topic]:
            del self.logs[name]

    def partition_count(self, topic: str) -> int:
        """Return the current number of partitions of a topic."""
        return sum(one.topic == topic for one in self.logs)
