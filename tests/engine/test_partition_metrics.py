"""What a task measures: committed records, ages when read, latencies when committed."""

from collections.abc import Sequence
from typing import Any

from eos_mirror.core.records import RecordRun, TopicPartition
from eos_mirror.core.spread import Spread
from eos_mirror.replication.partition_metrics import (
    MEASURED,
    PARTITIONS_PER_EVENT,
    TELL_EVERY_S,
    Measures,
)
from tests.engine.stage import FakeContext

ORDERS = TopicPartition("A.orders", 3)


class Scene:
    """What a task measures with, both clocks held, and what the driver is told."""

    def __init__(self) -> None:
        self.context = FakeContext(slot=0, newest_orders={})
        self.wall_ms = 1_000_000
        self.now_s = 0.0

    def measures(self, *, wanted: bool = True) -> Measures:
        return Measures(
            self.context, wanted=wanted, wall_ms=lambda: self.wall_ms, now=lambda: self.now_s
        )

    @property
    def told(self) -> list[list[list[Any]]]:
        """The rows of each event."""
        assert {name for name, _ in self.context.events} <= {MEASURED}
        return [list(fields["partitions"]) for _, fields in self.context.events]

    @property
    def rows(self) -> list[list[Any]]:
        return [row for rows in self.told for row in rows]


def run_of(*timestamps: int, size: int = 0) -> RecordRun:
    """Records made at these times."""
    nothing: Sequence[None] = [None] * len(timestamps)
    return RecordRun(
        partition=TopicPartition("orders", 3),
        offsets=range(len(timestamps)),
        timestamps=timestamps,
        keys=nothing,
        values=nothing,
        headers=nothing,
        leader_epoch=None,
        size_bytes=size,
    )


def test_a_record_counts_when_it_is_committed() -> None:
    """Its age and its bytes count when it is read, its latency is that of the commit."""
    scene = Scene()
    measures = scene.measures()
    measures.took(ORDERS, run_of(999_000, 999_900, size=70))
    scene.now_s = TELL_EVERY_S
    measures.tell()
    scene.wall_ms += 500
    measures.committed()
    measures.took(ORDERS, run_of(1_000_400, size=30))
    scene.now_s *= 2
    measures.tell()

    ages = Spread.of([1_000, 100]).encode(), Spread.of([100]).encode()
    assert scene.rows == [
        [*ORDERS, 0, 70, ages[0], None],
        [*ORDERS, 2, 30, ages[1], Spread.of([1_500, 600]).encode()],
    ]


def test_a_record_without_a_timestamp_has_no_age() -> None:
    """It is counted all the same."""
    scene = Scene()
    measures = scene.measures()
    measures.took(ORDERS, run_of(-1, 999_000))
    measures.took(ORDERS, run_of(-1))
    measures.committed()
    scene.now_s = TELL_EVERY_S
    measures.tell()

    age = Spread.of([1_000]).encode()
    assert scene.rows == [[*ORDERS, 3, 0, age, age]]


def test_only_what_is_new_is_told_and_in_portions() -> None:
    """An idle partition costs nothing, and many partitions do not make one long line."""
    scene = Scene()
    measures = scene.measures()
    count = PARTITIONS_PER_EVENT + 1
    for number in range(count):
        measures.took(TopicPartition("A.orders", number), run_of(999_000))
    measures.committed()
    measures.tell()
    assert not scene.told, "not yet time"
    for _ in range(2):
        scene.now_s += TELL_EVERY_S
        measures.tell()

    assert [len(rows) for rows in scene.told] == [PARTITIONS_PER_EVENT, 1]


def test_nothing_is_measured_if_nobody_asks() -> None:
    """The hot loop is not slowed down for nothing."""
    scene = Scene()
    measures = scene.measures(wanted=False)
    measures.took(ORDERS, run_of(999_000))
    measures.committed()
    scene.now_s = TELL_EVERY_S
    measures.tell()

    assert not scene.told
