"""Entries of the ledger: the text is stable, and older versions can read it."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from eos_mirror.core.ledger import Kind, LedgerEntry, decode_entry, stops_of
from eos_mirror.core.records import TopicPartition

STOP = LedgerEntry(
    kind=Kind.STOP,
    at=datetime(2026, 3, 1, 9, 30, 0, 125_000, tzinfo=UTC),
    by="host-7:4711",
    details={"task": 0, "partition": "orders-3"},
)
TEXT = (
    '{"version":1,"kind":"stop","at":"2026-03-01T09:30:00.125+00:00","by":"host-7:4711",'
    '"task":0,"partition":"orders-3"}'
)


def test_an_entry_is_the_text_that_the_documentation_shows() -> None:
    """An entry is written as documented, because other programs read it."""
    assert STOP.encode() == TEXT
    assert decode_entry(TEXT) == STOP


def test_times_are_written_in_utc() -> None:
    """Times are written in UTC, independently of the writer's time zone."""
    there = STOP.at.astimezone(timezone(timedelta(hours=5)))

    entry = LedgerEntry(kind=STOP.kind, at=there, by=STOP.by, details=STOP.details)

    assert entry.encode() == TEXT


@pytest.mark.parametrize("change", [("1", "2"), ('"stop"', '"sale"')])
def test_what_a_later_version_wrote_is_skipped(change: tuple[str, str]) -> None:
    """A reader skips entries of later versions and of unknown kinds."""
    assert decode_entry(TEXT.replace(*change, 1)) is None


@pytest.mark.parametrize("text", ["", "x", "[]", "{}", TEXT.replace('"at"', '"when"')])
def test_what_is_not_an_entry_is_refused(text: str) -> None:
    """A foreign record is an error; it is not skipped."""
    with pytest.raises(ValueError, match="not a ledger entry"):
        decode_entry(text)


def entry(kind: Kind, partition: str, minute: int, *, by: str = "host-7:4711") -> LedgerEntry:
    """Return what a run reported of a partition."""
    at = datetime(2026, 3, 1, 9, minute, tzinfo=UTC)
    return LedgerEntry(kind=kind, at=at, by=by, details={"partition": partition})


def test_a_stop_lasts_until_the_partition_resumes_or_its_run_is_gone() -> None:
    """The newest stop of a partition counts. Another run tries again, and reports what it finds."""
    entries = [
        entry(Kind.STOP, "orders-9", 10),
        entry(Kind.STOP, "orders-1", 31),
        entry(Kind.STOP, "my-orders-2", 32),
        entry(Kind.STOP, "orders-3", 33, by="host-8:1"),
        entry(Kind.GAP, "orders-4", 34),
        entry(Kind.RESUME, "orders-1", 35),
        entry(Kind.STOP, "orders-5", 36),
        entry(Kind.RESUME, "orders-5", 37),
        entry(Kind.STOP, "orders-5", 38),
        entry(Kind.STOP, "of another form", 39),
    ]
    since = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)

    stops = stops_of(entries, by="host-7:4711", since=since)

    minutes = {partition: stop.at.minute for partition, stop in stops.items()}
    assert minutes == {TopicPartition("my-orders", 2): 32, TopicPartition("orders", 5): 38}
