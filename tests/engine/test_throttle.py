"""A throttled topic is mirrored slowly, in order and whole; others are not slowed down."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from eos_mirror.core.messages import Throttle
from eos_mirror.core.records import Position, TopicPartition
from eos_mirror.core.throttles import Limit
from eos_mirror.ports import RebalanceListener
from eos_mirror.replication.throttled_source import ThrottledSource
from tests.engine.checked_scenario import CheckedScenario
from tests.engine.fake_source import FakeSource
from tests.engine.gate import Clock, open_gate
from tests.engine.schedules import ORDERS, mirror_all, settled
from tests.engine.source_cluster import SourceCluster
from tests.engine.source_group import GroupCoordinator
from tests.engine.stage import Process, remote_of
from tests.engine.target_log import Record

pytestmark = pytest.mark.usefixtures("one_core")

AUDIT = TopicPartition("audit", 0)
MANY = 40
TURNS = 150


def limit(scenario: CheckedScenario, topic: str | None, **limits: float) -> None:
    """Order this limit, and no other."""
    throttles = (Throttle(topic=topic, shares=(Limit(**limits),)),) if limits else ()
    scenario.stage.order(replace(scenario.stage.orders, throttles=throttles))


def copied(scenario: CheckedScenario, partition: TopicPartition) -> int:
    """Return how many records the copy has."""
    return len(scenario.stage.target.decided_records(remote_of(partition)))


def produce_many(scenario: CheckedScenario, *partitions: TopicPartition) -> None:
    """Produce many records."""
    for partition in partitions:
        for _ in range(MANY):
            scenario.stage.produce(partition)


def seconds_until_copied(scenario: CheckedScenario, process: Process, count: int) -> float:
    """Let the task work until the copy of ORDERS has so many records; return the time it took."""
    began = scenario.stage.clock()
    while copied(scenario, ORDERS) < count:
        assert scenario.stage.clock() - began < 60, "it takes too long"
        scenario.step(process)
    return scenario.stage.clock() - began


def test_a_limited_topic_takes_its_time_and_others_do_not_wait(scenario: CheckedScenario) -> None:
    """It stays owned, and its claim stays."""
    process = settled(scenario)
    claims = scenario.stage.target.live_claims()
    limit(scenario, "orders", records_per_s=10)
    produce_many(scenario, ORDERS, AUDIT)

    began = scenario.stage.clock()
    while copied(scenario, AUDIT) < 1 + MANY:
        scenario.step(process)
    assert scenario.stage.clock() - began < 1
    assert copied(scenario, ORDERS) < MANY
    seconds_until_copied(scenario, process, 1 + MANY)
    took = scenario.stage.clock() - began

    assert (MANY - 10) / 10 <= took <= (MANY + 10) / 10
    assert scenario.stage.target.live_claims() == claims
    assert len(process.events("partitions.acquired")) == 1


def test_a_limit_in_bytes_counts_values(scenario: CheckedScenario) -> None:
    """A value of these tests has eight bytes or a few more."""
    process = settled(scenario)
    limit(scenario, None, bytes_per_s=100)
    produce_many(scenario, ORDERS)

    assert 2.5 <= seconds_until_copied(scenario, process, 1 + MANY) <= 5


def test_a_lifted_limit_lets_everything_through(scenario: CheckedScenario) -> None:
    """What waited comes first."""
    process = settled(scenario)
    limit(scenario, None, records_per_s=1)
    produce_many(scenario, ORDERS)
    seconds_until_copied(scenario, process, 3)
    scenario.step(process, TURNS)
    assert process.context.reports[-1].throttles[0].waits

    limit(scenario, None)

    assert seconds_until_copied(scenario, process, 1 + MANY) < 1
    assert process.context.reports[-1].throttles == ()


def test_a_task_that_starts_has_the_limit_before_its_first_record(
    scenario: CheckedScenario,
) -> None:
    """A limit survives the process: it is an order."""
    limit(scenario, None, records_per_s=10)
    produce_many(scenario, ORDERS)
    process = scenario.start(0)

    assert seconds_until_copied(scenario, process, 1 + MANY) >= (MANY - 10) / 10
    used = process.context.reports[-1].throttles[0]
    assert (used.topic, used.share) == (None, Limit(records_per_s=10))
    assert used.records >= MANY


def test_what_waits_is_dropped_in_a_rebalance(scenario: CheckedScenario) -> None:
    """The partition is read again from its position: nothing is lost or doubled."""
    process = settled(scenario)
    limit(scenario, None, records_per_s=1)
    produce_many(scenario, ORDERS)
    seconds_until_copied(scenario, process, 3)
    orders = scenario.stage.orders
    scenario.stage.order(replace(orders, rejoin=orders.rejoin + 1))
    scenario.step(process, TURNS)
    limit(scenario, None)

    mirror_all(scenario, process)

    assert copied(scenario, ORDERS) == 1 + MANY


class Reader:
    """A throttled source over a fake one, without a task."""

    def __init__(self, *throttles: tuple[str | None, Limit], records: int) -> None:
        self.clock = Clock()
        self.cluster = SourceCluster()
        self.cluster.create_topic("orders", 1)
        self.log = self.cluster.logs[ORDERS]
        for n in range(records):
            self.log.append(Record(None, b"%d" % n, None, 1 + n), transaction=None)
        self.opened: list[FakeSource] = []
        nothing = SimpleNamespace(
            on_granted=lambda _: None, on_revoked=lambda _: None, on_lost=lambda _: None
        )
        self.source = ThrottledSource(self._open, cast("Any", nothing), slot=0, now=self.clock)
        self.source.follow([Throttle(topic=one, shares=(limit,)) for one, limit in throttles])
        self.source.assign({ORDERS: Position(0)})

    def _open(self, listener: RebalanceListener) -> FakeSource:
        source = FakeSource(
            self.cluster,
            GroupCoordinator([ORDERS]),
            listener,
            slot=0,
            gate=open_gate,
            clock=self.clock,
        )
        self.opened.append(source)
        return source

    @property
    def is_reading(self) -> bool:
        """Whether the source below reads the partition."""
        return ORDERS in self.opened[0]._reading  # noqa: SLF001 (what the client would fetch)

    def read(self, seconds: float) -> tuple[list[int], list[int]]:
        """Poll for so long; return the offsets of records, and the ends."""
        offsets: list[int] = []
        ends: list[int] = []
        until = self.clock() + seconds
        while self.clock() < until:
            self.clock.advance(0.05)
            polled = self.source.poll(wait=timedelta(0))
            offsets += [offset for run in polled.runs for offset in _offsets(run)]
            ends += polled.ends.values()
        return offsets, ends


def _offsets(run: Any) -> Sequence[int]:
    return cast("Sequence[int]", run.decoded().offsets)


def test_an_end_comes_after_the_records_before_it() -> None:
    """An end moves the position of the engine: before its records, it would lose them."""
    reader = Reader(("orders", Limit(records_per_s=10)), records=3)
    reader.log.append(Record(None, b"x", None, 1), transaction=1)
    reader.log.finish(1, commit=False)

    offsets, ends = reader.read(0.25)
    assert (offsets, ends) == ([0, 1], [])
    offsets, ends = reader.read(2)
    assert (offsets, ends) == ([2], [5])


def test_reading_pauses_while_enough_waits() -> None:
    """A task does not fill its memory, and reads again where it paused."""
    reader = Reader((None, Limit(records_per_s=4)), records=60)
    seen, _ = reader.read(0.5)
    assert not reader.is_reading
    more, ends = reader.read(30)
    assert seen + more == list(range(60))
    assert ends == [60]
    assert reader.is_reading


def test_reading_resumes_before_nothing_waits() -> None:
    """The first fetch after a pause takes time, in which the limit would not be used."""
    reader = Reader((None, Limit(records_per_s=20)), records=60)
    seen: list[int] = []
    was_paused = False
    while not (was_paused and reader.is_reading):
        was_paused |= not reader.is_reading
        seen += reader.read(0.05)[0]
    resumed_at = reader.opened[0]._reading[ORDERS].position  # noqa: SLF001 (as above)
    assert len(seen) < resumed_at, "nothing waited any more"
    assert seen + reader.read(10)[0] == list(range(60))


@pytest.mark.parametrize("lost", ["unassign", "assign", "on_revoked", "on_lost"])
def test_what_waits_is_forgotten_with_its_partition(lost: str) -> None:
    """Another task may read it, or this one reads it again from a position of its own."""
    reader = Reader((None, Limit(records_per_s=4)), records=60)
    reader.read(0.5)
    if lost == "assign":
        reader.source.assign({ORDERS: Position(50)})
        assert reader.read(30)[0] == list(range(50, 60))
        return
    getattr(reader.source, lost)([ORDERS])
    assert reader.read(5) == ([], [])
    assert not reader.is_reading


def test_a_part_of_a_run_does_not_have_the_epoch_of_a_later_record() -> None:
    """A position with that epoch would make the next record look like one of another log."""
    reader = Reader((None, Limit(records_per_s=4)), records=2)
    reader.log.leader_epoch = 1
    reader.log.append(Record(None, b"x", None, 1), transaction=None)
    epochs: list[tuple[int, int | None]] = []
    while not epochs or epochs[-1][0] < 3:
        reader.clock.advance(0.05)
        polled = reader.source.poll(wait=timedelta(0))
        epochs += [(run.next_offset, run.leader_epoch) for run in polled.runs]
    assert epochs in ([(2, None), (3, 1)], [(1, None), (2, None), (3, 1)])


def test_the_larger_of_two_limits_does_not_matter() -> None:
    """A topic has its own limit, and a part of that of the flow."""
    reader = Reader((None, Limit(records_per_s=4)), ("orders", Limit(records_per_s=40)), records=60)
    assert len(reader.read(5)[0]) in range(16, 23)


def test_without_limits_every_poll_goes_to_the_source() -> None:
    """It costs nothing, also after a limit was lifted and what waited was handed over."""
    reader = Reader(records=60)
    assert reader.source.poll == reader.opened[0].poll
    reader.source.follow([Throttle(topic=None, shares=(Limit(records_per_s=4),))])
    assert len(reader.read(1)[0]) < 10
    reader.source.follow([])
    assert len(reader.read(1)[0]) > 50
    assert reader.source.poll == reader.opened[0].poll
