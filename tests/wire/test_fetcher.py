"""The fetcher, and brokers that answer late, wrongly, or for a topic that is another one now."""

import random
from collections.abc import Sequence
from typing import Any

import pytest

from eos_mirror.core.records import TopicPartition
from eos_mirror.testing.waiting import wait_until
from eos_mirror.wire.errors import (
    TOPIC_AUTHORIZATION_FAILED,
    Refused,
)
from eos_mirror.wire.messages import FETCH, METADATA
from eos_mirror.wire.reading import Reading
from tests.wire import fetch_broker as changes
from tests.wire.fetch_broker import Change, a_partition
from tests.wire.reader import ORDERS, WITHIN, Reader, filled, reading
from tests.wire.scripted_broker import Asked, Peer

# ---------------------------------------------------------------------- nothing lost


@pytest.mark.parametrize(
    "change",
    [
        changes.lost,
        changes.with_foreign_partition,
        changes.empty,
        changes.half,
        changes.not_leader,
        changes.unknown_error,
        changes.session_lost,
        changes.wrong_epoch,
        changes.no_session,
        None,
    ],
)
def test_no_answer_loses_or_repeats_a_record(change: Change | None) -> None:
    """After any odd answer, at any place, reading resumes exactly where it was."""
    partitions = [TopicPartition("orders", number) for number in range(3)]
    for place in (0, 1, 3):
        with reading(3) as (fetcher, source):
            ends = {p: filled(source, p).end for p in partitions}
            source.changes.extend([None] * place + [change])
            reader = Reader(fetcher)
            reader.start(dict.fromkeys(partitions, 0))
            reader.read_to(ends)
            assert not source.changes, "the fault was never hit; the test proves nothing"
            assert not reader.faults


ODD: Sequence[Change | None] = [
    None,
    None,
    None,
    changes.lost,
    changes.with_foreign_partition,
    changes.empty,
    changes.half,
    changes.not_leader,
    changes.session_lost,
    changes.wrong_epoch,
    changes.no_session,
]


def wander(seed: int, steps: int) -> None:
    """Start and stop partitions at random, while the broker answers oddly and logs grow."""
    chosen = random.Random(seed)
    partitions = [TopicPartition("orders", number) for number in range(4)]
    with reading(4) as (fetcher, source):
        logs = {p: filled(source, p, batches=2) for p in partitions}
        reader = Reader(fetcher)
        for _ in range(steps):
            what = chosen.randrange(8)
            some = chosen.sample(partitions, chosen.randrange(1, 4))
            if what == 0:
                reader.start({p: chosen.choice((0, reader.at.get(p, 0), 4)) for p in some})
            elif what == 1:
                reader.stop(some)
            elif what == 2:
                for p in some:
                    logs[p].append(chosen.randrange(1, 5))
            elif what == 3:
                source.forget_sessions()
            elif what == 4:
                source.changes.append(chosen.choice(ODD))
            for _ in range(chosen.randrange(3)):
                reader.poll()
        source.changes.clear()
        reader.start({p: 0 for p in partitions if p not in reader.at})
        reader.read_to({p: logs[p].end for p in partitions})
        assert not reader.faults


@pytest.mark.parametrize("seed", range(15))
def test_partitions_that_start_and_stop_at_random_are_read_densely(seed: int) -> None:
    """Whatever starts, stops and fails: from each start on, every record comes once, in order."""
    wander(seed, steps=60)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 160))
def test_partitions_that_start_and_stop_for_longer_are_read_densely(seed: int) -> None:
    """The same, for longer."""
    wander(seed, steps=300)


def test_a_partition_that_starts_again_while_a_request_is_unanswered_begins_there() -> None:
    """The answer to a request from before a start moves nothing and returns nothing."""
    held: list[tuple[Peer, Asked, dict[str, Any]]] = []

    def hold(*all_of_it: Any) -> None:
        held.append(all_of_it)

    with reading() as (fetcher, source):
        log = filled(source, ORDERS)
        source.changes.append(hold)
        reader = Reader(fetcher)
        reader.start({ORDERS: 0})
        wait_until(lambda: reader.poll() is None and bool(held), within=WITHIN, what="a request")
        reader.start({ORDERS: 6})
        peer, asked, answer = held[0]
        peer.answer(asked, answer)
        reader.read_to({ORDERS: log.end})


