"""
Strimzi's board for MirrorMaker 2, and what docs/monitoring.md says about each of its queries.

The table of the page is read, so a promise of the page is a query that a test evaluates.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from tests.delivery.files import ROOT

PAGE: Final = ROOT / "docs" / "monitoring.md"
HEADING: Final = "## A board for MirrorMaker 2"
CLUSTER: Final = "mirror"
SELECTED: Final = f'{{strimzi_io_kind=~"KafkaMirrorMaker2",strimzi_io_cluster="{CLUSTER}"}}'
"""How the board selects the pods of one MirrorMaker 2."""

SHAPES: Final[Mapping[str, str]] = {
    "record rate": "sum({})",
    "byte rate": "sum({})",
    "group offset sync latency": "sum by (source, target, topic, partition, group) ({})",
}
USUAL_SHAPE: Final = "sum by (partition, topic) ({})"

SAME_NAME: Final = "same name"
CPU: Final = "CPU usage"
CPU_QUERY: Final = (
    'sum by (pod) (rate(process_cpu_seconds_total{namespace="mirrors",'
    f'pod=~"{CLUSTER}-mirrormaker2-.+",container="{CLUSTER}-mirrormaker2"}}[5m]))'
)
"""The only query of the board whose labels come from the pod, in the metrics reporter's flavour."""


class Row(NamedTuple):
    """A query of the board: its series in both flavours, and what the page says about it."""

    panel: str
    jmx_exporter: str
    metrics_reporter: str
    here: str


def rows() -> list[Row]:
    """Return the rows of the table."""
    _, _, rest = PAGE.read_text(encoding="utf-8").partition(HEADING)
    section, _, _ = rest.partition("\n## ")
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [Row(*(cell.strip() for cell in line.strip("|").split("|"))) for line in lines[1:]]


def promised() -> Iterator[tuple[str, str]]:
    """Yield panel and query of everything that the page promises data for."""
    for row in rows():
        if row.here.startswith(SAME_NAME):
            series = f"{_quoted(row.jmx_exporter)[0]}{SELECTED}"
            yield row.panel, SHAPES.get(row.panel, USUAL_SHAPE).format(series)
        if row.panel == CPU:
            yield row.panel, CPU_QUERY
        for text in _quoted(row.here):
            if text.startswith("process_") or "eos_mirror_" in text:
                yield row.panel, text


def missing() -> set[str]:
    """Return the series of the board that the page says do not exist."""
    return {
        name
        for row in rows()
        if not row.here.startswith(SAME_NAME) and row.panel != CPU
        for cell in (row.jmx_exporter, row.metrics_reporter)
        for name in _quoted(cell)
        if name.startswith(("kafka_", "jvm_"))
    }


def _quoted(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)
