"""The nemesis in the test suite: short runs that must hold, and broken ones that must fail."""

import os
from pathlib import Path

import pytest

from tests.chaos.session import AT_LEAST_ONCE, Options, run

MINUTES = float(os.environ.get("EOS_MIRROR_CHAOS_MINUTES", "4"))
"""How long the nemesis causes faults."""
REPEATING_MINUTES = 1.0
CATCH_MINUTES = 0.6
AROUND_S = 420
"""Time for start, drain and checks on a busy machine."""

pytestmark = [pytest.mark.brokers, pytest.mark.long, pytest.mark.usefixtures("own_brokers")]


@pytest.mark.timeout(MINUTES * 60 + AROUND_S)
def test_exactly_once_holds_under_the_nemesis(tmp_path: Path) -> None:
    """Every check passes after the faults that the seed plans."""
    report = run(Options(seed=1, minutes=MINUTES), tmp_path)

    assert report.holds, str(report)
    assert report.faults.total() >= 5 * MINUTES, str(report)


@pytest.mark.timeout(REPEATING_MINUTES * 60 + AROUND_S)
def test_at_least_once_loses_nothing_under_the_nemesis(tmp_path: Path) -> None:
    """Every record arrives, in order, with no more duplicates than the crashes explain."""
    report = run(Options(seed=3, minutes=REPEATING_MINUTES, mode=AT_LEAST_ONCE), tmp_path)

    assert report.holds, str(report)
    assert report.faults.total() >= 5 * REPEATING_MINUTES, str(report)


@pytest.mark.timeout(CATCH_MINUTES * 60 + AROUND_S)
@pytest.mark.parametrize(("broken", "seed"), [("naive", 5), ("stable-only", 7)])
def test_a_broken_engine_is_caught(tmp_path: Path, broken: str, seed: int) -> None:
    """
    KIP-656 as drafted duplicates the records of a paused task, and the checks find them.

    These seeds pause it for long.
    """
    options = Options(
        seed=seed, minutes=CATCH_MINUTES, broken=broken, replication=1, kinds=("task.point",)
    )
    report = run(options, tmp_path)

    assert report.complaints["sequence"], str(report)
    assert report.caught_after_s is not None, str(report)
