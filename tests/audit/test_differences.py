"""Every kind of difference in a copy is found, named and located."""

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eos_mirror.audit.differences import (
    Comparison,
    Difference,
    Kind,
    Log,
    name_strangers,
    settle,
)
from eos_mirror.audit.pairing import compare_range
from eos_mirror.core.records import TopicPartition
from tests.audit.one_partition import SOURCE, TARGET, difference

Records = list[tuple[int, str]]
"""Offset and content of each record."""

UPSTREAM: Records = [(100 + 2 * i, f"r{i}") for i in range(10)]
"""Records of the source, with gaps as transaction markers leave them."""

DOWNSTREAM: Records = [(7 + i, f"r{i}") for i in range(10)]


def log(partition: TopicPartition, records: Sequence[tuple[int, str]], end: int) -> Log:
    """Return records in the form that the comparison reads."""
    offsets = [offset for offset, _ in records]
    return Log(partition, offsets, [content.encode() for _, content in records], end)


def compared(copy: Records, original: Records = UPSTREAM) -> Comparison:
    """Compare one range of the source with this copy."""
    return compare_range(log(SOURCE, original, 120), log(TARGET, copy, 50))


def renumbered(contents: Sequence[str]) -> Records:
    """Return a copy with these contents, without gaps."""
    return [(7 + i, content) for i, content in enumerate(contents)]