def test_what_was_fetched_of_a_stopped_partition_is_dropped() -> None:
    """An answer that waits here holds nothing of a partition that was stopped meanwhile."""
    other = TopicPartition("orders", 1)
    with reading(2) as (fetcher, source):
        ends = {p: filled(source, p).end for p in (ORDERS, other)}
        reader = Reader(fetcher)
        reader.start({ORDERS: 0, other: 0})
        wait_until(lambda: bool(fetcher.take()), within=WITHIN, what="a first answer")

        def waits() -> bool:
            fetcher._receive()  # noqa: SLF001 (what the next `take` begins with)
            return bool(fetcher._answers)  # noqa: SLF001

        wait_until(waits, within=WITHIN, what="an answer that waits")
        reader.start({ORDERS: 0})
        reader.stop([other])
        reader.read_to({ORDERS: ends[ORDERS]})


def test_the_end_is_reported_again_after_a_start() -> None:
    """A partition that starts again at its end reports that end, although nothing changed."""
    with reading() as (fetcher, source):
        end = filled(source, ORDERS).end
        reader = Reader(fetcher)
        reader.start({ORDERS: 0})
        reader.read_to({ORDERS: end})
        for _ in range(3):
            reader.start({ORDERS: end})
            reader.read_to({ORDERS: end})
        assert len(source.sessions) == 1, "earlier sessions are left to the broker"


# ---------------------------------------------------------------------- topics


def test_a_topic_that_a_broker_does_not_know_yet_is_read_later() -> None:
    """A start is not forgotten because the first broker asked has not heard of the topic."""
    with reading() as (fetcher, source):
        known = source.broker.topics.pop("orders")
        reader = Reader(fetcher)
        reader.start({ORDERS: 0})
        wait_until(
            lambda: reader.poll() is None and len(source.broker.requests(METADATA)) >= 2,
            within=WITHIN,
            what="the topic to be asked for",
        )
        source.broker.topics["orders"] = known
        reader.read_to({ORDERS: filled(source, ORDERS).end})


def test_a_topic_that_was_created_again_is_never_read() -> None:
    """Another topic with the same name has other records, whatever their offsets are."""
    with reading() as (fetcher, source):
        old_id, _ = source.broker.topics["orders"]
        end = filled(source, ORDERS).end
        reader = Reader(fetcher)
        reader.start({ORDERS: 0})
        reader.read_to({ORDERS: end})
        del source.logs[old_id, 0]
        source.add_topic("orders", 1, topic_id=b"another topic id")
        filled(source, ORDERS, batches=20)
        asked = len(source.broker.requests(METADATA))
        wait_until(
            lambda: reader.poll() is None and len(source.broker.requests(METADATA)) > asked + 2,
            within=WITHIN,
            what="the topic to be asked for again",
        )
        assert reader.at[ORDERS] == end
        assert all(
            topic["topic_id"] == old_id
            for one in source.broker.requests(FETCH)
            for topic in one.fields["topics"]
        )


def test_a_missing_right_is_an_error() -> None:
    """A topic that may not be described or read raises Refused, with the code."""
    with reading() as (fetcher, source):
        filled(source, ORDERS)
        source.errors[source.broker.topics["orders"][0], 0] = TOPIC_AUTHORIZATION_FAILED
        reader = Reader(fetcher)
        reader.start({ORDERS: 0})
        with pytest.raises(Refused) as caught:
            wait_until(lambda: bool(reader.poll()), within=WITHIN, what="an error")
        assert caught.value.code == TOPIC_AUTHORIZATION_FAILED


# ---------------------------------------------------------------------- lost data


