"""The fetcher between several brokers, and what it does while none of them can serve."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from eos_mirror.core.records import TopicPartition
from eos_mirror.testing.waiting import wait_until
from eos_mirror.wire.buffers import Buffers
from eos_mirror.wire.cluster import Cluster, Purpose
from eos_mirror.wire.errors import (
    FETCH_SESSION_ID_NOT_FOUND,
    NOT_LEADER_OR_FOLLOWER,
    OFFSET_OUT_OF_RANGE,
    Unanswered,
)
from eos_mirror.wire.fetcher import Fetcher
from eos_mirror.wire.messages import FETCH, METADATA
from eos_mirror.wire.security import PLAINTEXT
from tests.wire import fetch_broker as changes
from tests.wire.fetch_broker import Change, FetchBroker, a_partition
from tests.wire.reader import ORDERS, WITHIN, Reader, fetcher_of, filled, reading
from tests.wire.scripted_broker import Asked, Peer

# ---------------------------------------------------------------------- other brokers


@contextmanager
def two(partitions: int = 1) -> Iterator[tuple[Fetcher, FetchBroker, FetchBroker]]:
    """Yield a fetcher, a leader, and another broker that has the same logs."""
    leader, other = FetchBroker(node=1), FetchBroker(node=2)
    leader.add_topic("orders", partitions)
    other.add_topic("orders", partitions)
    other.logs = dict(leader.logs)
    with leader.broker, other.broker:
        for one in (leader, other):
            one.broker.others = {1: leader.broker.port, 2: other.broker.port}
        fetcher = fetcher_of(leader, other)
        try:
            yield fetcher, leader, other
        finally:
            fetcher.close()


def move(*brokers: FetchBroker, leader: FetchBroker) -> None:
    """Make a broker the leader of all partitions."""
    for one in brokers:
        one.broker.leader = leader.broker.node
        code = 0 if one is leader else NOT_LEADER_OR_FOLLOWER
        one.errors = dict.fromkeys(one.logs, code)


def test_reading_follows_the_leader() -> None:
    """A leader that moves back and forth is followed, without a lost or repeated record."""
    with two() as (fetcher, leader, other):
        log = filled(leader, ORDERS)
        reader = Reader(fetcher)
        reader.start({ORDERS: 0})
        reader.read_to({ORDERS: log.end})
        for now in (other, leader, other):
            move(leader, other, leader=now)
            log.append(3)
            reader.read_to({ORDERS: log.end})


def test_memory_does_not_grow_with_the_number_of_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    """All connections of a cluster use the same memory for their answers."""
    made: list[Buffers] = []
    create = Buffers.__init__

    def noted(self: Buffers) -> None:
        made.append(self)
        create(self)

    monkeypatch.setattr(Buffers, "__init__", noted)
    with two() as (fetcher, leader, other):
        log = filled(leader, ORDERS)
        reader = Reader(fetcher)
        reader.start({ORDERS: 0})
        reader.read_to({ORDERS: log.end})
        move(leader, other, leader=other)
        log.append(3)
        reader.read_to({ORDERS: log.end})

    assert len(made) == 1


def test_a_dead_leader_is_replaced() -> None:
    """Its partitions are read from the new leader; those of other brokers never stop."""
    with two() as (fetcher, leader, other):
        log = filled(leader, ORDERS)
        reader = Reader(fetcher)
        reader.start({ORDERS: 0})
        reader.read_to({ORDERS: log.end})
        leader.broker.stop()
        move(leader, other, leader=other)
        log.append(3)
        reader.read_to({ORDERS: log.end})


def test_partitions_of_other_brokers_are_read_while_no_broker_says_where_one_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A frozen broker is lost. As long as no question is answered, the others are read on."""
    with two(2) as (fetcher, frozen, other):
        one, two_ = TopicPartition("orders", 0), TopicPartition("orders", 1)
        for broker in (frozen, other):
            broker.broker.leaders = {0: 1, 1: 2}
        logs = {p: filled(other, p) for p in (one, two_)}
        reader = Reader(fetcher)
        reader.start({one: 0, two_: 0})
        reader.read_to({p: log.end for p, log in logs.items()})
        frozen.broker.reads.clear()
        questions = []

        def unanswered(*_: Any, **__: Any) -> None:
            questions.append(1)
            raise Unanswered("no answer")

        monkeypatch.setattr(fetcher._cluster, "learn", unanswered)  # noqa: SLF001

        def is_lost() -> bool:
            reader.poll()
            return len(questions) > 1

        wait_until(is_lost, within=WITHIN, what="the frozen broker to be lost")
        logs[two_].append(3)
        reader.read_to({two_: logs[two_].end})
        monkeypatch.undo()
        frozen.broker.reads.set()
        logs[one].append(3)
        reader.read_to({p: log.end for p, log in logs.items()})


def test_a_broker_that_has_failed_is_asked_last() -> None:
    """A frozen broker accepts connections. It gets no question while another one answers."""
    with two() as (_, frozen, other):
        bootstrap = f"{frozen.broker.bootstrap},{other.broker.bootstrap}"
        cluster = Cluster(bootstrap, PLAINTEXT, client_id="test")
        soon = time.monotonic() + WITHIN.total_seconds()
        cluster.learn(["orders"], until=soon)
        asked = len(frozen.broker.requests(METADATA))
        assert asked, "the first address was not asked first"
        reading_from = cluster.connection(1, Purpose.FETCH, until=soon)
        frozen.broker.reads.clear()
        cluster.drop(reading_from)
        for _ in range(20):
            cluster.learn(["orders"], until=soon)
        cluster.close()
        frozen.broker.reads.set()
    assert len(frozen.broker.requests(METADATA)) == asked  # it has read what it got by now


