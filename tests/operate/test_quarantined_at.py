"""The records of a quarantine are read again by their places."""

from collections.abc import Iterator
from typing import Any, cast

import pytest

from eos_mirror.core.quarantine import Place, QuarantinedRecord
from eos_mirror.core.records import TopicPartition, TopicRecord
from eos_mirror.errors import RangeUnreadable
from eos_mirror.kafka.ranges import Columns
from eos_mirror.operate import quarantine
from eos_mirror.operate.quarantine import quarantined_at

QUEUE = "eos-mirror.A.B.quarantine"
CHUNK = 2


class Settings:
    """As much of the settings of a flow as is asked for."""

    quarantine_topic = QUEUE


def moved(number: int) -> TopicRecord:
    """Return a record of the quarantine."""
    record = QuarantinedRecord(
        flow="A->B", source=TopicPartition("orders", 0), offset=number, topic_id="id",
        code="INVALID_RECORD", reason="no key", timestamp=number, key=None, value=b"%d" % number,
        headers=None,
    )  # fmt: skip
    return record.encode()


class Queue:
    """A quarantine in memory, read in chunks."""

    def __init__(self, records: dict[Place, TopicRecord]) -> None:
        self.records = records
        self.asked: list[tuple[int, int, int]] = []
        self.closed = 0

    def read(self, partition: TopicPartition, start: int, end: int) -> Iterator[Columns]:
        """See `kafka.ranges.RangeReader`."""
        self.asked.append((partition.partition, start, end))
        places = [
            place
            for place in sorted(self.records)
            if place.partition == partition.partition and start <= place.offset < end
        ]
        for at in range(0, len(places), CHUNK):
            some = [self.records[place] for place in places[at : at + CHUNK]]
            yield Columns(
                offsets=[place.offset for place in places[at : at + CHUNK]],
                timestamps=[(2, 7)] * len(some),
                keys=[one.key for one in some],
                values=[one.value for one in some],
                headers=[one.headers for one in some],
            )

    def close(self) -> None:
        """Count."""
        self.closed += 1


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> Queue:
    """Two partitions of ten records."""
    found = Queue(
        {Place(p, offset): moved(10 * p + offset) for p in (0, 1) for offset in range(10)}
    )
    monkeypatch.setattr(quarantine, "RangeReader", lambda *_, **__: found)
    monkeypatch.setattr(quarantine, "target_admin", lambda _settings: {})
    return found


def read(places: list[Place]) -> list[tuple[Place, bytes | None]]:
    """Return place and value of the records at these places."""
    settings: Any = Settings()
    return [(one.place, one.record.value) for one in quarantined_at(settings, places)]


def test_each_partition_is_read_once_between_its_first_and_last_place(queue: Queue) -> None:
    """Other records between them are passed over."""
    places = [Place(0, 3), Place(0, 4), Place(0, 8), Place(1, 0), Place(1, 5)]
    assert read(places) == [(one, b"%d" % (10 * one.partition + one.offset)) for one in places]
    assert queue.asked == [(0, 3, 9), (1, 0, 6)]
    assert queue.closed == 1
    assert read([]) == []


@pytest.mark.parametrize("gone", [Place(0, 4), Place(0, 8)], ids=["between", "last"])
def test_a_record_that_was_deleted_meanwhile_is_an_error(queue: Queue, gone: Place) -> None:
    """Nothing is replayed in its place."""
    del queue.records[gone]
    with pytest.raises(RangeUnreadable, match=f"{QUEUE}-0: offset {gone.offset} is gone"):
        read([Place(0, 3), Place(0, 4), Place(0, 8)])


def test_a_record_of_another_program_in_its_place_is_an_error(queue: Queue) -> None:
    """The topic was created again."""
    queue.records[Place(0, 4)] = TopicRecord(b"k", b"v")
    with pytest.raises(RangeUnreadable, match="offset 4 is another record now"):
        read([Place(0, 4)])


def test_a_reader_that_stops_early_closes_the_client(queue: Queue) -> None:
    """A refusal ends the reading in the middle of a partition."""
    found = quarantined_at(cast("Any", Settings()), [Place(0, 0), Place(0, 9)])
    next(found)
    found.close()
    assert queue.closed == 1
