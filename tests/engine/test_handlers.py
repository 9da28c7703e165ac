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
from eos_mirror.core.topic_limits import TopicLimits
from tests.engine.checked_scenario import CheckedScenario
from tests.engine.gate import Fate
from tests.engine.message_handlers import Failing, Large, Varied, spec_of
from tests.engine.random_refusals import Target, assert_no_process_ended, produce
from tests.engine.stage import FLOW, Stage, remote_of

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


def test_copies_are_not_separated_by_a_quarantine_that_takes_some_of_them() -> None:
    """The partition stops: neither topic would have the large copy."""
    queue = FLOW.quarantine_topic
    scenario = CheckedScenario(slots=1, quarantine=queue, handler=spec_of(Large))
    stage, partition = scenario.stage, scenario.stage.partitions[0]
    for topic, limit in ((remote_of(partition).topic, 110), (queue, 850_000)):
        stage.target.limits[topic] = TopicLimits(max_message_bytes=limit)
    process = scenario.start(0)
    stage.produce(partition)
    for _ in range(200):
        scenario.step(process)
        stage.clock.advance(0.01)
    scenario.close()

    assert scenario.oracle.quarantined(partition) == {}
    reasons = [str(fields["reason"]) for fields in process.events("partition.stopped")]
    assert reasons
    assert all("too large for it" in reason for reason in reasons)


def test_at_least_once_a_failing_handler_drops_nothing() -> None:
    """`abort.on.send.failure=false` is about records that the target refuses."""
    stage = Stage(exactly_once=False, abort_on_send_failure=False, handler=spec_of(Failing))
    process, partition = stage.start(0), stage.partitions[0]
    for _ in range(9):
        stage.produce(partition)
    for _ in range(200):
        process.actor.step()
        stage.clock.advance(0.01)
    stage.close()

    assert not process.events("records.dropped")
    assert stage.source_offsets[partition].position.next_offset == 3
    (reason,) = {str(fields["reason"]) for fields in process.events("partition.stopped")}
    assert "the message handler refuses this record" in reason
