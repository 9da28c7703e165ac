"""The nemesis with toy faults: faults in one place do not overlap, and everything is healed."""

import random
from pathlib import Path
from time import monotonic

import pytest

from eos_mirror.testing import KafkaCluster
from tests.chaos.chaos_targets import ChaosTargets, Kind
from tests.chaos.nemesis import Episode, Nemesis
from tests.chaos.restarting_driver import RestartingDriver
from tests.chaos.site import Site


@pytest.fixture
def targets(tmp_path: Path) -> ChaosTargets:
    """Return targets in which nothing runs."""
    cluster = KafkaCluster()
    site = Site(
        source=cluster,
        target=cluster,
        proxies={},
        folder=tmp_path,
        config=tmp_path / "none",
        replication=1,
    )
    return ChaosTargets(site=site, restarting=RestartingDriver(site.config, {}))


def test_faults_in_one_place_do_not_overlap(targets: ChaosTargets) -> None:
    """The next fault in a place waits until the previous one has ended."""
    inside: list[int] = []
    most: list[int] = []

    def act(targets: ChaosTargets, _: random.Random) -> bool:
        inside.append(1)
        most.append(len(inside))
        targets.hold(0.05)
        inside.pop()
        return True

    kind = Kind(name="toy", place="here", act=act)
    nemesis = Nemesis(targets, [Episode(0.0, kind, seed) for seed in range(4)])
    nemesis.rage(1.0)

    assert most == [1, 1, 1, 1]
    assert [strike.kind for strike in nemesis.strikes] == ["toy"] * 4


def test_a_fault_ends_with_the_run(targets: ChaosTargets) -> None:
    """A fault is cut short at the end of the run, and one that still waits is skipped."""

    def act(targets: ChaosTargets, _: random.Random) -> bool:
        targets.hold(60)
        return True

    kind = Kind(name="toy", place="here", act=act)
    nemesis = Nemesis(targets, [Episode(0.0, kind, 1), Episode(0.0, kind, 2)])
    began = monotonic()
    nemesis.rage(0.2)

    assert monotonic() - began < 10
    assert len(nemesis.strikes) == 1
    assert nemesis.missed == ["toy"]


def test_a_fault_that_fails_is_reported(targets: ChaosTargets) -> None:
    """A nemesis that could not do its work makes the run fail."""

    def act(_: ChaosTargets, __: random.Random) -> bool:
        raise OSError("no such process")

    nemesis = Nemesis(targets, [Episode(0.0, Kind(name="toy", place="here", act=act), 1)])
    nemesis.rage(0.1)

    assert nemesis.strikes[0].problem == "OSError: no such process"
    assert nemesis.strikes[0].ended >= nemesis.strikes[0].began
