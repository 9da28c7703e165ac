"""
A message handler makes none, one or several copies of each record.

The oracle checks at every step that the copies are those of each record, once and in order, and
that the offset map leads to the first copy and back.
"""

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import pytest

from eos_mirror.core.messages import Throttle
from eos_mirror.core.throttles import Limit
from tests.engine.checked_scenario import CheckedScenario
from tests.engine.gate import Fate
from tests.engine.message_handlers import Failing, Varied, spec_of
from tests.engine.random_refusals import Target, assert_no_process_ended, produce
from tests.engine.stage import FLOW

pytestmark = pytest.mark.usefixtures("one_core")

SEEDS: Final = range(100)
ROUNDS, STEPS = 6, 40
FATES: Final = (Fate.GO, Fate.GO, Fate.NOT_SENT, Fate.TWICE_CUT, Fate.DELAYED)


@pytest.fixture
def scenario(request: pytest.FixtureRequest) -> Iterator[CheckedScenario]:
    """Exactly once, one or two tasks, a handler and a quarantine."""
    handler, seed = request.param
    made = CheckedScenario(
        slots=1 + seed % 2, quarantine=FLOW.quarantine_topic, handler=spec_of(handler)
    )
    yield made
    made.close()


def play(scenario: CheckedScenario, seed: int) -> None:
    """Kill tasks and lose requests while the target changes what it accepts; then drain."""
    dice = random.Random(seed)
    stage, target = scenario.stage, Target(scenario.stage, dice)
    for slot in scenario.slots:
        scenario.start(slot)
    for _ in range(ROUNDS):
        produce(stage, target, dice)
        if dice.random() < 0.5:
            target.change()
        if dice.random() < 0.5:
            throttle(scenario, dice.choice((None, Limit(records_per_s=8))))
        for process in stage.alive():
            scenario.step(process, dice.randrange(STEPS), dice.choice(FATES))
            if dice.random() < 0.15:
                scenario.crash(process)
                scenario.start(process.slot)
    scenario.drain()


def throttle(scenario: CheckedScenario, limit: Limit | None) -> None:
    """Limit how fast the tasks mirror; runs are cut then."""
    shares = (limit,) * len(scenario.slots) if limit else ()
    throttles = (Throttle(topic=None, shares=shares),) if shares else ()
    scenario.stage.order(replace(scenario.stage.orders, throttles=throttles))


@pytest.mark.parametrize(
    ("scenario", "seed"), [((Varied, s), s) for s in SEEDS], indirect=["scenario"]
)
def test_copies_are_mirrored_once_or_quarantined_together(
    scenario: CheckedScenario, seed: int
) -> None:
    """If the target refuses one copy of a record, all of them are in the quarantine."""
    play(scenario, seed)


def test_a_record_that_the_handler_refuses_is_quarantined_as_it_is() -> None:
    """The others are copied, without a restart."""
    scenario = CheckedScenario(slots=1, quarantine=FLOW.quarantine_topic, handler=spec_of(Failing))
    stage, partition = scenario.stage, scenario.stage.partitions[0]
    process = scenario.start(0)
    for _ in range(30):
        stage.produce(partition)
    scenario.drain()
    found = scenario.oracle.quarantined(partition)
    scenario.close()

    assert sorted(found) == [3, 10, 17, 24]
    assert {one.code for some in found.values() for one in some} == {"MESSAGE_HANDLER"}
    assert found[3][0].reason == "ValueError: number 3"
    assert_no_process_ended([process])
