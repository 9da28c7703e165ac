"""Random mixes of records that the target accepts and records that it refuses."""

import random
from dataclasses import replace
from typing import Final

from eos_mirror.core.messages import Throttle
from eos_mirror.core.records import TopicPartition
from eos_mirror.core.throttles import Limit
from eos_mirror.core.topic_limits import TopicLimits
from tests.engine.checked_scenario import CheckedScenario
from tests.engine.gate import Fate
from tests.engine.refusing import judge
from tests.engine.stage import Process, Stage, remote_of
from tests.engine.target_log import Record

ROUNDS, STEPS = 6, 40
FATES: Final = (Fate.GO, Fate.GO, Fate.NOT_SENT, Fate.TWICE_CUT, Fate.DELAYED)


class Target:
    """What the topics of the target accept, chosen at random."""

    def __init__(self, stage: Stage, dice: random.Random) -> None:
        self._stage = stage
        self._dice = dice

    def change(self) -> None:
        """Change what one topic accepts, whether or not a task has noticed."""
        remote = remote_of(self._dice.choice(self._stage.partitions)).topic
        self._stage.target.limits[remote] = TopicLimits(
            max_message_bytes=self._dice.choice((110, 150, 300, 1_048_588)),
            needs_keys=self._dice.random() < 0.4,
        )

    def forbid(self, value: bytes | None) -> None:
        """Refuse this value in copies, for a reason that cannot be foreseen."""
        self._stage.target.forbidden.add(value or b"")

    def relent(self) -> None:
        """Accept everything from now on."""
        self._stage.target.limits.clear()
        self._stage.target.forbidden.clear()

    def refuses(self, remote: TopicPartition, record: Record) -> bool:
        """Return whether a record is refused even in a batch of its own."""
        target = self._stage.target
        return judge([record], target.limits_of(remote.topic), target.forbidden) is not None


def records_of(stage: Stage, partition: TopicPartition) -> list[Record]:
    """Return the visible records of a source partition."""
    return [e.record for e in stage.log(partition).visible(0) if e.record is not None]


def copies_of(stage: Stage, partition: TopicPartition) -> list[Record]:
    """Return the records that readers of the target see."""
    return [record for _, record in stage.target.logs[remote_of(partition)].visible()]


def produce(stage: Stage, target: Target, dice: random.Random) -> None:
    """Produce a few records, some of them refused, while partitions get new leaders."""
    stage.source.chunk_records = dice.randrange(1, 9)
    for _ in range(dice.randrange(1, 25)):
        partition = dice.choice(stage.partitions)
        if dice.random() < 0.1:
            stage.log(partition).leader_epoch += 1
        stage.produce(partition)
        if dice.random() < 0.05:
            target.forbid(records_of(stage, partition)[-1].value)


def assert_no_process_ended(processes: list[Process]) -> None:
    """Assert that no process exited: a refusal never costs one."""
    for process in processes:
        assert process.actor.error is None, process.actor.error


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
