"""The proof of the demo, on the text that Kafka's console consumer prints."""

import pytest

from eos_mirror.demo.proof import NULL, Proof, by_partition, compare, parse
from eos_mirror.errors import MirrorError
from eos_mirror.testing.checker import Record


def printed(partition: int, *values: str) -> str:
    """Return the printed lines of one partition."""
    return "".join(
        f"CreateTime:{1000 + n}\tPartition:{partition}\tNO_HEADERS\tkey\t{value}\n"
        for n, value in enumerate(values)
    )


def proof(source: str, target: str, *, written: dict[int, int]) -> Proof:
    """Return the proof for these printed lines of both sides."""
    before, after = by_partition(source), by_partition(target)
    return Proof(
        comparison=compare(before, after),
        written=written,
        read={number: len(lines) for number, lines in before.items()},
    )


def test_the_order_between_partitions_does_not_count() -> None:
    """Only the order within a partition counts, because that is all Kafka promises."""
    zero, one = printed(0, "a", "b"), printed(1, "c")

    found = proof(zero + one, one + zero, written={0: 2, 1: 1})

    assert found.holds
    assert found.comparison.matched == 3
    assert found.doubts() == []


def test_a_difference_in_any_field_is_found() -> None:
    """A different timestamp, header or key, or null instead of empty, is an altered record."""
    line = "CreateTime:1\tPartition:0\th:x\tk\tv\n"
    for other in (
        "CreateTime:2\tPartition:0\th:x\tk\tv\n",
        "LogAppendTime:1\tPartition:0\th:x\tk\tv\n",
        f"CreateTime:1\tPartition:0\th:{NULL}\tk\tv\n",
        "CreateTime:1\tPartition:0\tNO_HEADERS\tk\tv\n",
        f"CreateTime:1\tPartition:0\th:x\t{NULL}\tv\n",
        "CreateTime:1\tPartition:0\th:x\tk\t\n",
    ):
        found = proof(line, other, written={0: 1})
        assert not found.holds, other
        assert found.comparison.altered == 1, other


def test_duplicates_missing_and_reordered_records_are_counted() -> None:
    """Duplicated, missing and reordered records are counted separately."""
    source = printed(0, "a", "b", "c") + printed(1, "d") + printed(2, "e", "f")
    a, b, c, _, e, f, _ = source.split("\n")
    target = "\n".join([a, a, b, c, f, e])

    found = proof(source, target, written={0: 3, 1: 1, 2: 2})

    assert found.comparison.duplicates == 1
    assert found.comparison.missing == 1
    assert found.comparison.reordered == 1
    assert not found.holds


def test_a_partition_that_only_the_target_has_is_a_difference() -> None:
    """A partition that exists only on the target is a difference."""
    assert not proof("", printed(0, "a"), written={}).holds


def test_the_source_is_compared_with_what_was_written() -> None:
    """The source must have every committed record: two sides that lack the same prove nothing."""
    found = proof(printed(0, "a"), printed(0, "a"), written={0: 2})

    assert found.comparison.exact
    assert not found.holds
    assert found.doubts() == ["partition 0: 2 records committed, 1 read from the source"]


def test_a_line_is_parsed_whole() -> None:
    """A parsed line keeps null, empty and repeated headers."""
    line = f"CreateTime:12\tPartition:3\ta:1,a:2,empty:,null:{NULL}\t\t{NULL}"

    assert parse(line) == Record(
        key=b"",
        value=None,
        headers=(("a", b"1"), ("a", b"2"), ("empty", b""), ("null", None)),
        timestamp=(1, 12),
    )


@pytest.mark.parametrize("line", ["[2026-01-01] WARN something", "CreateTime:1\tPartition:x\ta\tb"])
def test_what_is_not_a_record_is_refused(line: str) -> None:
    """A line that is not a record, such as a warning, is an error."""
    with pytest.raises(MirrorError, match="not a printed record"):
        by_partition(line)
