"""Fixtures for the tests of the command line."""

from collections.abc import Iterator

import pytest

from tests.cli.pseudo_terminal import PseudoTerminal, pseudo_terminal


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Iterator[PseudoTerminal]:
    """A terminal with colours."""
    with pseudo_terminal(monkeypatch) as opened:
        yield opened
