"""The table of what the model found, at the end of a run."""

import pytest

from tests.model.fencing_model import HEAD

ROWS = pytest.StashKey[list[str]]()


@pytest.fixture
def table(request: pytest.FixtureRequest) -> list[str]:
    """Lines to print."""
    return request.config.stash.setdefault(ROWS, [])


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Print the lines."""
    rows = config.stash.get(ROWS, [])
    if rows:
        terminalreporter.section("the fencing protocol in every interleaving")
        for line in (HEAD, *rows):
            terminalreporter.write_line(line)