def preferring(node: int) -> Change:
    """Return a change that sends the reader to another replica."""

    def change(_: Peer, __: Asked, answer: dict[str, Any]) -> dict[str, Any]:
        return changes.with_partitions(answer, preferred_read_replica=node, records=b"")

    return change


@pytest.mark.parametrize("code", [OFFSET_OUT_OF_RANGE, NOT_LEADER_OR_FOLLOWER])
def test_a_follower_that_cannot_serve_sends_nobody_away(code: int) -> None:
    """A nearer replica is read; if it is out of range or in error, the leader is asked again."""
    with two() as (fetcher, leader, follower):
        log = filled(leader, ORDERS)
        leader.changes.append(preferring(2))
        reader = Reader(fetcher)
        reader.start({ORDERS: 0})
        reader.read_to({ORDERS: log.end})
        assert follower.broker.requests(FETCH), "the follower was never read"
        follower.errors = dict.fromkeys(follower.logs, code)
        log.append(3)
        reader.read_to({ORDERS: log.end})
        assert not reader.faults


def test_only_the_broker_that_was_asked_last_counts() -> None:
    """A late error of a follower that is not read any more does not stop the partition."""
    with two() as (fetcher, leader, follower):
        log = filled(leader, ORDERS)
        held: list[tuple[Peer, Asked]] = []

        def hold(peer: Peer, asked: Asked, _: dict[str, Any]) -> None:
            held.append((peer, asked))

        leader.changes.append(preferring(2))
        follower.changes.append(hold)
        reader = Reader(fetcher)
        reader.start({ORDERS: 0})
        wait_until(lambda: reader.poll() is None and bool(held), within=WITHIN, what="a request")
        fetcher._plan.readings[ORDERS].preferred = None  # noqa: SLF001 (as after PREFERRED_S)
        fetcher._plan.changed()  # noqa: SLF001
        fetcher._ask_at = 0.0  # noqa: SLF001
        reader.read_to({ORDERS: log.end})
        peer, asked = held[0]
        one = a_partition(0, code=OFFSET_OUT_OF_RANGE, end=-1)
        topic = {"topic_id": follower.broker.topics["orders"][0], "partitions": [one]}
        answer = {"throttle_time_ms": 0, "error_code": 0, "session_id": 9, "responses": [topic]}
        peer.answer(asked, answer)
        log.append(3)
        reader.read_to({ORDERS: log.end})
        assert not reader.faults


# ---------------------------------------------------------------------- no busy loops


@pytest.mark.parametrize("case", ["election", "sessions", "cut", "unknown"])
def test_a_broker_that_cannot_serve_is_not_flooded(case: str) -> None:
    """While nothing can be read, few requests are sent, and each poll returns."""

    def cut(_: Peer, __: Asked, answer: dict[str, Any]) -> dict[str, Any]:
        return changes.with_partitions(answer, records=bytes(8) + b"\0\0\1\0" + bytes(4) + b"\2")

    def refuse(*_: Any) -> dict[str, Any]:
        return changes.failed(FETCH_SESSION_ID_NOT_FOUND)

    with reading(3) as (fetcher, source):
        partitions = [TopicPartition("orders", number) for number in range(3)]
        for one in partitions:
            filled(source, one)
        if case == "election":
            source.errors = dict.fromkeys(source.logs, NOT_LEADER_OR_FOLLOWER)
        elif case == "unknown":
            source.broker.topics.clear()
        else:
            source.changes.extend([cut if case == "cut" else refuse] * 1_000)
        reader = Reader(fetcher)
        reader.start(dict.fromkeys(partitions, 0))
        began = time.monotonic()
        wait_until(
            lambda: reader.poll() is None and time.monotonic() - began > 0.5,
            within=WITHIN,
            what="half a second to pass",
        )
        took_s = time.monotonic() - began
        assert len(source.broker.seen) <= 10 + 40 * took_s


def test_one_partition_without_a_leader_does_not_make_the_others_ask_for_theirs() -> None:
    """While one partition has no leader, the topic is asked for some ten times a second."""
    with reading(3) as (fetcher, source):
        partitions = [TopicPartition("orders", number) for number in range(3)]
        for one in partitions:
            filled(source, one)
        source.errors[source.broker.topics["orders"][0], 0] = NOT_LEADER_OR_FOLLOWER
        reader = Reader(fetcher)
        reader.start(dict.fromkeys(partitions, 0))
        began = time.monotonic()

        def done() -> bool:
            reader.poll()
            return time.monotonic() - began > 0.5

        wait_until(done, within=WITHIN, what="half a second to pass")
        took_s = time.monotonic() - began
        assert len(source.broker.requests(METADATA)) <= 5 + 15 * took_s
        assert reader.at[partitions[2]] == source.logs[source.broker.topics["orders"][0], 2].end


def test_a_mute_does_not_hold_up_a_poll() -> None:
    """While a broker does not read, other work continues: nothing sleeps (KIP-219)."""

    def throttled(_: Peer, __: Asked, answer: dict[str, Any]) -> dict[str, Any]:
        return {**answer, "throttle_time_ms": 30_000}

    with reading() as (fetcher, source):
        filled(source, ORDERS)
        source.changes.append(throttled)
        reader = Reader(fetcher)
        reader.start({ORDERS: 0})
        wait_until(lambda: bool(reader.poll()), within=WITHIN, what="an answer")
        for _ in range(5):
            reader.poll()
        assert len(source.broker.requests(FETCH)) == 1
