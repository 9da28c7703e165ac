"""The exactly-once checker finds every kind of fault."""

from typing import Any

import pytest
from confluent_kafka import Producer

from eos_mirror.testing import (
    Cluster,
    Comparison,
    Record,
    compare_partition,
    compare_topics,
    read_topic,
)

A, B, C, D = (
    Record(key=b"k", value=value, timestamp=(1, 5), offset=offset)
    for offset, value in enumerate([b"a", b"b", b"c", b"d"])
)


def test_equal_sequences_are_exact() -> None:
    """Offsets differ between clusters and do not count."""
    shifted = [Record(key=b"k", value=b"a", timestamp=(1, 5), offset=77), B]

    found = compare_partition([A, B], shifted)

    assert found.exact
    assert found.matched == 2


@pytest.mark.parametrize(
    ("target", "expected", "words"),
    [
        ([A, C, D], {"matched": 3, "missing": 1}, "record 1, offset 1"),
        ([A, B, C], {"matched": 3, "missing": 1}, "the target ends before record 3, offset 3"),
        ([A, B, B, C, D], {"matched": 4, "duplicates": 1}, "record 2"),
        ([A, B, C, D, D], {"matched": 4, "duplicates": 1}, "the source ends before record 4"),
        ([B, A, C, D], {"matched": 3, "reordered": 1}, "value b'a' became b'b'"),
        ([A, A, C, D], {"matched": 3, "missing": 1, "duplicates": 1}, "record 1"),
        ([], {"missing": 4}, "the target ends before record 0"),
    ],
)
def test_lost_doubled_and_swapped_records_are_told_apart(
    target: list[Record], expected: dict[str, int], words: str
) -> None:
    """Each fault has its own count, and the first difference is described in words."""
    found = compare_partition([A, B, C, D], target)

    assert not found.exact
    counts = {
        name: getattr(found, name)
        for name in ("matched", "missing", "duplicates", "reordered", "altered", "foreign")
    }
    assert counts == {"matched": 0} | dict.fromkeys(counts.keys() - {"matched"}, 0) | expected
    assert words in (found.first_difference or "")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"key": None}, "key b'k' became None"),
        ({"value": b""}, "value b'v' became b''"),
        ({"value": None}, "value b'v' became None"),
        ({"headers": (("b", b"2"), ("a", None))}, "headers"),
        ({"headers": (("a", b""), ("b", b"2"))}, "headers"),
        ({"headers": ()}, "headers"),
        ({"timestamp": (1, 6)}, "timestamp (1, 5) became (1, 6)"),
        ({"timestamp": (2, 5)}, "timestamp (1, 5) became (2, 5)"),
    ],
)
def test_a_change_in_any_field_is_an_altered_record(change: dict[str, Any], words: str) -> None:
    """Null and empty differ, the order of headers counts, and so does the kind of timestamp."""
    whole: dict[str, Any] = {
        "key": b"k",
        "value": b"v",
        "headers": (("a", None), ("b", b"2")),
        "timestamp": (1, 5),
    }

    found = compare_partition([A, Record(**whole)], [A, Record(**whole | change)])

    assert (found.altered, found.missing, found.foreign) == (1, 0, 0)
    assert words in (found.first_difference or "")


def test_records_that_the_source_never_had_are_foreign() -> None:
    """Records of another client in the target partition are counted as foreign."""
    found = compare_partition([A], [A, B, C])

    assert (found.foreign, found.duplicates) == (2, 0)


def test_one_lost_and_one_doubled_do_not_balance() -> None:
    """Equal counts prove nothing."""
    found = compare_partition([A, B, A], [A, A, A])

    assert (found.missing, found.duplicates) == (1, 1)


def test_a_comparison_sums_its_partitions_and_tells_the_differences() -> None:
    """A failing assertion prints enough to know where the difference is."""
    found = Comparison(
        partitions={0: compare_partition([A], [A]), 1: compare_partition([A, B], [A])}
    )

    assert not found.exact
    assert (found.matched, found.missing) == (2, 1)
    assert "partition 1: the target ends before record 1" in str(found)
    assert "partition 0" not in str(found)


def copy(cluster: Cluster, topic: str, *, skip: int | None, aborted: bool) -> None:
    """Write five records of every shape, in one transaction, after an aborted one."""
    cluster.create_topic(topic, partitions=2)
    producer = Producer({**cluster.client_config(), "transactional.id": topic})
    producer.init_transactions(20)
    if aborted:
        producer.begin_transaction()
        producer.produce(topic, b"never", partition=0)
        producer.flush(10)
        producer.abort_transaction(10)
    producer.begin_transaction()
    shapes: list[dict[str, Any]] = [
        {"key": None, "value": b"v"},
        {"key": b"", "value": None},
        {"key": b"k", "value": b"", "headers": [("h", None), ("h", b""), ("a", b"1")]},
        {"key": b"k", "value": b"v"},
        {"key": b"k", "value": b"v"},
    ]
    for number, shape in enumerate(shapes):
        if number != skip:
            producer.produce(topic, partition=number % 2, timestamp=1000 + number, **shape)
    producer.commit_transaction(10)


@pytest.mark.brokers
def test_real_topics_are_compared_as_read_committed_readers_see_them(
    source_cluster: Cluster, target_cluster: Cluster, ns: str
) -> None:
    """Aborted records do not count, null and empty are distinguished, and a loss is found."""
    copy(source_cluster, ns, skip=None, aborted=True)
    copy(target_cluster, f"A.{ns}", skip=None, aborted=False)
    copy(target_cluster, f"B.{ns}", skip=2, aborted=False)
    ends = source_cluster.client_config(), ns, target_cluster.client_config()

    whole = compare_topics(*ends, f"A.{ns}", 2)
    partial = compare_topics(*ends, f"B.{ns}", 2)

    assert read_topic(*ends[:2], partitions=2)[0] == [
        Record(key=None, value=b"v", timestamp=(1, 1000)),
        Record(
            key=b"k",
            value=b"",
            headers=(("h", None), ("h", b""), ("a", b"1")),
            timestamp=(1, 1002),
        ),
        Record(key=b"k", value=b"v", timestamp=(1, 1004)),
    ]
    assert whole.exact, str(whole)
    assert whole.matched == 5
    assert (partial.missing, partial.matched) == (1, 4), str(partial)
