"""The figures and the plan of the nemesis, with sums that can be checked by hand."""

import os
import signal
from collections import Counter
from pathlib import Path

import pytest

from eos_mirror.testing.entry import pause_points
from tests.chaos import measures
from tests.chaos.nemesis import Strike, plan
from tests.chaos.report import Report


def strike(began: float, ended: float) -> Strike:
    """Return a fault."""
    return Strike(kind="task.kill", began=began, ended=ended)


def test_a_percentile_is_one_of_the_values() -> None:
    """A percentile uses the nearest rank; there is none without values."""
    assert measures.percentile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert measures.percentile(range(100), 0.99) == 98
    assert measures.percentile([], 0.5) is None


def test_recovery_counts_from_the_fault_to_the_next_record() -> None:
    """The longest silence of any partition counts, if it overlaps the fault."""
    quick, slow = [0.0, 0.9, 1.1, 1.2, 9.0], [0.0, 0.9, 4.0, 4.1]

    assert measures.recovery_s(strike(1.0, 1.0), [quick, slow]) == pytest.approx(7.8)
    assert measures.recovery_s(strike(1.0, 1.0), [quick[:4], slow]) == pytest.approx(3.0)
    assert measures.recovery_s(strike(99.0, 99.0), [quick, slow]) is None


def test_a_stall_is_weighed_by_its_length() -> None:
    """Half of the time within one silence of ten seconds is spent waiting longer than five."""
    assert measures.stall_s([[0.0, 10.0]], 0.5) == pytest.approx(5.0)
    assert measures.stall_s([[0.0, 10.0, 20.0]], 0.9) == pytest.approx(9.0)
    assert measures.stall_s([[n / 10 for n in range(1_000)]], 0.99) == pytest.approx(0.099)
    assert measures.stall_s([], 0.99) is None


def test_the_first_repetition_is_found() -> None:
    """The earliest repetition over all partitions counts."""
    seen = [[(1.0, 1), (2.0, 2), (3.0, 1)], [(1.5, 7), (2.5, 7)]]

    assert measures.first_repeated(seen) == 2.5
    assert measures.first_repeated([[(1.0, 1)], [(2.0, 1)]]) is None


@pytest.mark.parametrize("runtime", ["local", "spark"])
def test_a_plan_is_the_same_for_the_same_seed(runtime: str) -> None:
    """The same seed plans the same faults, and another seed plans others."""
    assert plan(7, seconds=60, runtime=runtime) == plan(7, seconds=60, runtime=runtime)
    assert plan(7, seconds=60, runtime=runtime) != plan(8, seconds=60, runtime=runtime)


def test_a_plan_has_ten_faults_a_minute_and_windows_without_any() -> None:
    """A long plan has every kind of fault, and a quarter of its windows have none."""
    episodes = plan(1, seconds=3600, runtime="local")

    windows = {int(episode.at_s // 10) for episode in episodes}
    assert len(episodes) > 600
    assert len(windows) == 270
    assert len({episode.kind.name for episode in episodes}) == 24
    assert {e.kind.name for e in plan(1, seconds=600, runtime="local", names=["net.cut"])} == {
        "net.cut"
    }


def test_a_report_without_verdicts_does_not_hold() -> None:
    """A run that checked nothing proves nothing."""
    report = Report(
        title={"seed": 1},
        faults=Counter(),
        figures={},
        recovery_s={},
        complaints={},
        caught_after_s=None,
    )

    assert not report.holds


def test_a_task_stops_at_a_point_as_often_as_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`point@PATH` stops the task whenever the file exists, and removes the file."""
    stops: list[int] = []
    monkeypatch.setattr(os, "kill", lambda _, number: stops.append(number))
    flag = tmp_path / "stop"
    reached = pause_points(f"flushed@{flag},begun@{tmp_path / 'other'}", submission="0.7")

    reached("flushed")
    assert not stops
    for _ in range(2):
        flag.touch()
        reached("begun")
        reached("flushed")
        reached("flushed")

    assert stops == [signal.SIGSTOP] * 2
    assert not flag.exists()
