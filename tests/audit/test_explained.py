"""Which differences of a proof the ledger explains, and which it does not."""

from datetime import UTC, datetime
from typing import Any

import pytest

from eos_mirror.audit.compacted import Why
from eos_mirror.audit.differences import Difference, Kind
from eos_mirror.audit.explained import Explanation, explain, explanations
from eos_mirror.audit.proof import PartitionProof
from eos_mirror.audit.ranges import Range
from eos_mirror.core import ledger
from eos_mirror.core.records import TopicPartition
from eos_mirror.errors import ForeignRecord

SOURCE, TARGET = TopicPartition("orders", 3), TopicPartition("A.orders", 3)
ID = "A" * 22
TWO_OF_FIVE = Explanation(
    why=Why.DROPPED, partition="orders-3", topic_id=ID, start=10, end=15, count=2
)


def missing(*offsets: int, kind: Kind = Kind.MISSING) -> list[Difference]:
    """Return a difference for each offset of one partition."""
    return [
        Difference(
            kind=kind, source=SOURCE, upstream_offset=at, target=TARGET, downstream_offset=at
        )
        for at in offsets
    ]


def proof(differences: list[Difference], explained: dict[Why, int] | None = None) -> PartitionProof:
    """Return the proof of a partition of a hundred records."""
    whole = Range(
        source=SOURCE, start=0, end=100, target=TARGET, target_start=0, target_end=100,
        timestamps=True,
    )  # fmt: skip
    return PartitionProof(
        compared=whole,
        matched=100 - len(differences),
        differences=differences,
        unproven=[],
        explained=explained or {},
    )


def drop(kind: ledger.Kind = ledger.Kind.DROP, /, **details: Any) -> ledger.LedgerEntry:
    """Return a ledger entry of a drop, or another kind, as a task writes it."""
    known = {"task": 0, "partition": "orders-3", "topic_id": ID, "from": 10, "to": 15, "records": 2}
    return ledger.LedgerEntry(
        kind=kind,
        at=datetime(2026, 3, 1, tzinfo=UTC),
        by="host-7:4711",
        details={**known, "reason": "MSG_SIZE_TOO_LARGE", **details},
    )


def test_what_was_dropped_is_no_difference() -> None:
    """A dropped record is no difference; it is counted with the other explained records."""
    before = proof(missing(11, 14), {Why.COMPACTED_ON_SOURCE: 7})
    after = explain(before, ID, [TWO_OF_FIVE])

    assert after.differences == []
    assert after.explained == {Why.COMPACTED_ON_SOURCE: 7, Why.DROPPED: 2}
    assert after.matched == before.matched


@pytest.mark.parametrize(
    "left",
    [
        pytest.param(missing(9, 15), id="outside"),
        pytest.param(missing(12, kind=Kind.ALTERED), id="not missing"),
    ],
)
def test_what_was_not_dropped_is_still_a_difference(left: list[Difference]) -> None:
    """An entry explains only missing records in its own range."""
    after = explain(proof([*missing(10), *left]), ID, [TWO_OF_FIVE])

    assert (after.differences, after.explained) == (left, {Why.DROPPED: 1})


def test_no_more_is_explained_than_was_dropped() -> None:
    """An entry explains no more missing records than it dropped."""
    after = explain(proof(missing(10, 11, 12)), ID, [TWO_OF_FIVE])

    assert (after.differences, after.explained) == (missing(12), {Why.DROPPED: 2})


@pytest.mark.parametrize("other", [{"partition": "orders-4"}, {"topic_id": "B" * 22}])
def test_another_partition_or_a_topic_created_again_is_not_excused(other: dict[str, Any]) -> None:
    """An entry explains nothing in another partition, or in a topic that was created again."""
    before = proof(missing(11))
    assert explain(before, ID, explanations([drop(**other)])) == before


SECOND: dict[str, Any] = {"from": 15, "to": 16, "records": 1}


def test_an_entry_that_was_written_twice_counts_once() -> None:
    """A repeated entry counts once: a task that dies before it commits the offsets repeats it."""
    assert explanations([drop(), drop(), drop(**SECOND)]) == [
        TWO_OF_FIVE,
        Explanation(why=Why.DROPPED, partition="orders-3", topic_id=ID, start=15, end=16, count=1),
    ]


def test_other_entries_explain_nothing() -> None:
    """Only a drop explains a missing record, not a fence."""
    entry = drop()
    fence = ledger.LedgerEntry(
        kind=ledger.Kind.FENCE, at=entry.at, by=entry.by, details=entry.details
    )
    assert explanations([fence]) == []


def test_an_entry_that_is_not_whole_is_named() -> None:
    """An incomplete entry is an error, because it might hide a loss."""
    with pytest.raises(ForeignRecord, match=r"not a whole drop: .*'records': None"):
        explanations([drop(records=None)])


def test_a_quarantined_record_is_explained_like_a_dropped_one() -> None:
    """Both are missing in the copy."""
    assert explanations([drop(ledger.Kind.QUARANTINE)]) == explanations([drop()]) == [TWO_OF_FIVE]


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind is not Kind.MISSING])
def test_a_replayed_record_is_explained_by_its_place_in_the_copy(kind: Kind) -> None:
    """It looks foreign, moved or doubled, as its original is compared with others."""
    reasons = explanations([drop(ledger.Kind.REPLAY, to=12)])
    after = explain(proof([*missing(11, 12, kind=kind), *missing(10)]), ID, reasons)

    assert after.differences == [*missing(12, kind=kind), *missing(10)]
    assert after.explained == {Why.REPLAYED: 1}


def test_what_was_said_before_a_reset_explains_nothing() -> None:
    """The copy began again: whatever is missing in it now is lost."""
    kinds = (ledger.Kind.DROP, ledger.Kind.QUARANTINE, ledger.Kind.REPLAY)
    before = [drop(kind) for kind in kinds]
    assert len(explanations(before)) == 2
    assert explanations([*before, drop(ledger.Kind.RESET, topic="orders")]) == []
    assert len(explanations([*before, drop(ledger.Kind.RESET, topic="order")])) == 2
    assert explanations([drop(ledger.Kind.RESET, topic="orders"), drop()]) == [TWO_OF_FIVE]


def test_what_was_said_before_a_position_was_set_back_explains_nothing() -> None:
    """The records of this partition come again; others are left out as before."""
    rewind = drop(ledger.Kind.REWIND)
    assert explanations([drop(), rewind]) == []
    assert explanations([drop(), drop(ledger.Kind.REWIND, partition="orders-30")]) == [TWO_OF_FIVE]
    assert explanations([rewind, drop()]) == [TWO_OF_FIVE]
