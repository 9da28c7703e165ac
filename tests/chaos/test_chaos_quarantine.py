"""The checker of the quarantine complains about the faults that it is made for."""

from dataclasses import replace

import pytest

from eos_mirror.core.quarantine import QuarantinedRecord
from eos_mirror.core.records import TopicPartition
from eos_mirror.testing import Record
from tests.chaos.quarantine import check_quarantined, one_copy, without

ONE = TopicPartition("orders", 0)
RECORDS = [Record(key=b"k", value=b"%d" % n, offset=n) for n in range(6)]


def quarantined_of(original: Record) -> QuarantinedRecord:
    """Return a record as the quarantine should have it."""
    return QuarantinedRecord(
        flow="A->B",
        source=ONE,
        offset=original.offset,
        topic_id="id",
        code="INVALID_RECORD",
        reason="no key",
        timestamp=original.timestamp[1],
        key=original.key,
        value=original.value,
        headers=list(original.headers) or None,
    )


def test_a_quarantine_with_each_refused_record_once_is_right() -> None:
    """What it has is expected in no copy."""
    moved = {2: [quarantined_of(RECORDS[2])]}

    assert list(check_quarantined(RECORDS, moved, "orders", one_copy)) == []
    left = without(RECORDS, moved, "orders", one_copy)
    assert [one.offset for one in left] == [0, 1, 3, 4, 5]


@pytest.mark.parametrize(
    "found",
    [
        [quarantined_of(RECORDS[2])] * 2,
        [replace(quarantined_of(RECORDS[2]), value=b"other")],
        [],
    ],
    ids=["twice", "altered", "none"],
)
def test_a_wrong_quarantine_is_seen(found: list[QuarantinedRecord]) -> None:
    """A record that is there twice, altered or unknown is a complaint."""
    assert len(list(check_quarantined(RECORDS, {2: found}, "orders", one_copy))) == 1
    assert len(list(check_quarantined(RECORDS, {9: found}, "orders", one_copy))) == 1
