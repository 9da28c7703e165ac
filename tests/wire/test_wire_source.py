"""The source of the lane: a member that assigns, a fetcher that reads, and a producer between."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import pytest

from eos_mirror.core.records import Position, TopicPartition
from eos_mirror.errors import TransactionLost
from eos_mirror.ports import Polled, RebalanceListener
from eos_mirror.testing.waiting import wait_until
from eos_mirror.wire.cluster import Cluster
from eos_mirror.wire.connection import Connection
from eos_mirror.wire.messages import ADD_PARTITIONS_TO_TXN, PRODUCE_9, Api
from eos_mirror.wire.outbox import Outbox
from eos_mirror.wire.packing import Packing
from eos_mirror.wire.passing import NOTHING
from eos_mirror.wire.producer import WireProducer
from eos_mirror.wire.security import PLAINTEXT
from eos_mirror.wire.sending import ProducerSettings
from eos_mirror.wire.source import AHEAD_BYTES, Pumped, WireSource
from tests.wire import produce_broker as changes
from tests.wire.examples import plain_rows, run_of
from tests.wire.filler import COPIES, Filler, writing
from tests.wire.produce_broker import ProduceBroker
from tests.wire.reader import ORDERS, WITHIN, filled, reading

SHORT = timedelta(milliseconds=100)
NO_WAIT = timedelta(0)


class Member:
    """Implements `Source`: calls back in a poll, as a member of a group does."""

    def __init__(self, listener: RebalanceListener) -> None:
        self.listener = listener
        self.then: Callable[[RebalanceListener], None] | None = None
        self.polls = 0

    def subscribe(self, topics: Sequence[str]) -> None:
        """See `ports.Source`."""

    def poll(self, *, wait: timedelta) -> Polled:
        """See `ports.Source`."""
        assert wait == NO_WAIT, "the member would hold up the lane"
        self.polls += 1
        then, self.then = self.then, None
        if then is not None:
            then(self.listener)
        return Polled()

    def assign(self, positions: Mapping[TopicPartition, Position]) -> None:
        """See `ports.Source`."""
        raise AssertionError(f"the member would read {positions}")

    def unassign(self, partitions: Sequence[TopicPartition]) -> None:
        """See `ports.Source`."""

    def commit(self, positions: Mapping[TopicPartition, Position]) -> None:
        """See `ports.Source`."""

    def close(self) -> None:
        """See `ports.Source`."""


class Engine:
    """Implements `RebalanceListener`: notes what is revoked."""

    def __init__(self) -> None:
        self.gone: list[TopicPartition] = []

    def on_granted(self, partitions: Sequence[TopicPartition]) -> None:
        """See `ports.RebalanceListener`."""

    def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        """See `ports.RebalanceListener`."""
        self.gone += partitions

    def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
        """See `ports.RebalanceListener`."""
        self.gone += partitions


class Pump:
    """Implements `source.Pumped` around an outbox."""

    def __init__(self, outbox: Outbox) -> None:
        self.outbox = outbox
        self.pumps = 0

    def pump(self) -> None:
        """See `source.Pumped`."""
        self.pumps += 1
        self.outbox.pump()


def polled_of(source: WireSource) -> Polled:
    """Poll until there are records."""
    found: list[Polled] = []

    def done() -> bool:
        found.append(source.poll(wait=SHORT))
        return bool(found[-1].runs)

    wait_until(done, within=WITHIN, what="records")
    return found[-1]


@pytest.mark.parametrize("how", ["on_revoked", "on_lost"])
def test_nothing_of_a_partition_that_is_gone_is_returned(how: str) -> None:
    """What was fetched of a revoked partition is dropped, and the poll returns immediately."""
    with reading(2) as (fetcher, broker):
        other = TopicPartition("orders", 1)
        for one in (ORDERS, other):
            filled(broker, one, batches=20)
        engine, members = Engine(), list[Member]()

        def opened(listener: RebalanceListener) -> Member:
            members.append(Member(listener))
            return members[0]

        source = WireSource(opened, engine, fetcher, lambda: None)
        source.assign({ORDERS: Position(0), other: Position(0)})
        polled_of(source)
        members[0].then = lambda listener: getattr(listener, how)([ORDERS])
        again = Polled()
        while not engine.gone:  # a member is asked some times a second
            again = source.poll(wait=SHORT)
        assert (again.runs, again.more_pending) == ([], True)
        assert engine.gone == [ORDERS]
        for _ in range(5):
            assert {run.partition for run in source.poll(wait=SHORT).runs} <= {other}


def test_records_wait_while_the_target_is_behind() -> None:
    """While too much is not acknowledged, nothing is handed over; nothing of it is lost."""
    with writing() as (outbox, target, _), reading() as (fetcher, broker):
        end = filled(broker, ORDERS).end
        pump = Pump(outbox)
        source = WireSource(Member, Engine(), fetcher, lambda: pump)
        target.hold = 1_000
        Filler(outbox).put(3)
        outbox.unacknowledged_bytes += AHEAD_BYTES
        source.assign({ORDERS: Position(0)})
        for _ in range(3):
            assert source.poll(wait=SHORT) == Polled(more_pending=True)
        outbox.unacknowledged_bytes -= AHEAD_BYTES
        at = 0
        while at < end:
            for run in polled_of(source).runs:
                assert run.decoded().offsets[0] == at
                at += run.count


def over_by_produce(target: ProduceBroker) -> None:
    """Have the next Produce request fail."""
    target.change(PRODUCE_9.key, changes.malformed)


def over_by_join(target: ProduceBroker) -> None:
    """Have the second partition fail to join while the answer for the first one is not read."""
    target.change(ADD_PARTITIONS_TO_TXN.key, None, changes.reset)


@pytest.mark.parametrize("how", [over_by_produce, over_by_join])
def test_a_lost_transaction_is_raised_once_and_then_nothing_spins(
    how: Callable[[ProduceBroker], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The poll raises what the target did; later polls neither send, nor loop without a wait."""
    target = ProduceBroker(level=1)
    target.add_topic("copies", 2)
    with target.broker, reading() as (fetcher, _):
        cluster = Cluster(target.broker.bootstrap, PLAINTEXT, client_id="test")
        settings = ProducerSettings(
            answered_within_s=WITHIN.total_seconds(),
            transaction_timeout_ms=60_000,
            packing=Packing(max_records=1),
        )
        producer = WireProducer(
            cluster, "id", group="shadow", settings=settings, limits=lambda _: NOTHING, written={}
        )
        members: list[Member] = []

        def opened(listener: RebalanceListener) -> Member:
            members.append(Member(listener))
            return members[0]

        now: list[Pumped] = [producer]
        source = WireSource(opened, Engine(), fetcher, lambda: now[0])
        how(target)
        producer.begin()

        def lost() -> bool:
            producer.send(run_of(plain_rows(2)), COPIES)
            try:
                source.poll(wait=NO_WAIT)
                producer.send(run_of(plain_rows(2)), TopicPartition("copies", 1))
                source.poll(wait=SHORT)
            except TransactionLost:
                return True
            return False

        wait_until(lost, within=WITHIN, what="a lost transaction")
        sent, send = [], Connection.send

        def noted(self: Connection, api: Api, *args: Any, **options: Any) -> None:
            sent.append(api)  # what the broker has got by now may be less
            send(self, api, *args, **options)

        monkeypatch.setattr(Connection, "send", noted)
        before = members[0].polls
        for _ in range(3):
            source.poll(wait=SHORT)
        assert members[0].polls - before < 60, "a poll spins"
        assert not {PRODUCE_9, ADD_PARTITIONS_TO_TXN}.intersection(sent)
        cluster.close()


def test_a_closed_source_returns_nothing() -> None:
    """After it stopped reading, neither a late answer nor one that waited is handed over."""
    with reading() as (fetcher, broker):
        filled(broker, ORDERS, batches=20)
        source = WireSource(Member, Engine(), fetcher, lambda: None)
        source.assign({ORDERS: Position(0)})
        polled_of(source)
        source.stop_reading()
        for _ in range(3):
            assert source.poll(wait=NO_WAIT) == Polled()
