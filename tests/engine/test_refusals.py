"""
Random mixes of records that the target accepts and records that it refuses, over several topics.

The target refuses whole batches, as a broker does (`refusing.py`), for what can be foreseen (no
key, size) and for what cannot. Afterwards it accepts everything, and everything must arrive.
"""

import random
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest

from eos_mirror.core.records import TopicPartition
from tests.engine.checked_scenario import CheckedScenario
from tests.engine.random_refusals import (
    ROUNDS,
    STEPS,
    Target,
    assert_no_process_ended,
    copies_of,
    produce,
    records_of,
)
from tests.engine.stage import Process, Stage, remote_of

pytestmark = pytest.mark.usefixtures("one_core")

SEEDS: Final = range(200)
ENOUGH = 4_000
LONG_S: Final = 400.0
"""Longer than any pause before a stopped partition is tried again."""


@pytest.fixture
def scenario(request: pytest.FixtureRequest) -> Iterator[CheckedScenario]:
    """Exactly once, one or two tasks; the oracle checks every step."""
    made = CheckedScenario(slots=1 + request.param % 2)
    yield made
    made.close()


def settle(scenario: CheckedScenario) -> None:
    """Step until every partition is at its end, or stopped."""
    stage = scenario.stage
    for _ in range(ENOUGH):
        names = {p for process in stage.alive() for p in newest_stopped(process)}
        if all(scenario.oracle.reached(p) or p in names for p in stage.partitions):
            return
        for process in stage.alive():
            scenario.step(process)
        stage.clock.advance(0.01)
    raise AssertionError(f"not settled: {[p.context.events[-9:] for p in stage.alive()]}")


@pytest.mark.parametrize(("seed", "scenario"), [(s, s) for s in SEEDS], indirect=["scenario"])
def test_exactly_once_copies_every_acceptable_record_once(
    scenario: CheckedScenario, seed: int
) -> None:
    """Records are copied up to a partition's first refused one, and all once it is accepted."""
    dice = random.Random(seed)
    stage, target = scenario.stage, Target(scenario.stage, dice)
    processes = [scenario.start(slot) for slot in scenario.slots]
    for _ in range(ROUNDS):
        produce(stage, target, dice)
        if dice.random() < 0.5:
            target.change()
        for process in stage.alive():
            scenario.step(process, dice.randrange(STEPS))
    try_stopped_again(scenario)
    assert_no_process_ended(processes)
    assert_few_incarnations(processes)
    for partition in stage.partitions:
        remote, records = remote_of(partition), records_of(stage, partition)
        copied = len(copies_of(stage, partition))
        if copied < len(records):
            assert target.refuses(remote, records[copied]), "a record was blamed for another one"

    target.relent()
    try_stopped_again(scenario)
    assert_no_process_ended(processes)
    for partition in stage.partitions:
        assert copies_of(stage, partition) == records_of(stage, partition)
        assert scenario.oracle.reached(partition)


def try_stopped_again(scenario: CheckedScenario) -> None:
    """Let stopped partitions be tried again, with what the target accepts now."""
    for _ in range(3):
        settle(scenario)
        scenario.stage.clock.advance(LONG_S)
        for process in scenario.stage.alive():
            scenario.step(process, STEPS)
    settle(scenario)


def assert_few_incarnations(processes: list[Process]) -> None:
    """Assert at most one incarnation for each refusal, besides the one that a task begins with."""
    for process in processes:
        begun = len(process.events("incarnation.started"))
        refusals = len(process.events("batch.refused"))
        assert begun <= 1 + refusals, process.context.events


@pytest.fixture(params=[True, False], ids=["stops", "drops"])
def at_least_once(request: pytest.FixtureRequest) -> Iterator[Stage]:
    """One task; `abort.on.send.failure` both ways."""
    stage = Stage(exactly_once=False, abort_on_send_failure=request.param)
    yield stage
    stage.close()


@pytest.mark.parametrize("seed", SEEDS)
def test_at_least_once_loses_nothing_and_repeats_what_was_refused(
    at_least_once: Stage, seed: int
) -> None:
    """The ledger names exactly the dropped records, and repeated records are in order again."""
    dice = random.Random(seed)
    stage, target = at_least_once, Target(at_least_once, dice)
    process = stage.start(0)
    for _ in range(ROUNDS):
        produce(stage, target, dice)
        if dice.random() < 0.5:
            target.change()
        for _ in range(2):
            for _ in range(STEPS):
                process.actor.step()
            settle_one(stage, process)
            stage.clock.advance(LONG_S)
        for partition in stage.partitions:
            assert_copied(stage, target, process, partition)
    assert_no_process_ended([process])


def newest_stopped(process: Process) -> Mapping[TopicPartition, str]:
    """Return the partitions that the process last reported as stopped."""
    reports = process.context.reports
    return reports[-1].stopped if reports else {}


def settle_one(stage: Stage, process: Process) -> None:
    """Step until every partition is committed to its end, or stopped."""
    for _ in range(ENOUGH):
        stopped = newest_stopped(process)
        if all(p in stopped or committed(stage, p) == end(stage, p) for p in stage.partitions):
            return
        process.actor.step()
        stage.clock.advance(0.01)
    raise AssertionError(f"not settled: {process.context.events[-9:]}")


def committed(stage: Stage, partition: TopicPartition) -> int:
    """Return the position of the source group; -1: none."""
    offset = stage.source_offsets.get(partition)
    return -1 if offset is None else offset.position.next_offset


def end(stage: Stage, partition: TopicPartition) -> int:
    """Return the end offset of a source partition."""
    return stage.log(partition).end


def dropped_of(
    ledger: list[Mapping[str, Any]], partition: TopicPartition
) -> dict[int, Mapping[str, Any]]:
    """Return a partition's ledger entries by the offsets that they name."""
    return {
        offset: entry
        for entry in ledger
        if entry["partition"] == str(partition)
        for offset in range(entry["from"], entry["to"])
    }


def assert_copied(
    stage: Stage, target: Target, process: Process, partition: TopicPartition
) -> None:
    """Assert that records below the committed position arrived in order, or are in the ledger."""
    at = committed(stage, partition)
    records = records_of(stage, partition)
    dropped = dropped_of(stage.ledger, partition)
    wanted = [r for offset, r in enumerate(records[:at]) if offset not in dropped]
    last = list(dict.fromkeys(reversed(copies_of(stage, partition))))[::-1]
    found = [record for record in last if record in records[:at]]
    assert found == wanted, f"{partition} at {at}, dropped {dropped}"
    if partition in newest_stopped(process):
        assert target.refuses(remote_of(partition), records[at]), "it stopped for another record"
