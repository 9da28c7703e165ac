"""
Refused records move to the quarantine, in the transaction that moves the position past them.

The oracle checks at every step that each record is in the copy or in the quarantine, in one of
them once, and that the offset map is exact.
"""

import random
from collections.abc import Iterator
from typing import Final

import pytest

from eos_mirror.core.topic_limits import TopicLimits
from tests.engine.checked_scenario import CheckedScenario
from tests.engine.random_refusals import (
    ROUNDS,
    STEPS,
    Target,
    assert_no_process_ended,
    copies_of,
    play,
    produce,
    records_of,
)
from tests.engine.stage import FLOW, Stage, remote_of

pytestmark = pytest.mark.usefixtures("one_core")

SEEDS: Final = range(200)
QUARANTINE: Final = FLOW.quarantine_topic


@pytest.fixture
def scenario(request: pytest.FixtureRequest) -> Iterator[CheckedScenario]:
    """Exactly once, one or two tasks; the oracle checks every step."""
    made = CheckedScenario(slots=1 + request.param % 2, quarantine=QUARANTINE)
    yield made
    made.close()


@pytest.fixture
def one_task() -> Iterator[CheckedScenario]:
    """Exactly once, one task."""
    made = CheckedScenario(slots=1, quarantine=QUARANTINE)
    yield made
    made.close()


def quarantined_values(stage: Stage) -> list[bytes | None]:
    """Return the values in the quarantine that readers see."""
    log = next(log for where, log in stage.target.logs.items() if where.topic == QUARANTINE)
    return [record.value for _, record in log.visible()]


@pytest.mark.parametrize(("seed", "scenario"), [(s, s) for s in SEEDS], indirect=["scenario"])
def test_every_record_is_in_the_copy_or_in_the_quarantine(
    scenario: CheckedScenario, seed: int
) -> None:
    """Tasks are killed and requests are lost while the target changes what it accepts."""
    stage = scenario.stage
    play(scenario, seed)

    noted = {
        (entry["partition"], offset)
        for entry in stage.ledger
        for offset in range(entry["from"], entry["to"])
    }
    for partition in stage.partitions:
        found = scenario.oracle.quarantined(partition)
        records, copies = records_of(stage, partition), copies_of(stage, partition)
        assert len(copies) + len(found) == len(records)
        assert {(str(partition), offset) for offset in found} <= noted


def test_a_refused_record_costs_no_process_and_no_other_record(
    one_task: CheckedScenario,
) -> None:
    """One record of a batch is refused for a reason that cannot be foreseen."""
    stage, partition = one_task.stage, one_task.stage.partitions[0]
    process = one_task.start(0)
    for _ in range(9):
        stage.produce(partition)
    refused = records_of(stage, partition)[4]
    stage.target.forbidden.add(refused.value or b"")
    one_task.drain()

    assert_no_process_ended([process])
    assert quarantined_values(stage) == [refused.value]
    assert refused not in copies_of(stage, partition)
    (event,) = process.events("records.quarantined")
    assert (event["from"], event["to"], event["records"]) == (4, 5, 1)
    assert (event["partition"], event["topic"]) == (str(partition), QUARANTINE)
    assert process.context.reports[-1].quarantined == 1
    assert process.context.reports[-1].dropped == 0
    assert not process.events("partition.stopped")


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        (TopicLimits(max_message_bytes=1_048_588, needs_keys=True), "compacted"),
        (TopicLimits(max_message_bytes=500), "accepts 500 bytes"),
        (None, "does not exist"),
    ],
    ids=["compacted", "small", "gone"],
)
def test_a_partition_stops_if_the_quarantine_would_refuse_the_record_too(
    one_task: CheckedScenario, limits: TopicLimits | None, why: str
) -> None:
    """The reason names both causes, the records before it are copied, and others continue."""
    stage, partition = one_task.stage, one_task.stage.partitions[0]
    process = one_task.start(0)
    stage.target.limits[remote_of(partition).topic] = TopicLimits(
        max_message_bytes=1_048_588, needs_keys=True
    )
    if limits is None:
        stage.target.delete_topic(QUARANTINE)
    else:
        stage.target.limits[QUARANTINE] = limits
    for one in stage.partitions:
        for _ in range(6):  # every third has no key
            stage.produce(one)
    for _ in range(200):
        one_task.step(process)

    reasons = [str(fields["reason"]) for fields in process.events("partition.stopped")]
    assert reasons
    assert all("has no key" in reason and QUARANTINE in reason for reason in reasons)
    assert all(why in reason for reason in reasons)
    assert_no_process_ended([process])
    if limits is not None:
        assert quarantined_values(stage) == []


@pytest.mark.parametrize("seed", range(50))
def test_at_least_once_loses_no_record_either(seed: int) -> None:
    """Each record is in the copy or in the quarantine; records may be repeated."""
    dice = random.Random(seed)
    stage = Stage(exactly_once=False, quarantine=QUARANTINE)
    target = Target(stage, dice)
    process = stage.start(0)
    for _ in range(ROUNDS):
        produce(stage, target, dice)
        if dice.random() < 0.5:
            target.change()
        for _ in range(6 * STEPS):
            process.actor.step()
            stage.clock.advance(0.01)
    stage.close()

    assert_no_process_ended([process])
    quarantined = set(quarantined_values(stage))
    for partition in stage.partitions:
        position = stage.source_offsets[partition].position.next_offset
        assert position == stage.log(partition).end
        copies = {record.value for record in copies_of(stage, partition)}
        missing = {record.value for record in records_of(stage, partition)} - copies
        assert missing <= quarantined
