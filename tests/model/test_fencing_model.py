"""Every design and every mutant of the fencing protocol ends as expected."""

import os
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.model import fencing_model
from tests.model.explorer import explore
from tests.model.lane_variants import ACQUISITION, LANES, TRANSACTION, TV1, TV2
from tests.model.table import VARIANTS
from tests.model.variants import ENGINE, LIGHT_STEP, Request

FULL = os.environ.get("EOS_MIRROR_MODEL") == "full"
"""EOS_MIRROR_MODEL=full: also the slow ones, ten minutes instead of three."""

SLOW_TIMEOUT_S = 1800
TITLE = f"the fencing protocol in every interleaving\n{fencing_model.HEAD}"

CHOSEN = [
    pytest.param(name, marks=[pytest.mark.long] * (variant.expect != "violation"))
    for name, variant in VARIANTS.items()
    if FULL or not variant.slow
]
"""A violation ends the search; without one, the search visits every schedule."""


@pytest.mark.timeout(SLOW_TIMEOUT_S)
@pytest.mark.parametrize("name", CHOSEN)
def test_a_variant_ends_as_expected(name: str, note_row: Callable[[str, str], None]) -> None:
    """A safe design has no bad schedule within its bounds; a mutant has one, and it is found."""
    started = time.monotonic()
    finding = explore(VARIANTS[name])
    took_s = time.monotonic() - started
    note_row(TITLE, fencing_model.row(name, VARIANTS[name], finding, took_s))

    assert finding.result == VARIANTS[name].expect, "\n".join(finding.trace)


def test_every_mutant_is_expected_to_be_caught() -> None:
    """Every mutant must cause a violation; a variant that does no harm is not called a mutant."""
    mutants = {name for name in VARIANTS if name.startswith("mut-")}

    assert {VARIANTS[name].expect for name in mutants} == {"violation"}
    assert not any(VARIANTS[name].slow for name in mutants), "a default run skips no mutant"
    spare = {name: VARIANTS[name] for name in VARIANTS if name.startswith("spare-")}
    assert "violation" not in {variant.expect for variant in (ENGINE | LANES | spare).values()}


def test_a_violation_is_explained_from_the_start() -> None:
    """A finding shows the whole schedule, the misfortune included."""
    finding = explore(VARIANTS["mut-unknown-commit-resend"])

    assert finding.violation == "partition 0: committed records in log order = [0, 0]"
    assert finding.trace[0] == "T0 idle: assigned [0]"
    assert any("unanswered" in label for label in finding.trace)
    assert finding.trace[-1] == "EndTxn(commit) is decided"


def test_the_light_step_meets_late_duplicates_of_the_previous_incarnation() -> None:
    """The light step is safe although late duplicates arrive, which do harm without it."""
    cured = explore(LIGHT_STEP)
    healthy = explore(replace(LIGHT_STEP, late=0))
    ignored = explore(replace(LIGHT_STEP, guard=False))

    assert (cured.result, healthy.result, ignored.result) == ("safe", "safe", "violation")
    assert cured.states > healthy.states
    assert any("late EndTxn" in label for label in ignored.trace)


@pytest.mark.parametrize("tv2", [False, True])
@pytest.mark.parametrize("kind", [*ACQUISITION, *TRANSACTION])
def test_each_request_of_the_lane_may_be_late(kind: Request, tv2: bool) -> None:
    """Every kind of request is left without an answer, arrives late, and changes something."""
    small = replace(TV2 if tv2 else TV1, records=1, gives_up=(kind,))
    on_time = explore(replace(small, late=0))
    late = explore(small)

    assert (on_time.result, late.result) == ("safe", "safe")
    sent = not (tv2 and kind in ("AddPartitions", "AddOffsets"))
    assert (late.states > on_time.states) == sent


def test_the_table_fails_when_a_variant_ends_otherwise(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit code of the program says whether every row is as expected."""
    name = "kip656-naive"
    assert fencing_model.main([name, "-v"]) == 0
    assert "source: session of T0 expires, 0 -> T1" in capsys.readouterr().out

    monkeypatch.setitem(VARIANTS, name, replace(VARIANTS[name], expect="safe"))
    assert fencing_model.main([name]) == 1
    assert "UNEXPECTED" in capsys.readouterr().out
    assert fencing_model.main(["no-such-variant"]) == 2
