"""Fixtures for all tests, and the tables that some tests print."""

from collections import defaultdict
from collections.abc import Callable

import hypothesis
import pytest

pytest_plugins = ["eos_mirror.testing.pytest_plugin"]

hypothesis.settings.register_profile("patient", deadline=None)
hypothesis.settings.load_profile("patient")  # a wall time is no property

LONGEST_FIRST = (
    "tests/chaos/test_chaos.py",
    "tests/model/test_fencing_model.py",
    "tests/mirror/test_matrix_brokers.py",
    "tests/mirror/test_matrix_spark.py",
    "tests/mirror/test_verbs_local.py",
    "tests/mirror/test_verbs_spark.py",
    "tests/wire/test_faults_on_brokers.py",
    "tests/mirror/test_replay.py",
    "tests/mirror/test_situations.py",
    "tests/mirror/test_situations_of_clusters.py",
    "tests/mirror/test_hand_over.py",
    "tests/mirror/test_refused_logins.py",
    "tests/engine/test_state_machine.py",
    "tests/demo/test_demo_run.py",
    "tests/test_architecture.py",
    "tests/test_lint.py",
)
"""Files that take long: if a worker ran one of them last, the other workers would wait for it."""

IN_A_TABLE = "in the table: "


@pytest.fixture
def note_row(record_property: Callable[[str, object], None]) -> Callable[[str, str], None]:
    """
    Return a function that adds a line to the table with this title.

    Tables are printed at the end of the run. A second line of the title names the columns.
    """
    return lambda title, line: record_property(IN_A_TABLE + title, line)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the slowest files first, and the others in the order of their names."""
    rank = {name: number for number, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: rank.get(item.nodeid.partition("::")[0], len(rank)))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the tables, also those of tests that ran in worker processes."""
    tables: defaultdict[str, list[object]] = defaultdict(list)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport) and report.when == "call":
                for name, line in report.user_properties:
                    if name.startswith(IN_A_TABLE):
                        tables[name.removeprefix(IN_A_TABLE)].append(line)
    for title, lines in sorted(tables.items()):
        name, *columns = title.splitlines()
        terminalreporter.section(name)
        for line in (*columns, *lines):
            terminalreporter.write_line(str(line))
