"""`verify` names the copies for which a position was set back, and only those."""

from datetime import UTC, datetime
from typing import Any

import pytest

from eos_mirror.audit.extent import PartitionSnapshot
from eos_mirror.audit.mirrored_again import begin_inside, mirrored_again
from eos_mirror.audit.report import Report, TopicReport
from eos_mirror.core.ledger import Kind, LedgerEntry
from eos_mirror.core.offset_map import MapTail, OffsetMap
from eos_mirror.core.records import TopicPartition

SOURCE, TARGET, ID = TopicPartition("orders", 3), TopicPartition("A.orders", 3), "A" * 22


def snapshot(*, start: int = 20, downstream: int | None = 61) -> PartitionSnapshot:
    """Return a partition whose offset map begins there."""
    return PartitionSnapshot(
        source=SOURCE,
        source_start=0,
        target=TARGET,
        target_start=0,
        target_end=99,
        source_log_end=60,
        target_log_end=99,
        offsets=OffsetMap([], MapTail.empty(start, downstream=downstream)),
        source_topic_id=ID,
    )


def rewind(**details: Any) -> LedgerEntry:
    """Return the entry that `offsets set` writes."""
    known = {
        "partition": "orders-3", "topic_id": ID, "from": 60, "to": 20, "remote": "A.orders-3",
        "downstream": 61, "duplicates": True, "reason": "",
    }  # fmt: skip
    at = datetime(2026, 3, 1, tzinfo=UTC)
    return LedgerEntry(kind=Kind.REWIND, at=at, by="host-7:4711", details={**known, **details})


@pytest.mark.parametrize("duplicates", [True, False])
def test_a_position_that_was_set_back_is_in_the_report(duplicates: bool) -> None:
    """A line and an object say which records come again; the verdict is about the others."""
    again = mirrored_again([snapshot()], [rewind(duplicates=duplicates), rewind(to=5)])
    topic = TopicReport(
        source="orders", target="A.orders", partitions=[], incomparable={}, again=again
    )
    report = Report(flow="A->B", topics=[topic])

    twice = ", and may have records of this range before it, too" if duplicates else ""
    assert list(report.lines()) == [
        "orders -> A.orders: 0 records match, equal",
        "  mirrored again: orders-3 [20, 60): its position was set back; A.orders-3 is compared "
        f"from offset 61 on{twice}",
        "A->B: 0 records match, no difference in what was compared",
    ]
    assert report.holds
    assert report.document()["topics"][0]["mirrored_again"] == [
        {
            "partition": 3,
            "start": 20,
            "end": 60,
            "downstream": 61,
            "has_duplicates": duplicates,
        }
    ]


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param(rewind(partition="orders-4"), id="another partition"),
        pytest.param(rewind(topic_id="B" * 22), id="an earlier topic of this name"),
        pytest.param(rewind(to=19), id="a command that was never finished"),
        pytest.param(rewind(downstream=60), id="an earlier map"),
    ],
)
def test_another_entry_says_nothing_about_a_map(entry: LedgerEntry) -> None:
    """Only the entry whose position and copy the map begins with is about it."""
    assert not mirrored_again([snapshot()], [entry])


def test_the_ledger_is_read_only_if_a_map_begins_inside_its_copy() -> None:
    """Nothing was mirrored again into a copy that the map covers from its first offset."""
    assert not begin_inside([snapshot(downstream=0), snapshot(downstream=None)])
    assert begin_inside([snapshot(downstream=0), snapshot()])
