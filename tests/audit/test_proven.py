"""Proven ranges are not compared twice, and they hide no difference."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from eos_mirror.audit.copy_counts import CopyCounts
from eos_mirror.audit.differences import Kind
from eos_mirror.audit.extent import Cause
from eos_mirror.audit.proof import PartitionProof, Prover
from eos_mirror.audit.proven import MOST_OFFSETS, Proven, ProvenRange
from eos_mirror.audit.ranges import Range
from eos_mirror.errors import ConfigError
from eos_mirror.operate.proven_file import ProvenFile
from tests.audit.in_memory_log import InMemoryLog
from tests.audit.one_partition import (
    MOST,
    RECORDS,
    SOURCE,
    TARGET,
    AtOnce,
    CountingWorker,
    difference,
    shelves,
    snapshot,
)

SOURCE_ID, TARGET_ID = "here", "there"
IDS = f"{SOURCE_ID} {TARGET_ID}"


def part(start: int, end: int, *, shift: int = 1_000, target_end: int | None = None) -> Range:
    """Return a range of the only partition."""
    return Range(
        source=SOURCE,
        start=start,
        end=end,
        target=TARGET,
        target_start=start + shift,
        target_end=end + shift if target_end is None else target_end,
    )


def proven_range(start: int, end: int, *, topics: str = IDS) -> ProvenRange:
    """Return a proven range whose offsets are all records."""
    return ProvenRange(where=part(start, end), topics=topics, count=end - start)


def test_what_is_left_lies_before_between_and_behind() -> None:
    """Every offset of both sides that is not proven is in a remaining range."""
    proven = Proven([proven_range(40, 50), proven_range(10, 20)])
    assert proven.rest(part(0, 100), IDS) == [part(0, 10), part(20, 40), part(50, 100)]
    assert Proven().rest(part(7, 7), IDS) == [part(7, 7)]


def test_a_stranger_between_two_proven_ranges_is_left() -> None:
    """A foreign record between proven ranges remains; it has offsets on the target only."""
    proven = Proven([proven_range(0, 10)])
    behind = replace(part(10, 10), target_end=1_011)
    assert proven.rest(part(0, 10, target_end=1_011), IDS) == [behind]
    assert proven.rest(part(0, 10), IDS) == []


def test_neighbours_are_joined_until_they_are_long() -> None:
    """Proven ranges are joined up to a limit, because retention makes a whole range unproven."""
    proven = Proven([proven_range(0, 10), proven_range(20, 30), proven_range(10, 20)])
    assert proven.ranges == [proven_range(0, 30)]
    proven.add(proven_range(30, 30 + MOST_OFFSETS))
    assert len(proven.ranges) == 2


def test_what_is_only_partly_inside_is_compared_again() -> None:
    """A proven range that is only partly inside is compared again, and then replaced."""
    proven = Proven([proven_range(0, 10), proven_range(20, 30)])
    assert proven.rest(part(5, 100), IDS) == [part(5, 20), part(30, 100)]
    proven.add(proven_range(5, 12))
    assert proven.ranges == [proven_range(5, 12), proven_range(20, 30)]


@pytest.mark.parametrize(
    "other",
    [
        lambda whole: (whole, "here elsewhere"),
        lambda whole: (replace(whole, timestamps=False), IDS),
        lambda whole: (replace(whole, target=TARGET._replace(topic="B.orders")), IDS),
    ],
)
def test_nothing_is_known_of_another_topic(other: Callable[[Range], tuple[Range, str]]) -> None:
    """A topic that was created again has the same name and another id: nothing of it is proven."""
    whole, topics = other(part(0, 10))
    assert Proven([proven_range(0, 10)]).rest(whole, topics) == [whole]


def prove(
    clerk: CountingWorker, proven: Proven, *, target_end: int = 1_000 + RECORDS
) -> PartitionProof:
    """Prove the partition with the proven ranges, and return the proof."""
    clerk.target.start = max(clerk.target.start, 1_000)
    prover = Prover(pool=AtOnce(), examiner=clerk, look_again=lambda one: one, proven=proven)
    now = replace(
        snapshot(clerk),
        source_topic_id=SOURCE_ID,
        target_topic_id=TARGET_ID,
        target_end=target_end,
        target_log_end=target_end,
    )
    (proof,) = prover.prove([now], max_offsets=MOST)
    return proof


def test_a_second_proof_compares_what_the_first_one_could_not() -> None:
    """A range that differed in the first proof is compared again, and only that range."""
    source, target = shelves()
    broken = {**target, 1_055: b"?"}
    proven = Proven()
    assert (
        len(prove(CountingWorker(InMemoryLog(source), InMemoryLog(broken)), proven).differences)
        == 1
    )
    clerk = CountingWorker(InMemoryLog(source), InMemoryLog(target))
    proof = prove(clerk, proven)
    assert (clerk.looked, proof.matched, proof.differences) == (1, RECORDS, [])
    assert proven.ranges == [proven_range(0, RECORDS)]


def test_a_copy_of_a_proven_record_is_called_a_duplicate() -> None:
    """A duplicate is recognised although its original is in a range that is not compared again."""
    source, target = shelves()
    proven = Proven([proven_range(0, 50)])
    clerk = CountingWorker(InMemoryLog(source), InMemoryLog({**target, 1_100: b"7"}))
    proof = prove(clerk, proven, target_end=1_101)
    assert proof.differences == [difference(Kind.DUPLICATED, 7, 1_100)]
    assert proof.matched == RECORDS


def test_retention_that_reaches_into_a_proven_range_has_it_compared_again() -> None:
    """The remaining part is compared again, and the other part is reported as expired."""
    source, target = shelves()
    clerk = CountingWorker(InMemoryLog(source), InMemoryLog(target))
    clerk.source.start = 15
    proof = prove(clerk, Proven([proven_range(0, 20), proven_range(20, 100)]))
    assert proof.matched == RECORDS - 15
    assert [gap.cause for gap in proof.unproven] == [Cause.EXPIRED_ON_SOURCE]


def test_the_file_keeps_what_is_proven_of_each_flow(tmp_path: Path) -> None:
    """A file that is opened again has the proven ranges of each flow."""
    path = tmp_path / "proven.json"
    file = ProvenFile(path)
    file.of("A->B").add(proven_range(0, 10))
    file.of("A->C").add(proven_range(5, 6))
    file.save()
    again = ProvenFile(path)
    assert again.of("A->B").ranges == [proven_range(0, 10)]
    assert again.of("A->C").ranges == [proven_range(5, 6)]
    assert not again.of("B->A").ranges
    assert [one.name for one in tmp_path.iterdir()] == ["proven.json"]


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"version": 1, "digest": 0, "proven": {}}', '{"version": 1, "digest": 1}',
     '{"version": 1, "digest": 1, "proven": {"A->B": [{"where": {}}]}}'],
)  # fmt: skip
def test_another_file_is_refused_and_left_alone(tmp_path: Path, text: str) -> None:
    """A file with other contents is refused and not overwritten."""
    path = tmp_path / "mm2.properties"
    path.write_text(text)
    with pytest.raises(ConfigError, match="choose another file"):
        ProvenFile(path)
    assert path.read_text() == text


def test_a_file_without_counts_of_copies_is_read(tmp_path: Path) -> None:
    """A file of an earlier version keeps what is proven; the counts that it lacks are zero."""
    path = tmp_path / "proven.json"
    file = ProvenFile(path)
    file.of("A->B").add(proven_range(0, 10))
    file.save()
    document = json.loads(path.read_text())
    del document["proven"]["A->B"][0]["copies"]
    path.write_text(json.dumps(document))
    again = ProvenFile(path)
    assert again.of("A->B").ranges == [proven_range(0, 10)]
    newer = replace(proven_range(10, 20), copies=CopyCounts(filtered=3, expanded=1))
    again.of("A->B").add(newer)
    again.save()
    assert ProvenFile(path).of("A->B").ranges == [
        replace(proven_range(0, 20), copies=CopyCounts(filtered=3, expanded=1))
    ]


def test_the_file_is_json(tmp_path: Path) -> None:
    """The file is JSON that other programs can read."""
    path = tmp_path / "proven.json"
    file = ProvenFile(path)
    file.of("A->B").add(proven_range(0, 10))
    file.save()
    (one,) = json.loads(path.read_text())["proven"]["A->B"]
    assert one["where"]["source"] == ["orders", 0]
    assert one["count"] == 10
