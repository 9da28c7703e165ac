"""What `verify --watch` prints of one proof after the other."""

from types import SimpleNamespace
from typing import cast

import pytest

from eos_mirror.cli.verify_watch import Lines
from eos_mirror.operate.verify_report import Report


def report(matched: int, *differences: str) -> Report:
    """Return a report of one topic."""
    details = [f"orders -> A.orders: {matched} records match", *differences]
    verdict = f"A->B: {matched} records match, {len(differences)} differences"
    found = SimpleNamespace(lines=lambda: [*details, verdict], holds=not differences)
    return cast("Report", found)


def test_a_difference_is_printed_once_although_more_records_match(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Every round has its line; the details come when they change, and again after a repair."""
    one, other = "  missing: orders-0 offset 4", "  foreign: orders-1 offset 7"
    lines = Lines()
    for found in (
        report(10),
        report(20, one),
        report(30, one),
        report(40, one, other),
        report(50),
        report(60, one),
    ):
        lines.tell(found)

    printed = [line.partition(" UTC ")[2] or line for line in capsys.readouterr().out.splitlines()]
    assert [line for line in printed if line in {one, other}] == [one, one, other, one]
    assert sum("differences" in line for line in printed) == 6
