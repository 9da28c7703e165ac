"""
Finds open transactions, behind which no read_committed reader can read.

The client cannot ask for the producer (KIP-664); `kafka-transactions.sh describe-producers` can.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from confluent_kafka import TopicPartition as ClientPartition

from eos_mirror.core.records import TopicPartition
from eos_mirror.core.side import Side
from eos_mirror.kafka.client import new_consumer
from eos_mirror.kafka.deadline import ANSWER, Deadline
from eos_mirror.kafka.errors import translated
from eos_mirror.kafka.metadata import ClusterMetadata
from eos_mirror.kafka.visible import READER

POLL_S: Final = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTransaction:
    """
    A transaction that hides the end of a partition.

    Attributes:
        since: Offset of its first record; the last stable offset of the partition.
        end: High watermark: what lies between the two waits for its end.
        began_at: Timestamp of its first record; None if that could not be read.
    """

    since: int
    end: int
    began_at: datetime | None = None

    @property
    def hidden(self) -> int:
        """Return how many offsets wait for its end."""
        return self.end - self.since

    def __str__(self) -> str:
        at = f", begun {self.began_at:%Y-%m-%d %H:%M:%S} UTC" if self.began_at else ""
        return f"a transaction is open since offset {self.since}{at}; {self.hidden:,} offsets wait"


def open_transactions(
    metadata: ClusterMetadata,
    config: Mapping[str, Any],
    partitions: Sequence[TopicPartition],
    *,
    within: timedelta,
) -> dict[TopicPartition, OpenTransaction]:
    """
    Find partitions whose last stable offset does not move within this time, below their ends.

    An ordinary transaction ends in this time. A partition without a leader is left out.

    Args:
        metadata: Asks for the offsets.
        config: Client settings for connection and security of the same cluster.
        within: Waited for only if a transaction is open at all.

    Raises:
        SourceUnavailable, TargetUnavailable: The cluster does not answer.
    """
    deadline = Deadline(within)
    ends, _ = metadata.high_watermarks_or_reasons(partitions)  # first, or new records seem hidden
    first, _ = metadata.ends_or_reasons(list(ends))
    open_since = {p: first[p] for p, end in ends.items() if p in first and first[p] < end}
    while open_since and not deadline.is_over:
        time.sleep(min(POLL_S, deadline.left_s(at_most=within)))
        now, _ = metadata.ends_or_reasons(list(open_since))
        open_since = {p: since for p, since in open_since.items() if now.get(p, since) == since}
    times = _begun(config, open_since) if open_since else {}
    return {
        p: OpenTransaction(since=since, end=ends[p], began_at=times.get(p))
        for p, since in open_since.items()
    }


def _begun(
    config: Mapping[str, Any], firsts: Mapping[TopicPartition, int]
) -> dict[TopicPartition, datetime]:
    """Return the timestamps of the records at these offsets, as far as they can be read soon."""
    group = {"group.id": "unused", "isolation.level": "read_uncommitted"}
    consumer = new_consumer({**config, **READER, **group})
    deadline = Deadline(ANSWER)
    found: dict[TopicPartition, datetime] = {}
    try:
        with translated("read the first record of a transaction", side=Side.SOURCE):
            consumer.assign([ClientPartition(*p, offset) for p, offset in firsts.items()])
            while len(found) < len(firsts) and not deadline.is_over:
                for message in consumer.consume(100, POLL_S):
                    partition = TopicPartition(message.topic() or "", message.partition() or 0)
                    if message.error() is None and partition not in found:
                        at_s = message.timestamp()[1] / 1000
                        found[partition] = datetime.fromtimestamp(at_s, UTC)
    finally:
        consumer.close()
    return found
