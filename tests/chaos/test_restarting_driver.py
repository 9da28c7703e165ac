"""RestartingDriver, with a driver that refuses its configuration."""

import signal
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from eos_mirror.testing import wait_until
from tests.chaos.allowed import check_exits
from tests.chaos.restarting_driver import RestartingDriver

WITHIN = timedelta(seconds=60)


@pytest.fixture
def restarting(tmp_path: Path) -> Iterator[RestartingDriver]:
    """Return one whose driver exits immediately, because there is no configuration."""
    found = RestartingDriver(tmp_path / "none.properties", {})
    yield found
    found.close()


def test_a_driver_that_ends_is_started_again_and_noted(restarting: RestartingDriver) -> None:
    """Every exit starts the driver again, and an exit without a cause is a complaint."""
    restarting.start()
    wait_until(lambda: len(restarting.exits) >= 2, within=WITHIN, what="two ends")

    assert {(end.code, end.wanted) for end in restarting.exits} == {(2, None)}
    wait_until(lambda: bool(restarting.errors), within=WITHIN, what="its output")
    assert len(check_exits(restarting.exits[:1], restarting.errors)) == 1


def test_a_driver_that_was_killed_is_replaced_at_once(restarting: RestartingDriver) -> None:
    """A killed driver is replaced immediately, and its exit is attributed to the signal."""
    restarting.start()

    assert restarting.replace(signal.SIGKILL)

    wait_until(lambda: len(restarting.exits) >= 2, within=WITHIN, what="two ends")
    assert [end.wanted for end in restarting.exits[:2]] == [signal.SIGKILL, None]
    assert restarting.exits[0].code == -signal.SIGKILL
    assert check_exits(restarting.exits[:1], restarting.errors) == []
