"""Registers metrics with OpenTelemetry, and sums counters over all processes of a task."""

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation

from eos_mirror.telemetry.metrics import COUNTERS, METRICS, Kind, Of


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
            counters: Every one of `COUNTERS`; they start at zero with each process.
        """
        with self._lock:
            return self._add(slot, submission, dict(counters))

    def _add(self, slot: int, submission: object, now: dict[str, int]) -> dict[str, int]:
        known, last = self._last.get(slot, (submission, dict.fromkeys(COUNTERS, 0)))
        before = self._before.setdefault(slot, dict.fromkeys(COUNTERS, 0))
        over = self._over.setdefault(slot, set())
        if submission in over:
            submission, now = known, last
        elif known != submission:
            over.add(known)
            for name in COUNTERS:
                before[name] += last[name]
        self._last[slot] = (submission, now)
        return {name: before[name] + now[name] for name in COUNTERS}


Reader = Callable[[], Iterable[tuple[Mapping[str, str], Mapping[str, Any]]]]
"""Returns current attributes and values by `Metric.key`; a missing value is not exported."""


def register_metrics(provider: MeterProvider, readers: Mapping[Of, Reader]) -> None:
    """Create the instruments that have a reader; values are read when an exporter asks."""
    meter = provider.get_meter("eos_mirror")
    for metric in METRICS:
        if metric.of not in readers:
            continue

        def observe(
            _: CallbackOptions, key: str = metric.key, read: Reader = readers[metric.of]
        ) -> Iterable[Observation]:
            return [
                Observation(values[key], dict(attributes))
                for attributes, values in read()
                if key in values
            ]

        create = (
            meter.create_observable_counter
            if metric.kind is Kind.COUNTER
            else meter.create_observable_gauge
        )
        create(metric.name, callbacks=[observe], unit=metric.unit, description=metric.text)
