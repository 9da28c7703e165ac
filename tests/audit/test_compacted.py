"""Effects of compaction on either side are explained; all other differences are found."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eos_mirror.audit.compacted import (
    CompactedComparison,
    Compaction,
    Keyed,
    Why,
    compare_compacted,
)
from eos_mirror.audit.differences import Difference, Kind
from eos_mirror.audit.ranges import Range
from eos_mirror.core.records import TopicPartition

SHIFT, END, LOG_END = 1_000, 20, 30
WHERE = Range(
    source=TopicPartition("orders", 0),
    start=0,
    end=END,
    target=TopicPartition("A.orders", 0),
    target_start=SHIFT,
    target_end=SHIFT + END,
)
BOTH = Compaction(source=True, target=True)


def record(offset: int, key: str, *, tombstone: bool = False) -> Keyed:
    """Return a record of the source; its content is its offset."""
    return Keyed(offset, key.encode(), b"%d" % offset, tombstone)


def copied(records: Sequence[Keyed]) -> list[Keyed]:
    """Return the same records at their offsets on the target."""
    return [one._replace(offset=one.offset + SHIFT) for one in records]


def compare(
    source: Sequence[Keyed], target: Sequence[Keyed], compaction: Compaction = BOTH
) -> CompactedComparison:
    """Compare under a map that shifts offsets by SHIFT."""
    return compare_compacted(
        WHERE,
        source,
        target,
        original_of=lambda downstream: downstream - SHIFT if downstream >= SHIFT else None,
        copy_of=lambda upstream: upstream + SHIFT,
        compaction=compaction,
    )


def difference(kind: Kind, upstream: int, downstream: int) -> Difference:
    """Return a difference between the partitions of the range."""
    return Difference(
        kind=kind,
        source=WHERE.source,
        upstream_offset=upstream,
        target=WHERE.target,
        downstream_offset=downstream,
    )


def clean(log: Sequence[Keyed], *, until: int, without_tombstones: bool) -> list[Keyed]:
    """Return the log after the log cleaner compacted the part before an offset."""
    newest = {one.key: one.offset for one in log}
    kept = [one for one in log if one.offset >= until or newest[one.key] == one.offset]
    if not without_tombstones:
        return kept
    return [one for one in kept if not one.is_tombstone or one.offset >= until]


LOG = st.lists(
    st.tuples(st.sampled_from("abcd"), st.booleans()), min_size=LOG_END, max_size=LOG_END
).map(lambda steps: [record(i, key, tombstone=gone) for i, (key, gone) in enumerate(steps)])
CLEANINGS = st.lists(st.tuples(st.integers(0, LOG_END), st.booleans()), max_size=3)


def cleaned(log: Sequence[Keyed], cleanings: Sequence[tuple[int, bool]]) -> list[Keyed]:
    """Return the log after some runs of the cleaner; the first run removes no tombstones."""
    left = list(log)
    for number, (until, without_tombstones) in enumerate(sorted(cleanings)):
        left = clean(left, until=until, without_tombstones=without_tombstones and number > 0)
    return left


@given(LOG, CLEANINGS, CLEANINGS)
def test_compaction_is_never_blamed(
    log: list[Keyed], on_source: list[tuple[int, bool]], on_target: list[tuple[int, bool]]
) -> None:
    """A cleaner run on either side, also due to records after the range, makes no difference."""
    source, target = cleaned(log, on_source), copied(cleaned(log, on_target))
    found = compare(source, target)
    assert found.differences == []
    in_range = {one.offset for one in source if one.offset < END} | {
        one.offset - SHIFT for one in target if one.offset < SHIFT + END
    }
    assert found.matched + sum(found.explained.values()) == len(in_range)


@given(LOG, CLEANINGS, CLEANINGS, st.sampled_from("abcd"))
def test_the_newest_record_of_a_key_is_missed(
    log: list[Keyed],
    on_source: list[tuple[int, bool]],
    on_target: list[tuple[int, bool]],
    key: str,
) -> None:
    """The newest record of a key is missed if it is lost, because compaction keeps it."""
    log = [one for one in log if one.offset < END and not one.is_tombstone]
    source, target = cleaned(log, on_source), copied(cleaned(log, on_target))
    newest = max((one.offset for one in log if one.key == key.encode()), default=None)
    if newest is None:
        return
    target = [one for one in target if one.offset != newest + SHIFT]
    assert compare(source, target).differences == [difference(Kind.MISSING, newest, newest + SHIFT)]


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ([], [record(3, "a")], difference(Kind.FOREIGN, 3, SHIFT + 3)),
        ([record(3, "a")], [], difference(Kind.MISSING, 3, SHIFT + 3)),
        (
            [record(3, "a"), record(5, "a", tombstone=True)],
            [record(3, "a")],
            difference(Kind.MISSING, 5, SHIFT + 5),
        ),
        (
            [record(3, "a")],
            [record(3, "a")._replace(digest=b"x")],
            difference(Kind.ALTERED, 3, SHIFT + 3),
        ),
    ],
    ids=["only on the target", "only on the source", "a deletion undone", "altered"],
)
def test_what_compaction_does_not_do_is_found(
    source: list[Keyed], target: list[Keyed], expected: Difference
) -> None:
    """
    A difference that compaction does not explain is found.

    This includes a tombstone that is gone while the record that it deletes remains.
    """
    assert compare(source, copied(target)).differences == [expected]


def test_a_side_that_is_not_compacted_has_no_excuse() -> None:
    """If only the source is compacted, the target must have every record of the source."""
    log = [record(1, "a"), record(2, "a")]
    found = compare(log, copied(log[1:]), Compaction(source=True, target=False))
    assert found.differences == [difference(Kind.MISSING, 1, SHIFT + 1)]
    found = compare(log[1:], copied(log), Compaction(source=True, target=False))
    assert found.differences == []
    assert found.explained == {Why.COMPACTED_ON_SOURCE: 1}


def test_what_the_map_does_not_know_is_foreign() -> None:
    """A record without an original in the map is foreign, even if its key is known."""
    stranger = record(0, "a")._replace(offset=5)
    where = replace(WHERE, target_start=0)
    found = compare_compacted(
        where,
        [record(3, "a")],
        [stranger, *copied([record(3, "a")])],
        original_of=lambda downstream: downstream - SHIFT if downstream >= SHIFT else None,
        copy_of=lambda upstream: upstream + SHIFT,
        compaction=BOTH,
    )
    assert found.differences == [difference(Kind.FOREIGN, END, 5)]
    assert found.matched == 1
