"""Registers metrics with OpenTelemetry, and sums counters over all processes of a task."""

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation

from eos_mirror.telemetry.metrics import METRICS, Kind, Metric, Of


class Totals:
    """Sums counters of task slots over all their processes. Any thread may call."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._before: dict[int, dict[str, int]] = {}
        self._last: dict[int, tuple[object, dict[str, int]]] = {}
        self._over: dict[int, set[object]] = {}

    def add(self, slot: int, submission: object, counters: Mapping[str, int]) -> dict[str, int]:
        """
        Store the newest counters of a slot; return its totals.

        Args:
            submission: Submission of the process that counted. A late report of an earlier process
                changes nothing.
            counters: They start at zero with each process; an absent one is zero.
        """
        with self._lock:
            return self._add(slot, submission, dict(counters))

    def _add(self, slot: int, submission: object, now: dict[str, int]) -> dict[str, int]:
        known, last = self._last.get(slot, (submission, {}))
        before = self._before.setdefault(slot, {})
        over = self._over.setdefault(slot, set())
        if submission in over:
            submission, now = known, last
        elif known != submission:
            over.add(known)
            for name, value in last.items():
                before[name] = before.get(name, 0) + value
        self._last[slot] = (submission, now)
        return {name: before.get(name, 0) + now.get(name, 0) for name in (*before, *now)}


Reader = Callable[[], Iterable[tuple[Mapping[str, str], Mapping[str, Any]]]]
"""Returns current attributes and values by `Metric.key`; a missing value is not exported."""


class _OneReading:
    """
    Reads when the first metric of a kind asks, and gives the others the same rows.

    A collection asks for the metrics in the order in which they were registered. Thousands of
    partitions are read once in a collection, not once for each metric.
    """

    def __init__(self, read: Reader) -> None:
        self._read = read
        self._rows: list[tuple[Mapping[str, str], Mapping[str, Any]]] | None = None

    def rows(self, *, is_first: bool) -> Iterable[tuple[Mapping[str, str], Mapping[str, Any]]]:
        if is_first or self._rows is None:
            self._rows = list(self._read())
        return self._rows


def register_metrics(provider: MeterProvider, readers: Mapping[Of, Reader]) -> None:
    """Create the instruments that have a reader; values are read when an exporter asks."""
    meter = provider.get_meter("eos_mirror")
    readings = {of: _OneReading(read) for of, read in readers.items()}
    first = {metric.of: metric.key for metric in reversed(METRICS)}
    for metric in METRICS:
        if metric.of not in readers:
            continue

        def observe(
            _: CallbackOptions, metric: Metric = metric, of: _OneReading = readings[metric.of]
        ) -> Iterable[Observation]:
            return [
                Observation(values[metric.key], dict(attributes))
                for attributes, values in of.rows(is_first=metric.key == first[metric.of])
                if metric.key in values
            ]

        create = (
            meter.create_observable_counter
            if metric.kind is Kind.COUNTER
            else meter.create_observable_gauge
        )
        create(metric.name, callbacks=[observe], unit=metric.unit, description=metric.text)
