"""Every takeover ends as expected: the commands are safe, and each of their steps is needed."""

import pytest

from tests.model.takeover import explore
from tests.model.takeover_variants import VARIANTS


@pytest.mark.parametrize("name", VARIANTS)
def test_a_takeover_ends_as_expected(name: str) -> None:
    """A safe one has no bad schedule within its bounds; a mutant has one, and it is found."""
    finding = explore(VARIANTS[name])
    assert finding.result == VARIANTS[name].expect, "\n".join(finding.trace)


def test_a_safe_takeover_can_end() -> None:
    """A command that never gets anywhere would be safe, too."""
    safe = [name for name, variant in VARIANTS.items() if variant.expect == "safe"]
    assert safe
    assert all(explore(VARIANTS[name]).completed for name in safe)


def test_what_is_called_a_mutant_does_harm() -> None:
    """Each leaves out or moves one step, or breaks one rule."""
    mutants = {name for name in VARIANTS if name.startswith("mut-")}
    assert {VARIANTS[name].expect for name in mutants} == {"violation"}


def test_a_violation_is_explained_from_the_start() -> None:
    """The trace has every step, and what was wrong."""
    trace = explore(VARIANTS["mut-adopt-from-stored"]).trace
    assert "MirrorMaker 2 writes" in trace
    assert "our task reads its position" in trace
    assert trace[-1].startswith("the copy has [")
