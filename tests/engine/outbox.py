"""Records that wait in a client, in the batches in which they will be sent."""

from collections import deque
from dataclasses import dataclass, field

from eos_mirror.core.records import RecordRun, TopicPartition, TopicRecord
from tests.engine.target_log import Record

BATCH_RECORDS = 4
"""Records that fill a batch of a fake producer."""


@dataclass(slots=True)
class Batch:
    """Records that are sent in one request, with their upstream offsets."""

    remote: TopicPartition
    number: int | None
    offsets: list[int] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)


def own_record(record: TopicRecord) -> Record:
    """Return a record for one of the flow's own topics as its log holds it."""
    headers = None if record.headers is None else tuple(record.headers)
    return Record(record.key, record.value, headers, 0)


class Outbox(deque[Batch]):
    """Batches to send. Runs of a partition share a batch unless their numbers differ."""

    def add(self, some: RecordRun, remote: TopicPartition, number: int | None) -> None:
        """Add a run."""
        run = some.decoded()
        columns = zip(run.keys, run.values, run.headers, run.timestamps, strict=True)
        records = [Record(k, v, None if h is None else tuple(h), t) for k, v, h, t in columns]
        last = next((one for one in reversed(self) if one.remote == remote), None)
        for offset, record in zip(run.offsets, records, strict=True):
            if last is None or last.number != number or len(last.records) == BATCH_RECORDS:
                last = Batch(remote, number)
                self.append(last)
            last.offsets.append(offset)
            last.records.append(record)
