"""A run writes by which paths it has written records, and everybody can read it."""

import pytest

from eos_mirror.core.paths_report import PathsReport, decode_paths

REPORT = PathsReport(run="driver|now|h|1|v|f", passed=90, decoded={"changed": 7, "small": 3})


def test_a_report_is_read_as_it_was_written() -> None:
    """All numbers are there, and the text is short enough for the metadata of an offset."""
    assert decode_paths(REPORT.encode()) == REPORT
    assert REPORT.records == 100
    assert len(REPORT.encode()) < 200


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "{}",
        '{"version":2,"run":"r","passed":1,"decoded":{}}',
        '{"version":1,"run":"r","passed":"many","decoded":{}}',
        '{"version":1,"run":"r","passed":1,"decoded":[]}',
    ],
)
def test_another_text_is_no_report(text: str) -> None:
    """Another program or release wrote it."""
    assert decode_paths(text) is None
