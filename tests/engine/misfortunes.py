"""Every misfortune that can be dealt to a scenario, and how often."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from eos_mirror.core.messages import Throttle
from eos_mirror.core.throttles import Limit
from tests.engine.checked_scenario import CheckedScenario
from tests.engine.gate import Fate
from tests.engine.stage import TOPICS, Process

POINTS: Final = (
    "produce", "offsets", "end", "claim", "read the claims", "fence", "tombstone", "fetch offsets",
    "ends", "high watermarks", "init", "assign", "poll", "describe topics",
)  # fmt: skip
"""Requests before which a task is stopped."""

STALLS: Final = (
    "produce", "offsets", "end", "map sent", "claim", "read the claims", "fence", "init",
)  # fmt: skip
"""Requests before which a stalled task does the most harm."""

DOUBLED: Final = ("produce", "offsets", "end")
LOSSES: Final = (Fate.NOT_SENT, Fate.NOT_ANSWERED, Fate.DELAYED)
DOUBLES: Final = (Fate.TWICE_CUT, Fate.TWICE_SLOW)
ANY: Final = range(6)
"""A choice, modulo the number of candidates."""

YES_NO: Final = (False, True)

SLOW: Final = Limit(records_per_s=8)
THROTTLES: Final = (
    (), ((None, SLOW),), (("orders", Limit(bytes_per_s=80)),), ((None, SLOW), ("orders", SLOW)),
)  # fmt: skip
"""Limits so small that records wait for them."""


class Misfortunes:
    """Each method is one misfortune, or lets one task send some requests."""

    def __init__(self, scenario: CheckedScenario) -> None:
        self.scenario = scenario

    def process(self, choice: int) -> Process | None:
        """Return one of the living processes, zombies included."""
        alive = self.scenario.stage.alive()
        return alive[choice % len(alive)] if alive else None

    # ------------------------------------------------------------------ tasks

    def run_some(self, choice: int, count: int) -> None:
        process = self.process(choice)
        if process is not None:
            self.scenario.step(process, count)

    def run_to(self, choice: int, point: str, on: int) -> None:
        process = self.process(choice)
        if process is not None and self.scenario.run_to(process, point):
            self.scenario.step(process, on)

    def lose_a_request(self, choice: int, point: str, fate: Fate) -> None:
        process = self.process(choice)
        if process is not None and self.scenario.run_to(process, point):
            self.scenario.step(process, 1, fate)

    def double_a_request(self, choice: int, point: str, fate: Fate, on: int) -> None:
        process = self.process(choice)
        if process is not None and self.scenario.run_to(process, point):
            self.scenario.step(process, 1, fate)
            self.scenario.step(process, on)

    def send_in_background(self, choice: int) -> None:
        process = self.process(choice)
        if process is not None and process.target.producers:
            process.target.producers[-1].send_in_background()

    def crash(self, choice: int) -> None:
        process = self.process(choice)
        if process is not None:
            self.scenario.crash(process)

    def start_or_replace(self, slot: int) -> None:
        self.scenario.start(self.scenario.slots[slot % len(self.scenario.slots)])

    def stop(self, slot: int) -> None:
        process = self.scenario.stage.current(slot % len(self.scenario.slots))
        if process is not None:
            process.context.stop.set()

    def refuse_a_record(self, choice: int) -> None:
        process = self.process(choice)
        if process is not None and self.scenario.run_to(process, "produce"):
            self.scenario.step(process, 1, Fate.REFUSED)

    # ------------------------------------------------------------------ source

    def produce(self, choice: int, count: int) -> None:
        partitions = self.scenario.stage.partitions
        for _ in range(count):
            self.scenario.stage.produce(partitions[choice % len(partitions)])

    def produce_in_a_transaction(self, choice: int) -> None:
        partitions = self.scenario.stage.partitions
        self.scenario.produce_in_transaction(partitions[choice % len(partitions)])

    def finish_a_transaction(self, choice: int, commit: bool) -> None:
        found = self.scenario.open_source_transactions()
        if found:
            partition, number = found[choice % len(found)]
            self.scenario.stage.log(partition).finish(number, commit=commit)

    def abort_a_transaction(self, choice: int) -> None:
        """Abort a transaction: nothing to mirror, but the end offset grows."""
        partitions = self.scenario.stage.partitions
        self.scenario.produce_aborted(partitions[choice % len(partitions)])

    def compact(self, choice: int, count: int) -> None:
        partitions = self.scenario.stage.partitions
        self.scenario.stage.log(partitions[choice % len(partitions)]).skip(count)

    def move(self, which: int, heir: int) -> None:
        moved = [p for n, p in enumerate(self.scenario.stage.partitions) if which >> n & 1]
        self.scenario.stage.group.move(heir % len(self.scenario.slots), *moved)

    def hear_late(self, polls: int) -> None:
        """Set how many polls a removed member makes before it notices."""
        self.scenario.stage.group.heartbeat_polls = polls

    def end_session(self, slot: int, heir: int) -> None:
        slots = len(self.scenario.slots)
        self.scenario.stage.group.expire(slot % slots, heir % slots)

    def overtake(
        self, choice: int, point: str, forced: bool, records: int, others: int, back: int
    ) -> None:
        """Stall a task, let another take its partitions and run, then resume the first."""
        scenario, process = self.scenario, self.process(choice)
        for partition in scenario.stage.partitions * records:
            scenario.stage.produce(partition)
        if process is None or not scenario.run_to(process, point):
            return
        if forced:
            scenario.stage.group.expire(process.slot, (process.slot + 1) % len(scenario.slots))
        else:
            scenario.start(process.slot)
        for other in scenario.stage.alive():
            if other is not process:
                scenario.step(other, others)
        scenario.step(process, back)

    def hand_over(self, choice: int, heir: int, first: int, then: int) -> None:
        """Move a partition by a graceful rebalance, while markers are pending."""
        scenario = self.scenario
        partition = scenario.stage.partitions[choice % len(scenario.stage.partitions)]
        scenario.hold_markers()
        scenario.stage.produce(partition)
        for count, also in ((first, False), (then, True)):
            for process in scenario.stage.alive():
                scenario.step(process, count)
            if not also:
                scenario.stage.group.move(heir % len(scenario.slots), partition)

    def rejoin(self) -> None:
        orders = self.scenario.stage.orders
        self.scenario.stage.order(replace(orders, rejoin=orders.rejoin + 1))

    def pause_or_stop(self, choice: int, stopped: bool) -> None:
        """Order that another set of topics is paused, or stopped; 0: none."""
        topics = tuple(t for n, t in enumerate(sorted(TOPICS)) if choice >> n & 1)
        self.scenario.stage.order(
            replace(
                self.scenario.stage.orders,
                paused=() if stopped else topics,
                stopped_topics=topics if stopped else (),
            )
        )

    def throttle(self, limits: Sequence[tuple[str | None, Limit]]) -> None:
        """Limit the flow or a topic; none: lift the limits."""
        slots = len(self.scenario.slots)
        throttles = tuple(Throttle(topic=one, shares=(limit,) * slots) for one, limit in limits)
        self.scenario.stage.order(replace(self.scenario.stage.orders, throttles=throttles))

    # ------------------------------------------------------------------ target

    def hold_markers(self) -> None:
        self.scenario.hold_markers()

    def release_markers(self) -> None:
        self.scenario.release_markers()

    def write_a_marker(self, choice: int) -> None:
        self.scenario.write_marker(choice)

    def deliver_late(self, choice: int) -> None:
        self.scenario.deliver_late(choice)

    def time_out(self, choice: int) -> None:
        self.scenario.time_out(choice)

    def expire_id(self, choice: int) -> None:
        self.scenario.expire_id(choice)

    def compact_claims(self) -> None:
        self.scenario.stage.target.compact_claims()

    def let_time_pass(self, ms: int) -> None:
        self.scenario.stage.clock.advance(ms / 1000)

    # ------------------------------------------------------------------ what stops a partition

    def lose_something(self, choice: int, dice: int) -> None:
        partitions = self.scenario.stage.partitions
        partition = partitions[choice % len(partitions)]
        if dice == 0:
            self.scenario.recreate(sorted(TOPICS)[choice % len(TOPICS)])
        elif dice == 1:
            self.scenario.expire_offset(partition)
        elif dice == 2:
            self.scenario.retain(partition, choice + 1)
        elif dice == 3:
            self.scenario.produce_uncarriable(partition)


class Move(NamedTuple):
    """A misfortune, how often it is dealt, and the values of its arguments."""

    weight: int
    name: str
    arguments: Sequence[Sequence[Any]] = ()


MOVES: Final = (
    Move(12, "run_some", (ANY, range(1, 61))),
    Move(8, "run_to", (ANY, POINTS, range(2))),
    Move(4, "lose_a_request", (ANY, POINTS, LOSSES)),
    Move(6, "double_a_request", (ANY, DOUBLED, DOUBLES, range(31))),
    Move(2, "send_in_background", (ANY,)),
    Move(1, "crash", (ANY,)),
    Move(3, "start_or_replace", (ANY,)),
    Move(1, "stop", (ANY,)),
    Move(1, "refuse_a_record", (ANY,)),
    Move(8, "produce", (ANY, range(1, 7))),
    Move(4, "produce_in_a_transaction", (ANY,)),
    Move(4, "finish_a_transaction", (ANY, YES_NO)),
    Move(3, "abort_a_transaction", (ANY,)),
    Move(2, "compact", (ANY, range(1, 5))),
    Move(4, "move", (range(1, 8), ANY)),
    Move(2, "hear_late", (range(5),)),
    Move(3, "end_session", (ANY, ANY)),
    Move(6, "overtake", (ANY, STALLS, YES_NO, range(3), range(81), range(31))),
    Move(3, "hand_over", (ANY, ANY, range(41), range(61))),
    Move(1, "rejoin"),
    Move(2, "pause_or_stop", (range(4), YES_NO)),
    Move(3, "throttle", (THROTTLES,)),
    Move(1, "hold_markers"),
    Move(1, "release_markers"),
    Move(4, "write_a_marker", (ANY,)),
    Move(4, "deliver_late", (ANY,)),
    Move(1, "time_out", (ANY,)),
    Move(1, "expire_id", (ANY,)),
    Move(1, "compact_claims"),
    Move(3, "let_time_pass", (range(1, 3_000),)),
    Move(1, "lose_something", (ANY, range(20))),
)
"""The table that Hypothesis and `chance.py` draw from."""
