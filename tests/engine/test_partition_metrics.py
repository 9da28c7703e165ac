"""What a task measures: committed records, ages when read, latencies when committed."""

from collections.abc import Sequence

from eos_mirror.core.messages import PartitionMetrics
from eos_mirror.core.records import DecodedRun, TopicPartition
from eos_mirror.core.spread import Spread
from eos_mirror.replication.partition_metrics import (
    PARTITIONS_PER_REPORT,
    REPORT_EVERY_S,
    PartitionMeter,
)

ORDERS = TopicPartition("A.orders", 3)


class Scene:
    """A meter with two fixed clocks, and the metrics that it returned for reports."""

    def __init__(self, *, wanted: bool = True) -> None:
        self.wall_ms = 1_000_000
        self.now_s = 0.0
        self.parts: list[tuple[PartitionMetrics, ...]] = []
        self.meter = PartitionMeter(
            wanted=wanted, wall_ms=lambda: self.wall_ms, now=lambda: self.now_s
        )

    def report(self) -> None:
        """Collect the metrics that are due."""
        self.parts += self.meter.due()

    @property
    def rows(self) -> list[PartitionMetrics]:
        """The rows of all reports."""
        return [one for part in self.parts for one in part]


def metrics(
    *, records: int, size: int, age: Spread | None, latency: Spread | None
) -> PartitionMetrics:
    """Return metrics of the one partition."""
    return PartitionMetrics(partition=ORDERS, records=records, bytes=size, age=age, latency=latency)


def run_of(*timestamps: int, size: int = 0) -> DecodedRun:
    """Return records with these timestamps."""
    nothing: Sequence[None] = [None] * len(timestamps)
    return DecodedRun(
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
    """Age and bytes count when a record is read; count and latency when it is committed."""
    scene = Scene()
    measures = scene.meter
    measures.took(ORDERS, run_of(999_000, 999_900, size=70))
    scene.now_s = REPORT_EVERY_S
    scene.report()
    scene.wall_ms += 500
    measures.committed()
    measures.took(ORDERS, run_of(1_000_400, size=30))
    scene.now_s *= 2
    scene.report()

    latency = Spread.of([1_500, 600])
    assert scene.rows == [
        metrics(records=0, size=70, age=Spread.of([1_000, 100]), latency=None),
        metrics(records=2, size=30, age=Spread.of([100]), latency=latency),
    ]


def test_a_record_without_a_timestamp_has_no_age() -> None:
    """A record without a timestamp is counted, but it has no age."""
    scene = Scene()
    measures = scene.meter
    measures.took(ORDERS, run_of(-1, 999_000))
    measures.took(ORDERS, run_of(-1))
    measures.committed()
    scene.now_s = REPORT_EVERY_S
    scene.report()

    age = Spread.of([1_000])
    assert scene.rows == [metrics(records=3, size=0, age=age, latency=age)]


def test_only_what_is_new_is_told_and_in_portions() -> None:
    """Idle partitions are not reported, and many partitions are split over several reports."""
    scene = Scene()
    measures = scene.meter
    count = PARTITIONS_PER_REPORT + 1
    for number in range(count):
        measures.took(TopicPartition("A.orders", number), run_of(999_000))
    measures.committed()
    scene.report()
    assert not scene.parts, "not yet time"
    for _ in range(2):
        scene.now_s += REPORT_EVERY_S
        scene.report()

    assert [len(rows) for rows in scene.parts] == [PARTITIONS_PER_REPORT, 1]


def test_nothing_is_measured_if_nobody_asks() -> None:
    """The hot loop measures nothing unless metrics are wanted."""
    scene = Scene(wanted=False)
    measures = scene.meter
    measures.took(ORDERS, run_of(999_000))
    measures.committed()
    scene.now_s = REPORT_EVERY_S
    scene.report()

    assert not scene.parts
