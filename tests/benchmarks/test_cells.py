"""The topics of the cells: their batches are what the cell says, and a copy is verified."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.batches import Batches, faults, read_batches
from benchmarks.cells import CELLS, DISTANT, LANE, LANE_MORE, Cell, Compaction
from benchmarks.contest import Contest
from benchmarks.peers import PEERS
from benchmarks.records import digest
from benchmarks.source_topics import filled
from eos_mirror.testing import KafkaCluster

SMALL = {
    "100B": 40_000,
    "100B-batches-16000": 40_000,
    "100B-batches-1": 500,
    "1000B": 4_000,
    "1000B-zstd": 4_000,
    "1000B-lz4": 4_000,
    "1000B-headers": 4_000,
    "10000B": 400,
    "100B-compact": 40_000,
    "100B-compacted": 40_000,
}
"""Records of each cell that fill some batches of each of two partitions."""


@pytest.fixture(scope="module")
def own_cluster(own_brokers: None) -> Iterator[KafkaCluster]:  # noqa: ARG001 (skips without)
    """Return a cluster whose log files can be read, and whose cleaner does not wait."""
    with KafkaCluster(name="cells", broker_config={"log.cleaner.backoff.ms": "100"}) as cluster:
        yield cluster


@pytest.mark.brokers
@pytest.mark.parametrize("name", SMALL)
def test_the_batches_of_a_topic_are_what_its_cell_says(
    own_cluster: KafkaCluster, name: str
) -> None:
    """The log of each cell has its codec, its batch size and its gaps."""
    cell = replace(CELLS[name], partitions=2, records=SMALL[name])

    found = filled(own_cluster, cell)

    assert found.codecs == {cell.codec}
    assert found.most_bytes <= max(cell.batch_bytes, 1_000) * 1.05
    if name == "100B-batches-1":
        assert found.most_records == 1
        assert found.count == SMALL[name]
    assert (found.gapped > 0.8) == (cell.compaction is Compaction.HALF)
    closing = 2 if cell.compaction is Compaction.HALF else 0
    assert digest(own_cluster, cell.topic)[0] == SMALL[name] + closing


@pytest.mark.brokers
def test_other_batches_than_those_of_the_cell_are_refused(own_cluster: KafkaCluster) -> None:
    """Batches of another size or codec are found by reading the log."""
    large = Cell(value_bytes=100, records=30_000, partitions=1)
    filled(own_cluster, large)
    found = read_batches(own_cluster, large.topic)

    assert not faults(found, large)
    assert faults(found, replace(large, batch_bytes=16_000))
    assert faults(found, replace(large, batch_bytes=1))
    assert faults(found, replace(large, codec="zstd"))
    assert faults(found, replace(large, compaction=Compaction.HALF))


@pytest.mark.brokers
def test_a_header_that_each_copy_must_have_is_part_of_the_digest(
    own_cluster: KafkaCluster, tmp_path: Path
) -> None:
    """The digest of a decoded cell is that of records with the added header."""
    cell = Cell(value_bytes=100, records=12_000, partitions=1, decoded=True)
    contest = Contest(source=own_cluster, target=own_cluster, folder=tmp_path)

    with contest.topics(cell, [PEERS["eos"], PEERS["mm2-eos"]]):
        count, hashes = contest.originals[cell.topic]
        plain = digest(own_cluster, cell.topic)

    assert count == plain[0]
    assert hashes != plain[1]


def test_our_own_lane_copies_a_longer_topic() -> None:
    """Only our own lane gets the longer topic, and both have the name of the cell."""
    cell = Cell(value_bytes=100, records=10, lane_times=3)

    assert cell.sized(own_lane=False) is cell
    assert cell.sized(own_lane=True).records == 30
    assert (cell.sized(own_lane=True).topic, cell.sized(own_lane=True).name) == (
        f"{cell.name}-long",
        cell.name,
    )


def test_every_cell_of_the_lane_exists() -> None:
    """The cells that the verbs name are cells."""
    assert {*LANE, *LANE_MORE, DISTANT} <= set(CELLS)


def test_a_description_names_what_matters() -> None:
    """The line of a topic says what its batches are."""
    found = Batches(
        count=7,
        records=136,
        most_records=140,
        most_bytes=16_000,
        codecs=frozenset({"none"}),
        gapped=0.5,
    )

    assert str(found) == (
        "136 records in the median batch, 16,000 bytes in the largest, none, 50% with gaps"
    )