def test_an_offset_that_the_leader_does_not_have_stops_the_partition() -> None:
    """A leader whose log starts later, or ends earlier, has lost records: no silent reset."""
    for start, end in ((6, 15), (0, 2)):
        with reading() as (fetcher, source):
            log = filled(source, ORDERS)
            log.start, log.end = start, end
            reader = Reader(fetcher)
            reader.start({ORDERS: 4})
            assert "orders-0 next_offset=4: not in the log" in reader.read_to_fault(ORDERS)
            assert ORDERS not in fetcher._plan.readings  # noqa: SLF001


def test_a_log_that_diverged_stops_the_partition() -> None:
    """After an unclean election, records of another history are never read (KIP-595)."""

    def diverged(_: Peer, asked: Asked, answer: dict[str, Any]) -> dict[str, Any]:
        assert asked.fields["topics"][0]["partitions"][0]["last_fetched_epoch"] == 7
        one = {**a_partition(0, end=15), "diverging_epoch": {"epoch": 6, "end_offset": 3}}
        topic = {"topic_id": source.broker.topics["orders"][0], "partitions": [one]}
        return {**answer, "responses": [topic]}

    with reading() as (fetcher, source):
        filled(source, ORDERS)
        source.changes.append(diverged)
        reader = Reader(fetcher)
        reader.start({ORDERS: 6}, epoch=7)
        assert "leader epoch 6 ends at 3" in reader.read_to_fault(ORDERS)


@pytest.mark.parametrize("claims", [0x7FFFFFFF, 0x7FFFFFFF - 12, 300 << 20])
def test_a_batch_that_claims_more_than_any_answer_holds_is_a_fault(claims: int) -> None:
    """A length that no answer can have stops the partition; no request asks for so much."""

    def huge(_: Peer, __: Asked, answer: dict[str, Any]) -> dict[str, Any]:
        one = answer["responses"][0]["partitions"][0]
        records = bytearray(one["records"])
        records[8:12] = claims.to_bytes(4)
        topic = {**answer["responses"][0], "partitions": [{**one, "records": bytes(records)}]}
        return {**answer, "responses": [topic]}

    with reading() as (fetcher, source):
        filled(source, ORDERS)
        source.changes.append(huge)
        reader = Reader(fetcher)
        reader.start({ORDERS: 0})
        assert "corrupt batch" in reader.read_to_fault(ORDERS)


def test_a_batch_larger_than_all_limits_is_read() -> None:
    """A batch comes whole, however large it is; a broker that cuts it is asked for all of it."""

    def cut(_: Peer, asked: Asked, answer: dict[str, Any]) -> dict[str, Any]:
        limit = asked.fields["topics"][0]["partitions"][0]["partition_max_bytes"]
        one = answer["responses"][0]["partitions"][0]
        topic = {
            **answer["responses"][0],
            "partitions": [{**one, "records": one["records"][:limit]}],
        }
        return {**answer, "responses": [topic]}

    with reading() as (fetcher, source):
        log = source.logs[source.broker.topics["orders"][0], 0]
        log.append(2, value_bytes=100_000)
        source.changes.append(cut)
        reader = Reader(fetcher)
        reader.start({ORDERS: 0})
        reader.read_to({ORDERS: 2})
        assert not source.changes


def test_a_record_of_one_partition_costs_no_work_for_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Once a session knows the partitions, a request is made of those that moved."""
    partitions = [TopicPartition("orders", number) for number in range(50)]
    made: list[TopicPartition] = []
    honest = Reading.wanted

    def counted(self: Reading, leader: Any) -> tuple[bytes, dict[str, int]]:
        made.append(self.partition)
        return honest(self, leader)

    monkeypatch.setattr(Reading, "wanted", counted)
    with reading(len(partitions)) as (fetcher, source):
        reader = Reader(fetcher)
        reader.start(dict.fromkeys(partitions, 0))
        reader.read_to(dict.fromkeys(partitions, 0))
        made.clear()
        for end in (3, 6, 9):
            filled(source, partitions[7], batches=1)
            reader.read_to({partitions[7]: end})

    assert set(made) == {partitions[7]}
    assert len(made) >= 2
