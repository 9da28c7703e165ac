"""
A message handler makes none, one or several copies of each record.

The oracle checks at every step that the copies are those of each record, once and in order, and
that the offset map leads to the first copy and back.
"""

from collections.abc import Iterator
from typing import Final

import pytest

from eos_mirror.core.topic_limits import TopicLimits
from tests.engine.checked_scenario import CheckedScenario
from tests.engine.message_handlers import Failing, Large, Varied, spec_of
from tests.engine.random_refusals import assert_no_process_ended, play
from tests.engine.stage import FLOW, Stage, remote_of

pytestmark = pytest.mark.usefixtures("one_core")

SEEDS: Final = range(100)


@pytest.fixture
def scenario(request: pytest.FixtureRequest) -> Iterator[CheckedScenario]:
    """Exactly once, one or two tasks, a handler and a quarantine."""
    handler, seed = request.param
    made = CheckedScenario(
        slots=1 + seed % 2, quarantine=FLOW.quarantine_topic, handler=spec_of(handler)
    )
    yield made
    made.close()


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
