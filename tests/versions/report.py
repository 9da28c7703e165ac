"""Counts of test runs, from the XML that pytest writes, and the table of them."""

import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

PROTOCOL = "protocol"
"""Property of the test that sees what the lane sends."""

HEADER = """\
| Kafka | protocol | passed | failed | skipped | seconds |
|---|---|---|---|---|---|"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """
    The outcome of a test run.

    Attributes:
        name: The releases.
        protocol: What the lane spoke; empty if no test saw it.
        failed: Tests, or why the run did not end as it should.
    """

    name: str
    protocol: str = ""
    passed: int = 0
    failed: Sequence[str] = ()
    skipped: int = 0
    seconds: float

    def __str__(self) -> str:
        counts = f"{self.passed} | {len(self.failed)} | {self.skipped} | {self.seconds:.0f}"
        return f"| {self.name} | {self.protocol or 'unknown'} | {counts} |"


def row_of(name: str, xml: str, *, seconds: float) -> Row:
    """Return the row of a run from its JUnit XML. Errors count as failures."""
    cases = list(ET.fromstring(xml).iter("testcase"))  # noqa: S314 (pytest wrote it)
    failed = [case.get("name", "") for case in cases if _has(case, "failure", "error")]
    skipped = sum(_has(case, "skipped") for case in cases)
    properties = [one for case in cases for one in case.iter("property")]
    spoken = [one.get("value", "") for one in properties if one.get("name") == PROTOCOL]
    return Row(
        name=name,
        protocol=next(iter(spoken), ""),
        passed=len(cases) - len(failed) - skipped,
        failed=failed,
        skipped=skipped,
        seconds=seconds,
    )


def table_of(rows: Iterable[Row]) -> str:
    """Return the Markdown table, and below it the tests that failed."""
    rows = list(rows)
    failed = [f"- {row.name}: `{name}` failed" for row in rows for name in row.failed]
    return "\n".join([HEADER, *map(str, rows), *(["", *failed] if failed else [])]) + "\n"


def _has(case: ET.Element, *kinds: str) -> bool:
    return any(case.find(kind) is not None for kind in kinds)
