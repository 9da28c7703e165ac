"""Counters of a task over all its processes."""

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from eos_mirror.telemetry.metrics import COUNTERS, METRICS, Of
from eos_mirror.telemetry.registry import Totals, register_metrics

NONE = dict.fromkeys(COUNTERS, 0)


def records(totals: Totals, submission: str, count: int) -> int:
    """Add the counters of a process, and return the total of the records."""
    return totals.add(0, submission, {**NONE, "records": count})["records"]


def test_a_new_process_counts_on_from_the_totals_of_the_earlier_ones() -> None:
    """Each process begins at zero; what it counted last is kept."""
    totals = Totals()

    found = [records(totals, *one) for one in (("0.0", 7), ("0.0", 10), ("0.1", 0), ("0.1", 5))]

    assert found == [7, 10, 10, 15]


def test_a_late_report_of_an_earlier_process_is_not_counted_again() -> None:
    """Two threads ask for the totals, and one may have read the status before a restart."""
    totals = Totals()

    found = [records(totals, *one) for one in (("0.0", 10), ("0.1", 0), ("0.0", 10), ("0.1", 2))]

    assert found == [10, 10, 10, 12]


def test_a_collection_reads_once_for_all_metrics() -> None:
    """Ten thousand partitions would be read seventeen times; the next collection reads again."""
    readings: list[int] = []

    def read() -> list[tuple[dict[str, str], dict[str, int]]]:
        readings.append(len(readings))
        return [({"topic": "t"}, {metric.key: readings[-1] for metric in METRICS})]

    collector = InMemoryMetricReader()
    register_metrics(MeterProvider([collector]), {Of.PARTITION: read})
    for _ in range(2):
        collector.collect()

    assert readings == [0, 1]
