"""The crew, with a driver that refuses its configuration."""

import signal
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from eos_mirror.testing import wait_until
from tests.chaos.allowed import check_exits
from tests.chaos.crew import Crew

WITHIN = timedelta(seconds=60)


@pytest.fixture
def crew(tmp_path: Path) -> Iterator[Crew]:
    """Its driver ends at once: there is no file."""
    found = Crew(tmp_path / "none.properties", {})
    yield found
    found.close()


def test_a_driver_that_ends_is_started_again_and_noted(crew: Crew) -> None:
    """As often as it ends; an end without a cause is a complaint."""
    crew.start()
    wait_until(lambda: len(crew.exits) >= 2, within=WITHIN, what="two ends")

    assert {(end.code, end.wanted) for end in crew.exits} == {(2, None)}
    wait_until(lambda: bool(crew.errors), within=WITHIN, what="what it said")
    assert len(check_exits(crew.exits[:1], crew.errors)) == 1


def test_a_driver_that_was_killed_is_replaced_at_once(crew: Crew) -> None:
    """And its end is put down to the signal."""
    crew.start()

    assert crew.replace(signal.SIGKILL)

    wait_until(lambda: len(crew.exits) >= 2, within=WITHIN, what="two ends")
    assert [end.wanted for end in crew.exits[:2]] == [signal.SIGKILL, None]
    assert crew.exits[0].code == -signal.SIGKILL
    assert check_exits(crew.exits[:1], crew.errors) == []
