"""The names of our metrics in Prometheus, and the names that a query uses."""

import re
from collections.abc import Mapping
from typing import Final

from eos_mirror.telemetry.metrics import METRICS, NEW, Kind, Metric

UNITS: Final = {"ms": "milliseconds", "s": "seconds", "By": "bytes"}
"""What Prometheus's exporter appends to a name for a unit of OpenTelemetry."""

BY_KEY: Final[Mapping[str, Metric]] = {
    metric.key: metric for metric in METRICS if not metric.name.startswith(NEW)
}
NEW_BY_KEY: Final[Mapping[str, Metric]] = {
    metric.key: metric for metric in METRICS if metric.name.startswith(NEW)
}
"""The same metrics of MirrorMaker 2 under the names of Kafka 4.3."""


def series_of(metric: Metric) -> str:
    """Return the name of a metric as Prometheus's exporter writes it."""
    name = re.sub(r"\W", "_", metric.name)
    unit = UNITS.get(metric.unit, "")
    if unit and not name.endswith(unit):
        name = f"{name}_{unit}"
    return f"{name}_total" if metric.kind is Kind.COUNTER else name


ALL: Final = frozenset(map(series_of, METRICS))
"""The names of all our series."""


def named_in(query: str) -> set[str]:
    """Return the series that a query names, ours and those of Kafka Connect."""
    return set(re.findall(r"\b(?:eos_mirror|kafka)_\w+", query))