CONTENTS = [content for _, content in DOWNSTREAM]
FAULTS: dict[str, tuple[Records, list[Difference]]] = {
    "none": (DOWNSTREAM, []),
    "missing": (
        renumbered([*CONTENTS[:4], *CONTENTS[5:]]),
        [difference(Kind.MISSING, 108, 11)],
    ),
    "missing, its offset too": (
        [*DOWNSTREAM[:4], *DOWNSTREAM[5:]],
        [difference(Kind.MISSING, 108, 12)],
    ),
    "the last one missing": (DOWNSTREAM[:9], [difference(Kind.MISSING, 118, 50)]),
    "doubled immediately": (
        renumbered([*CONTENTS[:5], "r4", *CONTENTS[5:]]),
        [difference(Kind.DUPLICATED, 108, 12)],
    ),
    "doubled later": (
        renumbered([*CONTENTS, "r4"]),
        [difference(Kind.DUPLICATED, 108, 17)],
    ),
    "doubled, the copy first": (
        renumbered(["r4", *CONTENTS]),
        [difference(Kind.DUPLICATED, 108, 7)],
    ),
    "neighbours swapped": (
        renumbered([*CONTENTS[:4], "r5", "r4", *CONTENTS[6:]]),
        [difference(Kind.REORDERED, 108, 12)],
    ),
    "swapped far apart": (
        renumbered(["r0", "r8", *CONTENTS[2:8], "r1", "r9"]),
        [difference(Kind.REORDERED, 102, 15), difference(Kind.REORDERED, 116, 8)],
    ),
    "altered": (
        renumbered([*CONTENTS[:4], "x", *CONTENTS[5:]]),
        [difference(Kind.ALTERED, 108, 11)],
    ),
    "foreign": (
        renumbered([*CONTENTS[:4], "x", *CONTENTS[4:]]),
        [difference(Kind.FOREIGN, 108, 11)],
    ),
    "foreign at the end": (renumbered([*CONTENTS, "x"]), [difference(Kind.FOREIGN, 120, 17)]),
    "one altered, one missing": (
        renumbered([*CONTENTS[:4], "x", *CONTENTS[6:]]),
        [difference(Kind.ALTERED, 108, 11), difference(Kind.MISSING, 110, 12)],
    ),
    "nothing arrived": (
        [],
        [difference(Kind.MISSING, offset, 50) for offset, _ in UPSTREAM],
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named_and_placed(fault: str) -> None:
    """A fault is reported with both offsets, and no other record is blamed."""
    copy, expected = FAULTS[fault]
    comparison = compared(copy)
    assert by_offset([*comparison.differences, *settled(comparison)]) == by_offset(expected)


def settled(*comparisons: Comparison) -> list[Difference]:
    """Settle the comparisons; no unknown record has an original on the source."""
    differences, strangers = settle(comparisons)
    return [*differences, *name_strangers(strangers, {})]


def by_offset(found: Sequence[Difference]) -> list[Difference]:
    """Sort differences by their offsets, for comparison."""
    return sorted(found, key=lambda one: (one.source, one.upstream_offset, one.downstream_offset))


def test_records_of_the_same_content_are_told_apart_by_their_number() -> None:
    """Two equal records on the source and three on the target are one duplicate, not three."""
    found = compared(renumbered(["a", "a", "a", "b"]), [(100, "a"), (102, "a"), (104, "b")])
    assert found.differences == [difference(Kind.DUPLICATED, 100, 9)]
    assert found.matched == 3


def test_a_record_that_went_to_another_range_has_moved() -> None:
    """A record that is missing in one range and extra in another has been reordered."""
    first = compared(renumbered(CONTENTS[1:]))
    then = compare_range(log(SOURCE, [(120, "s")], 122), log(TARGET, [(50, "s"), (51, "r0")], 60))
    assert settled(first, then) == [difference(Kind.REORDERED, 100, 51)]


def test_two_records_swapped_between_ranges_have_moved_and_are_not_altered() -> None:
    """Two records swapped between ranges are reordered, not altered."""
    first = compared(renumbered(["s", *CONTENTS[1:]]))
    then = compare_range(log(SOURCE, [(120, "s")], 122), log(TARGET, [(50, "r0")], 60))
    assert by_offset(settled(first, then)) == [
        difference(Kind.REORDERED, 100, 50),
        difference(Kind.REORDERED, 120, 7),
    ]


def test_a_record_in_another_partition_is_named_so() -> None:
    """A record in the wrong partition is misplaced; the difference names both partitions."""
    other_source, other_target = TopicPartition("orders", 1), TopicPartition("A.orders", 1)
    first = compared(renumbered(CONTENTS[1:]))
    then = compare_range(log(other_source, [], 10), log(other_target, [(3, "r0")], 5))
    assert settled(first, then) == [
        Difference(
            kind=Kind.MISPLACED,
            source=SOURCE,
            upstream_offset=100,
            target=other_target,
            downstream_offset=3,
        )
    ]


def test_a_copy_too_many_of_a_record_elsewhere_is_no_foreign_one() -> None:
    """An extra copy of a record of another range is a duplicate, not foreign."""
    comparison = compared(renumbered([*CONTENTS, "far"]))
    (stranger,) = settle([comparison]).strangers
    originals = {stranger.digest: (SOURCE, 3)}
    assert list(name_strangers([stranger], originals)) == [difference(Kind.DUPLICATED, 3, 17)]
    assert list(name_strangers([stranger], {})) == [difference(Kind.FOREIGN, 120, 17)]


EDIT = st.tuples(
    st.sampled_from(["drop", "repeat", "move", "alter", "insert"]),
    st.integers(0, 30),
    st.integers(0, 30),
)


def edited(contents: Sequence[str], edits: Sequence[tuple[str, int, int]]) -> list[str]:
    """Return a copy after these edits."""
    copy = list(contents)
    for harm, at, to in edits:
        if not copy:
            break
        i, j = at % len(copy), to % (len(copy) + 1)
        match harm:
            case "drop":
                copy.pop(i)
            case "repeat":
                copy.insert(j, copy[i])
            case "move":
                copy.insert(j, copy.pop(i))
            case "alter":
                copy[i] += "'"
            case _:
                copy.insert(j, "x")
    return copy


@given(st.lists(st.sampled_from("abcdefgh"), max_size=12), st.lists(EDIT, max_size=5))
def test_every_record_is_accounted_for(
    contents: list[str], edits: list[tuple[str, int, int]]
) -> None:
    """Each record of both sides is counted once, and only equal sequences have no difference."""
    copy = edited(contents, edits)
    upstream = [(2 * i, content) for i, content in enumerate(contents)]
    comparison = compare_range(log(SOURCE, upstream, 99), log(TARGET, renumbered(copy), 99))
    found = [*comparison.differences, *settled(comparison)]
    kinds = Counter(one.kind for one in found)
    both = comparison.matched + kinds[Kind.REORDERED] + kinds[Kind.ALTERED]
    assert both + kinds[Kind.MISSING] == len(contents)
    assert both + kinds[Kind.DUPLICATED] + kinds[Kind.FOREIGN] == len(copy)
    assert (not found) == (copy == contents)
