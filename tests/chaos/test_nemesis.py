"""The nemesis itself, with toy faults: places are respected, and everything is healed."""

import random
from pathlib import Path
from time import monotonic

import pytest

from eos_mirror.testing import KafkaCluster
from tests.chaos.arena import Arena, Kind
from tests.chaos.crew import Crew
from tests.chaos.nemesis import Episode, Nemesis
from tests.chaos.site import Site


@pytest.fixture
def arena(tmp_path: Path) -> Arena:
    """Nothing in it runs."""
    cluster = KafkaCluster()
    site = Site(
        source=cluster,
        target=cluster,
        proxies={},
        folder=tmp_path,
        config=tmp_path / "none",
        replication=1,
    )
    return Arena(site=site, crew=Crew(site.config, {}))


def test_faults_in_one_place_do_not_overlap(arena: Arena) -> None:
    """The second waits for the first."""
    inside: list[int] = []
    most: list[int] = []

    def act(arena: Arena, _: random.Random) -> bool:
        inside.append(1)
        most.append(len(inside))
        arena.hold(0.05)
        inside.pop()
        return True

    kind = Kind(name="toy", place="here", act=act)
    nemesis = Nemesis(arena, [Episode(0.0, kind, seed) for seed in range(4)])
    nemesis.rage(1.0)

    assert most == [1, 1, 1, 1]
    assert [strike.kind for strike in nemesis.strikes] == ["toy"] * 4


def test_a_fault_ends_with_the_run(arena: Arena) -> None:
    """However long it wanted to last; what waits for its place is left out."""

    def act(arena: Arena, _: random.Random) -> bool:
        arena.hold(60)
        return True

    kind = Kind(name="toy", place="here", act=act)
    nemesis = Nemesis(arena, [Episode(0.0, kind, 1), Episode(0.0, kind, 2)])
    began = monotonic()
    nemesis.rage(0.2)

    assert monotonic() - began < 10
    assert len(nemesis.strikes) == 1
    assert nemesis.missed == ["toy"]


def test_a_fault_that_fails_is_told(arena: Arena) -> None:
    """A nemesis that could not do its work makes the run fail."""

    def act(_: Arena, __: random.Random) -> bool:
        raise OSError("no such process")

    nemesis = Nemesis(arena, [Episode(0.0, Kind(name="toy", place="here", act=act), 1)])
    nemesis.rage(0.1)

    assert nemesis.strikes[0].problem == "OSError: no such process"
    assert nemesis.strikes[0].ended >= nemesis.strikes[0].began
